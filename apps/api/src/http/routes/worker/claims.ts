/** How a worker announces itself, and claims turns. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Claim,
  type ClaimedTurn,
  RivuletError,
  type TurnId,
  workerClaimBody,
  workerClaimResult,
  workerHelloBody,
  workerHelloResult,
  workerProtocols,
} from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { reachOf } from '../../../access/principal.ts'
import { turnsWithin } from '../../../store/access/reach.ts'
import { requireServed } from '../../../store/agents/agents.ts'
import type { Services } from '../../services.ts'
import { type Call, config } from '../internal/held-turns.ts'
import type { WorkerCalls } from '../internal/internal.ts'
import { patience } from '../internal/polls.ts'
import type { ComposedTurns } from './composed-turns.ts'

export const tags = ['worker']
/** The longest poll. A proxy that closes idle connections after 15 s does not notice it. */
const longestPollMs = 10_000
/** Turns that come so close behind the first belong to the same claim. */
const togetherMs = 5

export function workerClaimRoutes(scope: FastifyInstance, services: Services, { claims, leases }: WorkerCalls, turns: ComposedTurns): void {
  const { db, polls } = services
  const { leaseMs, limits } = services.config
  // The poll of a worker that froze ends before its leases do, so it does not get its own turns again.
  const maxWaitMs = Math.min(longestPollMs, Math.floor(leaseMs / 2))
  const { bodyBytes, jsonItems, deltaBytes, turnBytes, stepsBytes } = limits
  const app = scope.withTypeProvider<ZodTypeProvider>()

  const hello = { tags, body: workerHelloBody, response: { 200: workerHelloResult } }
  app.post('/hello', { config, preValidation: requireProtocol, schema: hello }, async ({ body, principal, log }) => {
    const { protocol, ...greeting } = body
    // The API takes the turns of such a worker from their queues.
    await claims.hello({ principal, log, body: { ...greeting, takesQueues: true } })
    // A heartbeat may be lost, and the one after it.
    const times = { leaseMs, heartbeatMs: Math.ceil(leaseMs / 4), maxWaitMs }
    return { protocol, ...times, limits: { bodyBytes, jsonItems, deltaBytes, turnBytes, stepsBytes } }
  })

  app.post('/claim', { config, schema: { tags, body: workerClaimBody, response: { 200: workerClaimResult } } }, async (request, reply) => {
    const { principal, body, log } = request
    const { worker, agents, max, waitMs } = body
    const reach = reachOf(principal)
    const served = await requireServed(db, reach, agents)
    const reaches = async (turnId: TurnId) => (await turnsWithin(db, reach, [turnId])).has(turnId)
    const given = patience(services, reply, Math.min(waitMs, maxWaitMs))
    const claimed: ClaimedTurn[] = []
    while (claimed.length === 0) {
      const found = await nextTurns({ queues: [...served.keys()], reaches }, max, given)
      for (const turnId of found) {
        const turn = await claimOne({ principal, log, body: { worker, turnId, claimId: randomUUID() } })
        if (turn) claimed.push(turn)
      }
      if (found.length === 0) break
    }
    // Nothing began, so the turns are as if they had never been claimed.
    if (reply.raw.destroyed) for (const turn of claimed) await leases.release({ principal, log, body: holdingOf(turn) })
    return { turns: claimed }
  })

  /** Waits for one turn, and takes those that come with it. */
  async function nextTurns(poll: Parameters<typeof polls.next>[0], max: number, given: AbortSignal): Promise<TurnId[]> {
    const enough = new AbortController()
    const signal = AbortSignal.any([given, enough.signal])
    const waiting = Array.from({ length: max }, () => polls.next(poll, signal))
    await Promise.race(waiting)
    if (max > 1 && !given.aborted) await sleep(togetherMs)
    enough.abort()
    return (await Promise.all(waiting)).flatMap(turn => turn?.turnId ?? [])
  }

  async function claimOne(call: Call<{ worker: string; turnId: TurnId; claimId: string }>): Promise<ClaimedTurn | null> {
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
