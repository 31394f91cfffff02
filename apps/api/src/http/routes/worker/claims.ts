/** How a worker announces itself, and claims turns. */
import { randomUUID } from 'node:crypto'
import type { Claim } from '@rivulet/contract/internal'
import * as contract from '@rivulet/contract/worker'
import { type ClaimedTurn, workerProtocols } from '@rivulet/contract/worker'
import { RivuletError, type TurnId } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { reachOf } from '../../../access/principal.ts'
import { turnsWithin } from '../../../store/access/reach.ts'
import { requireServed } from '../../../store/agents/agents.ts'
import { findClaimedTurns, findTurn } from '../../../store/reads/turns.ts'
import { type RequestOf, serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import type { Call, Caller } from '../internal/held-turns.ts'
import type { WorkerCalls } from '../internal/internal.ts'
import { patience } from '../internal/polls.ts'
import type { ComposedTurns } from './composed-turns.ts'

/** The longest poll. A proxy that closes idle connections after 15 s does not notice it. */
const longestPollMs = 10_000
/** The shortest poll: a turn that is queued needs some time to come from its queue. */
const minWaitMs = 500

type OneClaim = { worker: string; turnId: TurnId; claimId: string }
type ClaimOptions = { worker: string; claimId: string | undefined }

export function workerClaimRoutes(scope: FastifyInstance, services: Services, { claims, leases }: WorkerCalls, turns: ComposedTurns): void {
  const { db, polls } = services
  const { leaseMs, limits } = services.config
  // The poll of a worker that froze ends before its leases do, so it does not get its own turns again.
  const maxWaitMs = Math.min(longestPollMs, Math.floor(leaseMs / 2))
  const { bodyBytes, jsonItems, deltaBytes, turnBytes, stepsBytes } = limits

  const hello = async ({ body, principal, log }: RequestOf<typeof contract.workerHello>) => {
    const { protocol, ...greeting } = body
    // The API takes the turns of such a worker from their queues.
    await claims.hello({ principal, log, body: { ...greeting, takesQueues: true } })
    // A heartbeat may be lost, and the one after it.
    const times = { leaseMs, heartbeatMs: Math.ceil(leaseMs / 4), maxWaitMs }
    return { protocol, ...times, limits: { bodyBytes, jsonItems, deltaBytes, turnBytes, stepsBytes } }
  }
  serve(scope, contract.workerHello, hello, { preValidation: requireProtocol })

  serve(scope, contract.workerClaim, async (request, reply) => {
    const { principal, body, log } = request
    const { worker, agents, max, waitMs, claimId } = body
    const reach = reachOf(principal)
    const served = await requireServed(db, reach, agents)
    const reaches = async (turnId: TurnId) => (await turnsWithin(db, reach, [turnId])).has(turnId)
    const given = patience(services, reply, Math.min(Math.max(minWaitMs, waitMs), maxWaitMs))
    const caller = { principal, log }
    // The reply may have been lost.
    const before = claimId === undefined ? [] : await findClaimedTurns(db, worker, claimId)
    let claimed = await claimEach(caller, before, { worker, claimId })
    while (claimed.length === 0) {
      const found = await polls.nextTurns({ queues: [...served.keys()], reaches }, max, given)
      if (found.length === 0) break
      const ids = found.map(({ turnId }) => turnId)
      claimed = await claimEach(caller, ids, { worker, claimId })
    }
    // Nothing began, so the turns are as if they had never been claimed.
    if (reply.raw.destroyed) for (const turn of claimed) await leases.release({ principal, log, body: holdingOf(turn) })
    return { turns: claimed }
  })

  /** If a claim fails, its turn and those behind it go back to their queues. Throws if no turn was claimed before. */
  async function claimEach(caller: Caller, ids: readonly TurnId[], { worker, claimId }: ClaimOptions): Promise<ClaimedTurn[]> {
    const claimed: ClaimedTurn[] = []
    for (const [i, turnId] of ids.entries()) {
      const body = { worker, turnId, claimId: claimId ?? randomUUID() }
      try {
        const turn = await claimOne({ ...caller, body })
        if (turn) claimed.push(turn)
      } catch (error) {
        for (const left of ids.slice(i)) polls.settle(left, { backInMs: 1 })
        await releaseUnknown({ ...caller, body }).catch(err => caller.log.warn({ turnId, err }, 'a turn could not be released'))
        if (claimed.length === 0) throw error
        caller.log.warn({ turnId, err: error }, 'a turn could not be claimed')
        break
      }
    }
    return claimed
  }

  /** The claim failed, but it may be committed. */
  async function releaseUnknown({ principal, log, body: { turnId, claimId } }: Call<OneClaim>): Promise<void> {
    const turn = await findTurn(db, turnId)
    if (turn?.claim !== claimId || turn.epoch === null) return
    await leases.release({ principal, log, body: { turnId, claimId, epoch: turn.epoch } })
  }

  async function claimOne(call: Call<OneClaim>): Promise<ClaimedTurn | null> {
    const claim = await claims.claim(call)
    if (claim.result !== 'claimed') return null
    const { turnId, claimId } = call.body
    const held = { turn: turnId, claim: claimId, epoch: claim.epoch }
    const { task, turn, attempt, firstIndex, kept, state, keptState } = claim
    turns.open(held, { task: task.id, turn: turn.number, attempt, firstIndex, kept, state: keptState ?? state })
    return { ...held, ...describe(claim) }
  }
}

function describe({ task, turn, firstIndex, steps, ...claim }: Claim): Omit<ClaimedTurn, 'turn' | 'claim' | 'epoch'> {
  const { attempt, inputs = [], kept, state, keptState, secrets, limits, deadline, timeLeftMs, isolated } = claim
  const { isOverBudget, budget, waitedMs, traceparent } = claim
  const params = turn.params ?? task.params
  return {
    ...{ attempt, agent: task.agent, number: turn.number, task, inputs, history: { before: firstIndex }, kept },
    ...{ steps: steps.flatMap(({ name, memory }) => readStep(name, memory)), waits: turn.waits ?? [] },
    ...{ limits, deadline, timeLeftMs, isolated, isOverBudget },
    ...(params !== undefined && { params }),
    ...(state && { state }),
    ...(keptState && { keptState }),
    ...(secrets && { secrets }),
    ...(budget && { budget }),
    ...(waitedMs !== undefined && { waitedMs }),
    ...(traceparent && { traceparent }),
  }
}

/** A step that cannot be read is run again. */
function readStep(name: string, memory: string): ClaimedTurn['steps'] {
  try {
    return [{ messages: [], ...JSON.parse(memory), name }]
  } catch {
    return []
  }
}

function holdingOf({ turn, claim, epoch }: ClaimedTurn) {
  return { turnId: turn, claimId: claim, epoch }
}

/** Before the schema, because a later version may have other fields. */
async function requireProtocol({ body }: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { protocol } = (body ?? {}) as { protocol?: unknown }
  if (typeof protocol !== 'number' || workerProtocols.includes(protocol)) return
  const spoken = workerProtocols.join(', ')
  reply.header('upgrade', workerProtocols.map(version => `rivulet-worker/${version}`).join(', '))
  const details = [{ path: '/protocol', reason: `Must be one of ${spoken}` }]
  throw new RivuletError('unsupported_version', `This server speaks the worker protocol in version ${spoken}`, { details })
}
