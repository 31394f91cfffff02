/** How a worker registers, claims a turn with its secrets, and reopens the log of a turn that lost entries. */

import type { claimBody, Hello, Holding, helloResult, RememberedStep } from '@rivulet/contract/internal'
import * as contract from '@rivulet/contract/internal'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { isInstallations, reachOf } from '../../../access/principal.ts'
import { registerWorker, requireOwnWorker } from '../../../store/agents/agents.ts'
import { createBatcher } from '../../../store/connection/batcher.ts'
import { findTurn } from '../../../store/reads/turns.ts'
import { toMessage, toTask, toTurn } from '../../../store/rows.ts'
import { type ClaimClock, claimTurn, createQueuedClaims } from '../../../store/turns/claim-turn.ts'
import type { Claimed } from '../../../store/turns/claimed.ts'
import { reopenTurn } from '../../../store/turns/reopen-turn.ts'
import { isUsedUp, readBudgetLeft } from '../../../store/usage/record-usage.ts'
import { keptMessages } from '../../../store/waits/held-waits.ts'
import { aboutTurn } from '../../../turns/about-turn.ts'
import { needsOwnProcess } from '../../../turns/turn-deaths.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import type { Call, HeldTurns } from './held-turns.ts'

const unreadable = { code: 'secrets_unreadable', message: 'The secrets of this task cannot be decrypted; set them again' }
const overBudget = { code: 'budget_exceeded', message: 'The task has used its budget' }

type ClaimCalls = ReturnType<typeof createClaimCalls>

export function claimRoutes(scope: FastifyInstance, { hello, claim, reopen }: ClaimCalls): void {
  serve(scope, contract.registerWorker, hello)
  serve(scope, contract.claimTurn, claim)
  serve(scope, contract.reopenTurn, reopen)
}

export function createClaimCalls(services: Services, { reaches }: HeldTurns) {
  const { db, ending, announcer, announcing, relay, backlog, polls, metrics, vault } = services
  const { leaseMs, pinGraceMs, limits, prices } = services.config
  const { deltaBytes, turnBytes, stepsBytes } = limits
  const claimQueued = createQueuedClaims(db)
  const ping = createBatcher<void, void>(1_000, async () => {
    await announcer.ping()
    return []
  })
  return { hello, claim, reopen }

  async function hello({ body, principal }: Call<Hello>): Promise<z.output<typeof helloResult>> {
    return { queues: await registerWorker(db, reachOf(principal), principal.key, body) }
  }

  async function claim(request: Call<z.output<typeof claimBody>>) {
    const { principal, body } = request
    const { turnId } = body
    if (!(await reaches(request, turnId))) return { result: 'settled' as const }
    // The turns of a worker count towards its slots, which decide what the keys of its agents get.
    if (!isInstallations(principal)) await requireOwnWorker(db, principal.key, body.worker)
    const reply = await claimFor(request)
    polls.settle(turnId, reply.result === 'early' ? { backInMs: reply.waitMs } : 'done')
    return reply
  }

  async function claimFor({ body, log, principal }: Call<z.output<typeof claimBody>>) {
    const { turnId, claimId, worker } = body
    // Nothing is claimed that cannot be begun: its lease would run out, and count as a death.
    await ping()
    const claim = await claimTurn(
      db,
      { turnId, claim: claimId, worker, tenant: reachOf(principal).tenant, leaseMs, pinGraceMs },
      claimQueued,
    )
    if (claim.result === 'unsent') {
      relay.kick()
      return { result: 'settled' as const }
    }
    if (claim.result !== 'claimed') return claim
    backlog.noteClaim(claim.claimed.task)
    if (failpoint) await failpoint('claimed')
    const { claimed, steps, sealed, clock, isAgain } = claim
    const waitedMs = clock.sinceDueMs
    if (!isAgain) metrics.turnWait.observe({ agent: metrics.agentLabel(claimed.task.agent) }, waitedMs / 1_000)
    log.debug({ ...aboutTurn(claimed.turn), agent: claimed.task.agent, worker, waitedMs, isAgain }, 'turn claimed')
    const secrets = sealed && vault.open(claimed.task.tenant, sealed)
    if (sealed && !secrets) {
      log.error(
        { ...aboutTurn(claimed.turn), key: sealed.key },
        'no SECRETS_KEY of this API decrypts the secrets of a task, or they were changed',
      )
      await ending.end(claimed.turn, { status: 'failed', stopReason: 'error', error: unreadable })
      return { result: 'settled' as const }
    }
    const left = await readBudgetLeft(db, claimed.task)
    const isSpent = !isAgain && left !== null && isUsedUp(left)
    // A turn that goes on has paid for what it waited for: it ends before its next call of a model.
    if (isSpent && claimed.turn.resumed === null) {
      await ending.end(claimed.turn, { status: 'failed', stopReason: 'error', error: overBudget })
      return { result: 'settled' as const }
    }
    // Keyed and raised to this claim's epoch: a claim that is asked again, because its answer was lost, changes nothing.
    const started = await announcing.announceStart(claimed)
    if (!started) return { result: 'settled' as const }
    return {
      ...claimReply(started, steps, clock),
      kept: await keptMessages(db, started.turn),
      limits: { deltaBytes, turnBytes, stepsBytes },
      isOverBudget: isSpent,
      ...(left && { budget: { ...left, ...(left.usd !== undefined && { prices }) } }),
      ...(secrets && { secrets }),
    }
  }

  async function reopen(request: Call<Holding>) {
    const { body, log } = request
    if (!(await reaches(request, body.turnId))) return { result: 'superseded' as const }
    await announcer.ping()
    const held = await reopenTurn(db, body)
    if (failpoint) await failpoint('reopened')
    const reopened = held && (await announcing.announceStart(held))
    if (!reopened) {
      metrics.fenced.inc({ write: 'reopen' })
      const turn = await findTurn(db, body.turnId)
      log.warn({ ...(turn && aboutTurn(turn)), epoch: body.epoch }, 'a worker tried to reopen the log of a turn that it no longer holds')
      return { result: 'superseded' as const }
    }
    metrics.reopened.inc()
    log.warn({ ...aboutTurn(reopened.turn), epoch: reopened.turn.epoch }, 'log reopened after it lost entries')
    return { result: 'reopened' as const, epoch: reopened.turn.epoch }
  }
}

function claimReply({ task, turn, inputs, state, keptState }: Claimed, steps: RememberedStep[], { timeLeftMs, sinceQueuedMs }: ClaimClock) {
  return {
    result: 'claimed' as const,
    epoch: turn.epoch,
    attempt: turn.attempt,
    task: toTask(task),
    turn: toTurn(turn),
    input: inputs[0] ? toMessage(inputs[0]) : null,
    inputs: inputs.map(toMessage),
    firstIndex: turn.firstIndex,
    deadline: turn.deadline.toISOString(),
    timeLeftMs,
    isolated: needsOwnProcess(turn),
    steps,
    waitedMs: sinceQueuedMs,
    ...(state && { state }),
    ...(keptState && { keptState }),
    ...(turn.traceparent && { traceparent: turn.traceparent }),
  }
}
