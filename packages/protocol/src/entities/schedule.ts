/** A schedule: tasks that the server creates at times of a cron line. And a run: what became of one of those times. */
import { z } from 'zod'
import { jsonSchema } from '../values/json-schema.ts'
import { contentSchema } from './content.ts'
import { agentNameSchema, idSchema, taskIdSchema } from './ids.ts'

const time = z.iso.datetime()

/** If the run before has not ended: leave this one out, let it wait its turn, or stop the one before. */
export const overlapSchema = z.enum(['skip', 'queue', 'interrupt'])
/** After a time without a running server: leave out what was due, or run it once. */
export const missedSchema = z.enum(['skip', 'once'])

export const scheduleSchema = z.object({
  id: idSchema,
  agent: agentNameSchema,
  cron: z.string(),
  timezone: z.string(),
  input: contentSchema.optional(),
  params: jsonSchema.optional(),
  /** The name of the task that gets a turn for each run; without it each run is a task of its own. */
  name: z.string().optional(),
  overlap: overlapSchema,
  missed: missedSchema,
  status: z.enum(['active', 'paused']),
  createdAt: time,
  /** When it runs next; absent while it is paused, and when its cron line has no further time. */
  nextAt: time.optional(),
})

export const skipReasonSchema = z.enum(['overlap', 'missed', 'rejected'])

export const scheduleRunSchema = z.object({
  /** The time of the schedule, or of the trigger. */
  at: time,
  task: taskIdSchema.optional(),
  turn: z.int().optional(),
  skipReason: skipReasonSchema.optional(),
  /** With `rejected`: why the task could not be created. */
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  createdAt: time,
})

export type Schedule = z.output<typeof scheduleSchema>
export type ScheduleRun = z.output<typeof scheduleRunSchema>
export type SkipReason = z.output<typeof skipReasonSchema>
