/** What a worker stores and reads while a turn runs: steps, usage, inputs that joined, and the history. */
import {
  historyBody,
  historyResult,
  maxPageSize,
  stepBody,
  stepResult,
  takeBody,
  takeResult,
  usageBody,
  usageResult,
} from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { listMessages } from '../../../store/reads/messages.ts'
import { findTurn } from '../../../store/reads/turns.ts'
import { rememberStep } from '../../../store/tasks/steps.ts'
import { hasClaimed } from '../../../store/turns/claim-turn.ts'
import { takeInputs } from '../../../store/turns/join-turns.ts'
import { isTurnOverBudget } from '../../../store/usage/record-usage.ts'
import { aboutTurn } from '../../../turns/about-turn.ts'
import type { Services } from '../../services.ts'
import { config, type HeldTurns, tags } from './held-turns.ts'

export function stepRoutes(scope: FastifyInstance, services: Services, { reaches, requireHeldTask, requireHolder }: HeldTurns): void {
  const { db, usage, spilling, announcing, metrics } = services
  const { limits } = services.config
  const { stepsBytes } = limits
  const app = scope.withTypeProvider<ZodTypeProvider>()

  // Its memory is JSON within JSON: every quote in it takes a second byte.
  const bodyLimit = 2 * stepsBytes + limits.bodyBytes
  const onRequest = requireHolder(limits.bodyBytes)
  app.post('/step', { bodyLimit, onRequest, config, schema: { tags, body: stepBody, response: { 200: stepResult } } }, async request => {
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

  app.post('/take', { config, schema: { tags, body: takeBody, response: { 200: takeResult } } }, async request => {
    const joined = (await reaches(request, request.body.turnId)) ? await takeInputs(db, request.body) : null
    if (joined === null) metrics.fenced.inc({ write: 'take' })
    if (failpoint && joined?.length) await failpoint('taken')
    if (joined?.length) {
      const numbers = joined.map(({ turn }) => turn)
      await announcing.announceTaken(request.body.turnId, numbers)
    }
    return { joined }
  })

  app.post('/messages', { config, schema: { tags, body: historyBody, response: { 200: historyResult } } }, async request => {
    const { turnId, claimId, after } = request.body
    const held = await requireHeldTask(request, turnId, claimId)
    const page = await listMessages(db, held.tenant, held.task, { after, limit: maxPageSize }, limits.pageBytes, 'kept')
    return spilling.putBack(db, held.tenant, page, limits.pageBytes)
  })
}
