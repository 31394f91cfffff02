/** Manages schedules: tasks that the server creates at times of a cron line. */
import type { CreateScheduleInput, Schedule, ScheduleRun } from '@rivulet/contract/schedules'
import type { CallOptions, Http } from './http/http.ts'
import { pathOf } from './http/path-of.ts'
import { type Page, readField, readNothing, readPage } from './http/responses.ts'

export type ScheduleQuery = { limit?: number | undefined; cursor?: string | undefined }

type OnceOptions = CallOptions & { idempotencyKey?: string }

export type ScheduleCalls = {
  create(body: CreateScheduleInput, options?: OnceOptions): Promise<Schedule>
  /** Oldest first. */
  list(query?: ScheduleQuery, options?: CallOptions): Promise<Page<Schedule>>
  get(id: string, options?: CallOptions): Promise<Schedule>
  pause(id: string, options?: CallOptions): Promise<Schedule>
  resume(id: string, options?: CallOptions): Promise<Schedule>
  /** Runs it once, now. Its own times stay as they are. */
  trigger(id: string, options?: OnceOptions): Promise<ScheduleRun>
  /** What became of its times, newest first. */
  history(id: string, query?: ScheduleQuery, options?: CallOptions): Promise<Page<ScheduleRun>>
  remove(id: string, options?: CallOptions): Promise<void>
}

export function createScheduleCalls({ call }: Http): ScheduleCalls {
  const path = '/v1/schedules'
  const read = readField<Schedule>('schedule')
  return {
    create: (body, own) => call({ method: 'POST', path, body, ...own, read }),
    list: (query, own) => call({ path, query, ...own, read: readPage<Schedule>('schedule') }),
    get: (id, own) => call({ path: pathOf('schedules', id), ...own, read }),
    pause: (id, own) => call({ method: 'POST', path: `${pathOf('schedules', id)}/pause`, ...own, read }),
    resume: (id, own) => call({ method: 'POST', path: `${pathOf('schedules', id)}/resume`, ...own, read }),
    trigger: (id, own) =>
      call({
        method: 'POST',
        path: `${pathOf('schedules', id)}/trigger`,
        ...own,
        read: readField<ScheduleRun>('report', 'run'),
      }),
    history: (id, query, own) => call({ path: `${pathOf('schedules', id)}/history`, query, ...own, read: readPage<ScheduleRun>('report') }),
    remove: (id, own) => call({ method: 'DELETE', path: pathOf('schedules', id), ...own, read: readNothing }),
  }
}
