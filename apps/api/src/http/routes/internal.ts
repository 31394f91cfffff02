/** The calls of workers. The lease in Postgres decides which worker runs a turn; the log follows. */
import {
  askBody,
  askResult,
  childBody,
  claimBody,
  claimResult,
  fileSchema,
  finishBody,
  finishResult,
  type Holding,
  heartbeatBody,
  heartbeatResult,
  helloBody,
  historyBody,
  historyResult,
  maxPageSize,
  parkBody,
  parkResult,
  type ReleaseBody,
  type RememberedStep,
  readFileBody,
  releaseBody,
  releaseResult,
  reopenBody,
  reopenResult,
  spawnBody,
  spawnResult,
  stepBody,
  stepResult,
  storeFileHeaders,
  type TurnId,
  takeBody,
  takeResult,
  usageBody,
  usageResult,
  waitsBody,
  waitsResult,
} from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { reachOf } from '../../access/principal.ts'
import { turnsWithin } from '../../store/access/reach.ts'
import { findChild } from '../../store/children/child-ends.ts'
import { createBatcher } from '../../store/connection/batcher.ts'
import { askTwice } from '../../store/connection/database-errors.ts'
import { taskNotFound } from '../../store/connection/tenant.ts'
import { completeFile, getFile, toFile } from '../../store/files/file-rows.ts'
import { registerWorker } from '../../store/reads/agents.ts'
import { findHeldTask, findTurn, findTurns, listMessages } from '../../store/reads/read.ts'
import { toMessage, toTask, toTurn } from '../../store/rows.ts'
import { rememberStep } from '../../store/tasks/steps.ts'
import type { ClaimClock } from '../../store/turns/claim-turn.ts'
import { claimTurn, hasClaimed } from '../../store/turns/claim-turn.ts'
import type { Claimed } from '../../store/turns/claimed.ts'
import { takeInputs } from '../../store/turns/join-turns.ts'
import { extendLeases, isHeldUnder, releaseTurn } from '../../store/turns/leases.ts'
import { reopenTurn } from '../../store/turns/reopen-turn.ts'
import { isOverBudget, isTurnOverBudget } from '../../store/usage/record-usage.ts'
import { answeredTurns, keptMessages } from '../../store/waits/held-waits.ts'
import { aboutTurn } from '../../turns/about-turn.ts'
import { needsOwnProcess } from '../../turns/turn-deaths.ts'
import type { Services } from '../services.ts'
import { acceptAnyBody, createTransferring } from './files.ts'

const overBudget = { code: 'budget_exceeded', message: 'The task has used its budget' }

/** Turns that are looked for in one question. */
const maxFound = 100

export function internalRoutes(scope: FastifyInstance, services: Services): void {
  const { db, leases, ending, deaths, waiting, childTasks, usage, announcer, announcing, relay, backlog, spilling, metrics } = services
  const { leaseMs, limits } = services.config
  const { deltaBytes, turnBytes, stepsBytes } = limits
  const config = { access: { scope: 'worker' } } as const
  const app = scope.withTypeProvider<ZodTypeProvider>()
  const tags = ['internal']
  const findEnding = createBatcher(maxFound, (ids: readonly string[]) => findTurns(db, ids))

  app.post('/hello', { config, schema: { tags, body: helloBody, response: { 200: z.object({}) } } }, async ({ body, principal }) => {
    await registerWorker(db, reachOf(principal), body)
    return {}
  })

  app.post('/claim', { config, schema: { tags, body: claimBody, response: { 200: claimResult } } }, async request => {
    const { body, log } = request
    const { turnId, claimId, worker } = body
    if (!(await reaches(request, turnId))) return { result: 'settled' as const }
    // Nothing is claimed that cannot be begun: its lease would run out, and count as a death.
    await announcer.ping()
    const claim = await claimTurn(db, { turnId, claim: claimId, worker, leaseMs })
    if (claim.result === 'unsent') {
      relay.kick()
      return { result: 'settled' as const }
    }
    if (claim.result !== 'claimed') return claim
    backlog.noteClaim(claim.claimed.task)
    if (failpoint) await failpoint('claimed')
    const { claimed, steps, clock, isAgain } = claim
    const waitedMs = clock.sinceDueMs
    if (!isAgain) metrics.turnWait.observe({ agent: metrics.agentLabel(claimed.task.agent) }, waitedMs / 1_000)
    log.debug({ ...aboutTurn(claimed.turn), agent: claimed.task.agent, worker, waitedMs, isAgain }, 'turn claimed')
    const isSpent = !isAgain && (await isOverBudget(db, claimed.task))
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
    }
  })

  app.post('/heartbeat', { config, schema: { tags, body: heartbeatBody, response: { 200: heartbeatResult } } }, async request => {
    const { worker, turns, fenced, waiting: known } = request.body
    metrics.fenced.inc({ write: 'append' }, fenced)
    const ids = turns.map(({ turnId }) => turnId)
    const within = await turnsWithin(leases, reachOf(request.principal), ids)
    const held = turns.filter(({ turnId }) => within.has(turnId))
    const { lost, takenBack } = await askTwice(() => extendLeases(leases, worker, held, leaseMs))
    metrics.takenBack.inc(takenBack.length)
    for (const turn of takenBack) request.log.warn({ ...aboutTurn(turn), worker }, 'a late worker resumed its turn')
    const answered = await answeredTurns(leases, known, within)
    return { lost: [...ids.filter(id => !within.has(id)), ...lost], answered }
  })

  app.post('/reopen', { config, schema: { tags, body: reopenBody, response: { 200: reopenResult } } }, async request => {
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
  })

  // Its memory is JSON within JSON: every quote in it takes a second byte.
  const bodyLimit = 2 * stepsBytes + limits.bodyBytes
  app.post('/step', { bodyLimit, config, schema: { tags, body: stepBody, response: { 200: stepResult } } }, async request => {
    const { body, log } = request
    if (!(await reaches(request, body.turnId))) return { result: 'superseded' as const, isOverBudget: false }
    const result = await rememberStep(db, body, stepsBytes, tx => usage.record(body.turnId, body.usage, tx))
    if (result === 'superseded') {
      metrics.fenced.inc({ write: 'step' })
      const turn = await findTurn(db, body.turnId)
      log.warn({ ...(turn && aboutTurn(turn)), step: body.name }, 'a worker tried to store a step of a turn that it no longer holds')
    }
    const hasUsed = result === 'remembered' && body.usage.length > 0
    return { result, isOverBudget: hasUsed && (await isTurnOverBudget(db, body.turnId)) }
  })

  app.post('/usage', { config, schema: { tags, body: usageBody, response: { 200: usageResult } } }, async request => {
    const { turnId, claimId, records } = request.body
    // An earlier claim is enough, because a worker that has lost the turn reports here what it had used.
    if (!(await reaches(request, turnId)) || !(await hasClaimed(db, turnId, claimId))) return { isOverBudget: false }
    await usage.record(turnId, records)
    return { isOverBudget: await isTurnOverBudget(db, turnId) }
  })

  app.post('/release', { config, schema: { tags, body: releaseBody, response: { 200: releaseResult } } }, async request => {
    const { body, log } = request
    if (!(await reaches(request, body.turnId))) return { result: 'superseded' as const }
    const released = await (body.blocked ? endBlocked(body, body.blocked) : releaseTurn(db, body))
    relay.kick()
    const turn = await findTurn(db, body.turnId)
    log.info({ ...(turn && aboutTurn(turn)), epoch: body.epoch, released }, 'a worker released a turn')
    return { result: released ? ('released' as const) : ('superseded' as const) }
  })

  app.post('/finish', { config, schema: { tags, body: finishBody, response: { 200: finishResult } } }, async request => {
    const { epoch, claimId: claim, outcome, n, digest } = request.body
    const turn = (await reaches(request, request.body.turnId)) && (await findEnding(request.body.turnId))
    if (!turn) return { result: 'superseded' as const }
    const { result, leavesWork } = await ending.finish({ turn, epoch, claim, outcome, appended: n, digest })
    if (failpoint) await failpoint('answering')
    if (leavesWork || backlog.isWaiting()) relay.kick()
    return { result }
  })

  app.post('/ask', { config, schema: { tags, body: askBody, response: { 200: askResult } } }, async request => {
    const { body } = request
    if (!(await reaches(request, body.turnId))) return { result: 'superseded' as const }
    const asked = await waiting.ask(body)
    if (asked.result === 'superseded') metrics.fenced.inc({ write: 'ask' })
    return asked
  })

  app.post('/spawn', { config, schema: { tags, body: spawnBody, response: { 200: spawnResult } } }, async request => {
    const { body } = request
    if (!(await reaches(request, body.turnId))) return { result: 'superseded' as const }
    const spawned = await childTasks.spawn(body, reachOf(request.principal).agents)
    if (spawned.result === 'superseded') metrics.fenced.inc({ write: 'spawn' })
    return spawned
  })

  app.post('/child', { config, schema: { tags, body: childBody, response: { 200: historyResult } } }, async request => {
    const { turnId, claimId, name, after } = request.body
    const held = await heldTask(request, turnId, claimId)
    const child = await findChild(db, turnId, name)
    if (!child) return { data: [], nextCursor: null }
    const page = await listMessages(db, held.tenant, child, { after, turn: 1, limit: maxPageSize }, limits.pageBytes)
    return spilling.putBack(db, held.tenant, page, limits.pageBytes)
  })

  app.post('/waits', { config, schema: { tags, body: waitsBody, response: { 200: waitsResult } } }, async request => {
    const { turnId, claimId } = request.body
    return { waits: (await reaches(request, turnId)) ? await waiting.read(turnId, claimId) : null }
  })

  app.post('/park', { config, schema: { tags, body: parkBody, response: { 200: parkResult } } }, async request => {
    const turn = (await reaches(request, request.body.turnId)) && (await findEnding(request.body.turnId))
    const result = turn ? await waiting.park(turn, request.body) : 'superseded'
    if (result === 'superseded') metrics.fenced.inc({ write: 'park' })
    if (failpoint) await failpoint('park answering')
    return { result }
  })

  app.post('/take', { config, schema: { tags, body: takeBody, response: { 200: takeResult } } }, async request => {
    const joined = (await reaches(request, request.body.turnId)) ? await takeInputs(db, request.body) : null
    if (joined === null) metrics.fenced.inc({ write: 'take' })
    if (failpoint && joined?.length) await failpoint('taken')
    return { joined }
  })

  app.post('/messages', { config, schema: { tags, body: historyBody, response: { 200: historyResult } } }, async request => {
    const { turnId, claimId, after } = request.body
    const held = await heldTask(request, turnId, claimId)
    const page = await listMessages(db, held.tenant, held.task, { after, limit: maxPageSize }, limits.pageBytes, 'kept')
    return spilling.putBack(db, held.tenant, page, limits.pageBytes)
  })

  const { upload, download } = createTransferring(services)

  app.post('/file', { config, schema: { tags, body: readFileBody, response: { 200: z.any() } } }, async (request, reply) => {
    const { turnId, claimId, file } = request.body
    const { task, tenant } = await heldTask(request, turnId, claimId)
    return download(request, reply, await getFile(db, tenant, file, task), `turn ${turnId}`)
  })

  scope.register(async own => {
    acceptAnyBody(own)
    own
      .withTypeProvider<ZodTypeProvider>()
      .post(
        '/files',
        { config, schema: { tags, consumes: ['*/*'], body: z.any(), response: { 200: z.object({ file: fileSchema }) } } },
        async request => {
          const head = storeFileHeaders.safeParse(request.headers)
          if (!head.success) throw taskNotFound()
          const { 'x-turn-id': turnId, 'x-claim-id': claimId } = head.data
          const { task, tenant } = await heldTask(request, turnId, claimId)
          const uploader = { tenant, caller: `turn ${turnId}`, uploadedFor: task }
          return upload(request, uploader, async file => ({ file: toFile(await db.transaction(tx => completeFile(tx, file))) }))
        },
      )
  })

  async function heldTask(request: FastifyRequest, turnId: TurnId, claimId: string) {
    const held = (await reaches(request, turnId)) && (await findHeldTask(db, turnId, claimId))
    if (!held) throw taskNotFound()
    return held
  }

  /** Whether the caller's key is for this turn. If it is not, the route returns what it returns for a turn that does not exist. */
  async function reaches({ principal, log }: Pick<FastifyRequest, 'principal' | 'log'>, turnId: TurnId): Promise<boolean> {
    const isWithin = (await turnsWithin(db, reachOf(principal), [turnId])).has(turnId)
    if (!isWithin) log.warn({ key: principal.key, turnId }, 'a worker requested a turn that its key does not allow')
    return isWithin
  }

  /** A worker is about to end because of this turn. */
  async function endBlocked(holding: Holding, { ms, stack }: NonNullable<ReleaseBody['blocked']>): Promise<boolean> {
    const turn = await findTurn(db, holding.turnId)
    if (!turn || !(await deaths.count(turn, 'dead', isHeldUnder(holding)))) return false
    metrics.blocked.inc()
    scope.log.error({ ...aboutTurn(turn), worker: turn.worker, blockedMs: ms, stack }, 'a turn blocked the event loop of its worker')
    return true
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
