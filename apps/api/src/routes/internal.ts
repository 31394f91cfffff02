/** What workers ask. The lease in Postgres decides who runs a turn; the log follows. */
import {
  claimAnswer,
  claimBody,
  finishAnswer,
  finishBody,
  heartbeatAnswer,
  heartbeatBody,
  helloBody,
  historyAnswer,
  historyBody,
  maxPageSize,
  type RememberedStep,
  releaseAnswer,
  releaseBody,
  reopenAnswer,
  reopenBody,
  stepAnswer,
  stepBody,
} from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { aboutTurn } from '../about-turn.ts'
import type { Services } from '../services.ts'
import { registerWorker } from '../store/agents.ts'
import { type Claimed, claimTurn, reopenTurn } from '../store/claim-turn.ts'
import { createGathering } from '../store/gathering.ts'
import { extendLeases, releaseTurn } from '../store/leases.ts'
import { findTurn, findTurns, getTask, listMessages } from '../store/read.ts'
import { toMessage, toTask, toTurn } from '../store/rows.ts'
import { rememberStep } from '../store/steps.ts'
import { everyTenant } from '../store/tenant.ts'

/** Turns that are looked for in one question. */
const maxFound = 100

export function internalRoutes(scope: FastifyInstance, services: Services): void {
  const { db, ending, announcer, announcing, relay, metrics } = services
  const { leaseMs, limits } = services.config
  const { deltaBytes, turnBytes, stepsBytes } = limits
  const config = { access: { scope: 'worker' } } as const
  const app = scope.withTypeProvider<ZodTypeProvider>()
  const tags = ['internal']
  const findEnding = createGathering(maxFound, (ids: readonly string[]) => findTurns(db, ids))

  app.post('/hello', { config, schema: { tags, body: helloBody, response: { 200: z.object({}) } } }, async ({ body }) => {
    await registerWorker(db, body)
    return {}
  })

  app.post('/claim', { config, schema: { tags, body: claimBody, response: { 200: claimAnswer } } }, async ({ body, log }) => {
    const { turn, claimId, worker } = body
    // Nothing is claimed that cannot be begun: its lease would run out, and count as a death.
    await announcer.ping()
    const result = await claimTurn(db, { turn, claim: claimId, worker, leaseMs })
    if (result.answer !== 'claimed') return result
    // failpoint: claimed
    const { claimed, steps, isAgain } = result
    const waitedMs = Math.max(0, Date.now() - claimed.turn.runAt.getTime())
    if (!isAgain) metrics.turnWait.observe({ agent: metrics.agentLabel(claimed.task.agent) }, waitedMs / 1_000)
    log.debug({ ...aboutTurn(claimed.turn), agent: claimed.task.agent, worker, waitedMs, isAgain }, 'turn claimed')
    // Keyed and raised to this claim's epoch: a claim that is asked again, because its answer was lost, changes nothing.
    return (await announcing.announceStart(claimed))
      ? { ...describeClaim(claimed, steps), limits: { deltaBytes, turnBytes, stepsBytes } }
      : { answer: 'settled' as const }
  })

  app.post('/heartbeat', { config, schema: { tags, body: heartbeatBody, response: { 200: heartbeatAnswer } } }, async ({ body }) => {
    metrics.fenced.inc({ write: 'append' }, body.fenced)
    return { lost: await extendLeases(db, body.worker, body.turns, leaseMs) }
  })

  app.post('/reopen', { config, schema: { tags, body: reopenBody, response: { 200: reopenAnswer } } }, async ({ body, log }) => {
    await announcer.ping()
    const reopened = await reopenTurn(db, body)
    // failpoint: reopened
    if (!reopened || !(await announcing.announceStart(reopened))) {
      metrics.fenced.inc({ write: 'reopen' })
      const turn = await findTurn(db, body.turn)
      log.warn({ ...(turn && aboutTurn(turn)), epoch: body.epoch }, 'a worker that no longer holds its turn wanted to reopen its log')
      return { answer: 'superseded' as const }
    }
    metrics.reopened.inc()
    log.warn({ ...aboutTurn(reopened.turn), epoch: reopened.turn.epoch }, 'log reopened after it lost entries')
    return { answer: 'reopened' as const, epoch: reopened.turn.epoch }
  })

  // Its memory is JSON within JSON: every quote in it takes a second byte.
  const bodyLimit = 2 * stepsBytes + limits.bodyBytes
  app.post('/step', { bodyLimit, config, schema: { tags, body: stepBody, response: { 200: stepAnswer } } }, async ({ body, log }) => {
    const answer = await rememberStep(db, body, stepsBytes)
    if (answer === 'superseded') {
      metrics.fenced.inc({ write: 'step' })
      const turn = await findTurn(db, body.turn)
      log.warn({ ...(turn && aboutTurn(turn)), step: body.name }, 'a worker that no longer holds its turn wanted to remember a step')
    }
    return { answer }
  })

  app.post('/release', { config, schema: { tags, body: releaseBody, response: { 200: releaseAnswer } } }, async ({ body, log }) => {
    const released = await releaseTurn(db, body)
    relay.kick()
    const turn = await findTurn(db, body.turn)
    log.info({ ...(turn && aboutTurn(turn)), epoch: body.epoch, released }, 'a worker gave a turn back')
    return { answer: released ? ('released' as const) : ('superseded' as const) }
  })

  app.post('/finish', { config, schema: { tags, body: finishBody, response: { 200: finishAnswer } } }, async ({ body }) => {
    const { epoch, outcome, n, digest } = body
    const turn = await findEnding(body.turn)
    if (!turn) return { answer: 'superseded' as const }
    const { answer, leavesWork } = await ending.finish({ turn, epoch, outcome, appended: n, digest })
    // failpoint: answering
    if (leavesWork) relay.kick()
    return { answer }
  })

  app.post('/messages', { config, schema: { tags, body: historyBody, response: { 200: historyAnswer } } }, async ({ body }) => {
    const { task, after } = body
    await getTask(db, everyTenant, task)
    return listMessages(db, everyTenant, task, { after, limit: maxPageSize })
  })
}

function describeClaim({ task, turn, input }: Claimed, steps: RememberedStep[]) {
  return {
    answer: 'claimed' as const,
    epoch: turn.epoch,
    attempt: turn.attempt,
    task: toTask(task),
    turn: toTurn(turn),
    input: input && toMessage(input),
    firstIndex: turn.firstIndex,
    deadline: turn.deadline.toISOString(),
    timeLeftMs: turn.deadline.getTime() - Date.now(),
    isolated: turn.deaths > 0,
    steps,
    waitedMs: Math.max(0, Date.now() - turn.queuedAt.getTime()),
    ...(turn.traceparent && { traceparent: turn.traceparent }),
  }
}
