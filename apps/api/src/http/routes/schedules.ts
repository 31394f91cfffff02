/** Manages the schedules of a tenant, and shows their runs. */
import * as contract from '@rivulet/contract/schedules'
import { type Json, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { requirePublicHost } from '../../feed/private-addresses.ts'
import { requireAgent } from '../../store/agents/agents.ts'
import { readNowMs } from '../../store/connection/moments.ts'
import { sealOnEnd } from '../../store/feed/on-end-secrets.ts'
import { nextTime, requireCronLine } from '../../store/schedules/cron-times.ts'
import { createRun, type ScheduleDeps } from '../../store/schedules/run-schedule.ts'
import {
  deleteSchedule,
  findSchedule,
  insertSchedule,
  listRuns,
  listSchedules,
  lockSchedule,
  type ScheduleRow,
  setSchedule,
  toSchedule,
  toScheduleRun,
} from '../../store/schedules/schedules.ts'
import type { CancelBegun } from '../../store/tasks/cancel-task.ts'
import { createAudit, interruption } from '../requests/audited.ts'
import { respondOnce, sendResponse } from '../requests/idempotent.ts'
import { serve } from '../serve.ts'
import type { Services } from '../services.ts'

export function scheduleRoutes(scope: FastifyInstance, services: Services): void {
  const { databaseFor, ending, relay, capacity, vault, config } = services
  const { audited, note } = createAudit(services)
  const { limits, webhooks, maxSchedules } = config

  serve(scope, contract.createSchedule, async (request, reply) => {
    const { body, principal } = request
    const { tenant } = principal
    requireCronLine(body)
    if (body.onEnd && !webhooks.allowPrivate) requirePublicHost(body.onEnd.url, '/onEnd')
    const db = databaseFor(principal)
    await requireAgent(db, tenant, body.agent)
    const nextAt = nextTime(body, new Date(await readNowMs(db)))
    const response = await respondOnce(databaseFor(tenant), request, async tx => {
      const row = await insertSchedule(tx, tenant, { request: sealOnEnd(vault, tenant, body), nextAt, most: maxSchedules })
      if (!row) throw new RivuletError('quota_exceeded', `A tenant may have at most ${maxSchedules} schedules (MAX_SCHEDULES_PER_TENANT)`)
      await note(request, { target: row.id, details: { agent: body.agent, status: row.status } })(tx)
      return { status: 201, body: { schedule: toSchedule(row) } as Json }
    })
    return sendResponse(reply, response)
  })

  serve(scope, contract.listSchedules, async ({ query, principal }) => {
    const rows = await listSchedules(databaseFor(principal), principal.tenant, { ...query, limit: query.limit + 1 })
    const shown = rows.slice(0, query.limit)
    return { data: shown.map(toSchedule), nextCursor: rows.length > shown.length ? (shown.at(-1)?.id ?? null) : null }
  })

  serve(scope, contract.getSchedule, async ({ params: { id }, principal }) => ({
    schedule: toSchedule(found(await findSchedule(databaseFor(principal), principal.tenant, id))),
  }))

  serve(scope, contract.deleteSchedule, async request => {
    const { id } = request.params
    const { tenant } = request.principal
    await audited(databaseFor(tenant), request, { target: id }, async tx => {
      if (!(await deleteSchedule(tx, tenant, id))) throw noSchedule()
    })
    return null
  })

  serve(scope, contract.pauseSchedule, async (request, reply) => change(request, reply, () => ({ status: 'paused', nextAt: null })))

  // What was due while it was paused was not missed: it continues with its next time.
  serve(scope, contract.resumeSchedule, async (request, reply) => {
    const now = new Date(await readNowMs(databaseFor(request.principal)))
    return change(request, reply, ({ status, nextAt, request: task }) => ({
      status: 'active',
      nextAt: status === 'active' ? nextAt : nextTime(task, now),
    }))
  })

  serve(scope, contract.triggerSchedule, async (request, reply) => {
    const { tenant } = request.principal
    let interrupted: CancelBegun | undefined
    const response = await respondOnce(databaseFor(tenant), request, async tx => {
      const schedule = found(await lockSchedule(tx, tenant, request.params.id))
      const interrupt: ScheduleDeps['interrupt'] = (inner, _tenant, task) =>
        ending.beginInterrupt(inner, request.principal, task, note(request, interruption(task)))
      const created = await createRun(tx, schedule, new Date(), { maxQueuedTurns: limits.queuedTurns, admit: capacity.admit, interrupt })
      if (!created) throw new RivuletError('in_flight', 'The schedule was triggered in the same millisecond')
      interrupted = created.interrupted
      await note(request, { target: schedule.id })(tx)
      return { status: 202, body: { run: toScheduleRun(created.run) } as Json }
    })
    if (interrupted) await ending.completeInterrupt(interrupted)
    relay.kick()
    return sendResponse(reply, response)
  })

  serve(scope, contract.listScheduleRuns, async ({ params: { id }, query, principal }) => {
    const { tenant } = principal
    const db = databaseFor(principal)
    found(await findSchedule(db, tenant, id))
    const rows = await listRuns(db, tenant, id, { ...query, limit: query.limit + 1 })
    const data = rows.slice(0, query.limit).map(toScheduleRun)
    return { data, nextCursor: rows.length > data.length ? (data.at(-1)?.at ?? null) : null }
  })

  async function change(
    request: FastifyRequest & { params: { id: string } },
    reply: FastifyReply,
    to: (row: ScheduleRow) => Pick<ScheduleRow, 'status' | 'nextAt'>,
  ): Promise<FastifyReply> {
    const { id } = request.params
    const { tenant } = request.principal
    const response = await respondOnce(databaseFor(tenant), request, async tx => {
      const row = found(await setSchedule(tx, tenant, id, to(found(await lockSchedule(tx, tenant, id)))))
      await note(request, { target: id })(tx)
      return { status: 200, body: { schedule: toSchedule(row) } as Json }
    })
    return sendResponse(reply, response)
  }
}

function found(row: ScheduleRow | undefined): ScheduleRow {
  if (!row) throw noSchedule()
  return row
}

function noSchedule(): RivuletError {
  return new RivuletError('not_found', 'No such schedule')
}
