/** What a worker stores and reads while a turn runs: steps, usage, inputs that joined, and the history. */

import type { historyBody, stepBody, TakeBody, usageBody } from '@rivulet/contract/internal'
import * as contract from '@rivulet/contract/internal'
import { maxPageSize } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { listMessages } from '../../../store/reads/messages.ts'
import { findTurn } from '../../../store/reads/turns.ts'
import { rememberStep } from '../../../store/tasks/steps.ts'
import { hasClaimed } from '../../../store/turns/claim-turn.ts'
import { takeInputs } from '../../../store/turns/join-turns.ts'
import { isTurnOverBudget } from '../../../store/usage/record-usage.ts'
import { aboutTurn } from '../../../turns/about-turn.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import type { Call, HeldTurns } from './held-turns.ts'

type StepCalls = ReturnType<typeof createStepCalls>

export function stepRoutes(scope: FastifyInstance, { step, usage, take, history, largeBody }: StepCalls): void {
  serve(scope, contract.rememberStep, step, largeBody)
  serve(scope, contract.recordUsage, usage)
  serve(scope, contract.takeInputs, take)
  serve(scope, contract.readHistory, history)
}

export function createStepCalls(services: Services, { reaches, requireHeldTask, requireHolder }: HeldTurns) {
  const { db, spilling, announcing, metrics } = services
  const { limits } = services.config
  const { stepsBytes } = limits
  // The memory of a step is JSON within JSON: every quote in it takes a second byte.
  const largeBody = { bodyLimit: 2 * stepsBytes + limits.bodyBytes, onRequest: requireHolder(limits.bodyBytes) }
  return { step, usage, take, history, largeBody }

  async function step(request: Call<z.output<typeof stepBody>>) {
    const { body, log } = request
    if (!(await reaches(request, body.turnId))) return { result: 'superseded' as const, isOverBudget: false }
    const result = await rememberStep(db, body, stepsBytes, tx => services.usage.record(body.turnId, body.usage, tx))
    if (result === 'superseded') {
      metrics.fenced.inc({ write: 'step' })
      const turn = await findTurn(db, body.turnId)
      log.warn({ ...(turn && aboutTurn(turn)), step: body.name }, 'a worker tried to store a step of a turn that it no longer holds')
    }
    const hasUsed = result === 'remembered' && body.usage.length > 0
    return { result, isOverBudget: hasUsed && (await isTurnOverBudget(db, body.turnId)) }
  }

  async function usage(request: Call<z.output<typeof usageBody>>) {
    const { turnId, claimId, records } = request.body
    // An earlier claim is enough, because a worker that has lost the turn reports here what it had used.
    if (!(await reaches(request, turnId)) || !(await hasClaimed(db, turnId, claimId))) return { isOverBudget: false }
    await services.usage.record(turnId, records)
    return { isOverBudget: await isTurnOverBudget(db, turnId) }
  }

  async function take(request: Call<TakeBody>) {
    const joined = (await reaches(request, request.body.turnId)) ? await takeInputs(db, request.body) : null
    if (joined === null) metrics.fenced.inc({ write: 'take' })
    if (failpoint && joined?.length) await failpoint('taken')
    if (joined?.length) {
      const numbers = joined.map(({ turn }) => turn)
      await announcing.announceTaken(request.body.turnId, numbers)
    }
    return { joined }
  }

  async function history(request: Call<z.output<typeof historyBody>>) {
    const { turnId, claimId, after } = request.body
    const held = await requireHeldTask(request, turnId, claimId)
    const page = await listMessages(db, held.tenant, held.task, { after, limit: maxPageSize }, limits.pageBytes, 'kept')
    return spilling.putBack(db, held.tenant, page, limits.pageBytes)
  }
}
