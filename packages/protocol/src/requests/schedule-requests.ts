/** The requests that manage schedules, and their responses. A schedule takes what a task takes, except what concerns a single moment. */
import { z } from 'zod'
import { idSchema } from '../entities/ids.ts'
import { missedSchema, overlapSchema, scheduleRunSchema, scheduleSchema } from '../entities/schedule.ts'
import { inputSchema, pageLimit, taskFields } from './requests.ts'

const scheduleFields = taskFields.omit({ history: true, start: true, delayMs: true, secrets: true }).extend({
  input: inputSchema.optional(),
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  cron: z.string().min(1).max(200),
  timezone: z.string().min(1).max(100).default('UTC'),
  overlap: overlapSchema.default('skip'),
  missed: missedSchema.default('skip'),
})

export const createScheduleBody = scheduleFields.refine(({ name, input }) => name === undefined || input !== undefined, {
  path: ['input'],
  message: 'A schedule with a name needs an input, because each run is a turn of the same task',
})

export const listSchedulesQuery = z.strictObject({ limit: pageLimit, cursor: idSchema.optional() })
export const listRunsQuery = z.strictObject({ limit: pageLimit, cursor: z.iso.datetime().optional() })

export const scheduleResponse = z.object({ schedule: scheduleSchema })
export const scheduleRunResponse = z.object({ run: scheduleRunSchema })

export type CreateSchedule = z.output<typeof createScheduleBody>
export type ListSchedules = z.output<typeof listSchedulesQuery>
export type ListRuns = z.output<typeof listRunsQuery>

export type CreateScheduleInput = z.input<typeof createScheduleBody>
