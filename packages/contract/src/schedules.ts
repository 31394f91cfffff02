/** The schedules of a tenant and their runs. */
import { agentNameSchema, contentSchema, idSchema, jsonSchema, taskIdSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { nothing, pageOf, route } from './route.ts'
import { inputSchema, taskFields } from './tasks/fields.ts'
import { pageLimit } from './values.ts'

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

const tag = 'schedules'
const reading = { tag, scope: 'tasks:read', ofAgents: true } as const
const writing = { tag, scope: 'tasks:write', ofAgents: true } as const
const params = z.object({ id: idSchema })

export const createSchedule = route('POST /v1/schedules', {
  ...writing,
  echoes: 201,
  body: createScheduleBody,
  returns: { 201: scheduleResponse },
  idempotencyKey: 'kept',
  audited: 'schedule.created',
  errors: ['unknown_agent', 'quota_exceeded'],
  doc: 'Creates a schedule',
})

export const listSchedules = route('GET /v1/schedules', {
  ...reading,
  query: listSchedulesQuery,
  returns: { 200: pageOf(scheduleSchema) },
  doc: 'Lists schedules, the oldest first',
})

export const getSchedule = route('GET /v1/schedules/:id', {
  ...reading,
  params,
  returns: { 200: scheduleResponse },
  errors: ['not_found'],
  doc: 'Returns a schedule',
})

export const deleteSchedule = route('DELETE /v1/schedules/:id', {
  ...writing,
  params,
  returns: { 204: nothing },
  audited: 'schedule.deleted',
  errors: ['not_found'],
  doc: 'Deletes a schedule and its history; its tasks stay',
})

export const pauseSchedule = route('POST /v1/schedules/:id/pause', {
  ...writing,
  params,
  returns: { 200: scheduleResponse },
  idempotencyKey: 'kept',
  audited: 'schedule.paused',
  errors: ['not_found'],
  doc: 'Pauses a schedule',
})

export const resumeSchedule = route('POST /v1/schedules/:id/resume', {
  ...writing,
  params,
  returns: { 200: scheduleResponse },
  idempotencyKey: 'kept',
  audited: 'schedule.resumed',
  errors: ['not_found'],
  doc: 'Resumes a schedule: it continues with its next time',
})

export const triggerSchedule = route('POST /v1/schedules/:id/trigger', {
  ...writing,
  addsWork: true,
  params,
  returns: { 202: scheduleRunResponse },
  idempotencyKey: 'kept',
  audited: 'schedule.triggered',
  errors: ['not_found', 'too_many_turns', 'quota_exceeded'],
  doc: 'Starts one run now, by the rule of overlap',
})

export const listScheduleRuns = route('GET /v1/schedules/:id/history', {
  ...reading,
  params,
  query: listRunsQuery,
  returns: { 200: pageOf(scheduleRunSchema) },
  errors: ['not_found'],
  doc: 'Lists the runs of a schedule, the newest first',
})

export type Schedule = z.output<typeof scheduleSchema>
export type ScheduleRun = z.output<typeof scheduleRunSchema>
export type SkipReason = z.output<typeof skipReasonSchema>

export type CreateSchedule = z.output<typeof createScheduleBody>
export type ListSchedules = z.output<typeof listSchedulesQuery>
export type ListRuns = z.output<typeof listRunsQuery>
export type CreateScheduleInput = z.input<typeof createScheduleBody>
