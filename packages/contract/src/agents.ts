/** The agents of a tenant, their workers, and how their turns went. */
import { agentNameSchema, jsonObjectSchema, maxActivityMinutes, taskIdSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { acceptsSchema, inputModesSchema, skillsSchema } from './agent-skill.ts'
import { nothing, route } from './route.ts'

const time = z.iso.datetime()

export const agentSchema = z.object({
  name: agentNameSchema,
  description: z.string(),
  /** JSON Schema of its params, if it has announced one. */
  params: jsonObjectSchema.optional(),
  /** Its defaults for new tasks, if it has announced any. */
  timeoutMs: z.int().min(1).optional(),
  maxAttempts: z.int().min(1).optional(),
  /** A turn stays with the version of the worker that began it. */
  pin: z.boolean().optional(),
  /** What it can do and take, if it has announced it. */
  skills: skillsSchema.optional(),
  inputModes: inputModesSchema.optional(),
  accepts: acceptsSchema.optional(),
  /** It accepts tasks of this tenant and starts none. Older servers omit it. */
  paused: z.boolean().optional(),
  workers: z.int().min(0),
  queued: z.int().min(0),
  running: z.int().min(0),
})

/** Length of a bucket in the activity of an hour or less; for longer, there are at most 240 buckets. */
export const activityBucketMs = 15_000

/** Turns that ended in the last minutes. A row without an agent counts all agents; a bucket in which no turn ended has no row. */
export const activitySchema = z.object({
  from: time,
  to: time,
  bucketMs: z.int().min(1),
  data: z.array(
    z.object({
      at: time,
      agent: agentNameSchema.nullable(),
      completed: z.int().min(0),
      failed: z.int().min(0),
      canceled: z.int().min(0),
      /** Median and 95th percentile from queued to started; null when none of the turns started. */
      waitMs: z.number().nullable(),
      slowWaitMs: z.number().nullable(),
      /** Median and 95th percentile from started to finished. */
      runMs: z.number().nullable(),
      slowRunMs: z.number().nullable(),
    }),
  ),
  /** How many turns of all agents were queued at the end of each bucket. */
  queued: z.array(z.int().min(0)),
})

/** A worker that was heard of in the last day, with the turns of the caller's tenant that it runs. */
export const workerSchema = z.object({
  id: z.string(),
  /** The release of its agents, else of its SDK. Absent for an older worker, like `slots`. */
  version: z.string().optional(),
  /** Turns of all tenants that it runs at a time, at most. */
  slots: z.int().min(1).optional(),
  agents: z.array(agentNameSchema),
  seenAt: time,
  /** Since it was last heard of, by the clock of Postgres. */
  silentMs: z.int().min(0),
  /** Whether it may hold a lease. */
  isLive: z.boolean(),
  turns: z.array(z.object({ task: taskIdSchema, turn: z.int().min(1), agent: agentNameSchema, startedAt: time })),
})

/** A version of workers, and how many turns of the caller's tenant began with it and have not ended. */
export const workerVersionSchema = z.object({
  version: z.string(),
  /** Of workers with a heartbeat in the last day. */
  agents: z.array(agentNameSchema),
  /** Workers that may hold a lease, and the turns that they run at a time, at most. */
  workers: z.int().min(0),
  slots: z.int().min(0),
  queued: z.int().min(0),
  running: z.int().min(0),
  waiting: z.int().min(0),
  /** No turn is left that began with this version: its workers can be stopped for good. */
  isDrained: z.boolean(),
})

/** Turns that failed for what looks like the same reason: the same agent and code, and the same message apart from its numbers and ids. */
export const errorGroupSchema = z.object({
  fingerprint: z.string(),
  agent: agentNameSchema,
  code: z.string(),
  /** Of the latest. */
  message: z.string(),
  count: z.int().min(1),
  tasks: z.int().min(1),
  firstAt: time,
  lastAt: time,
  lastTask: taskIdSchema,
})

export const changeAgentBody = z.strictObject({
  /** A paused agent accepts tasks and starts none. */
  paused: z.boolean(),
})

const tag = 'agents'
const reading = { tag, scope: 'tasks:read', ofAgents: true } as const
const administering = { tag, scope: 'admin' } as const
const params = z.object({ name: agentNameSchema })

function minutesQuery(normal: number) {
  const minutes = z
    .string()
    .regex(/^[1-9]\d{0,4}$/, `Use 1 to ${maxActivityMinutes}`)
    .transform(Number)
    .pipe(z.int().max(maxActivityMinutes))
    .default(normal)
  return z.strictObject({ minutes })
}

export const listAgents = route('GET /v1/agents', {
  ...reading,
  returns: { 200: z.object({ data: z.array(agentSchema) }) },
  errors: ['overloaded'],
  doc: 'Lists the agents that a worker has registered',
})

export const readActivity = route('GET /v1/agents/activity', {
  ...reading,
  query: minutesQuery(10),
  returns: { 200: activitySchema },
  errors: ['overloaded'],
  doc: 'Counts the turns that ended in the last minutes',
})

export const changeAgent = route('PATCH /v1/agents/:name', {
  ...administering,
  params,
  body: changeAgentBody,
  returns: { 200: z.object({ agent: agentSchema }) },
  audited: ['agent.resumed', 'agent.paused'],
  errors: ['not_found'],
  doc: 'Pauses or resumes an agent',
})

export const removeAgent = route('DELETE /v1/agents/:name', {
  ...administering,
  params,
  returns: { 204: nothing },
  audited: 'agent.removed',
  errors: ['not_found', 'agent_in_use'],
  doc: 'Removes an agent without workers',
})

export const listWorkers = route('GET /v1/workers', {
  ...reading,
  returns: { 200: z.object({ data: z.array(workerSchema) }) },
  errors: ['overloaded'],
  doc: 'Lists the workers, the latest heartbeat first',
  note: 'At most 200',
})

export const listVersions = route('GET /v1/versions', {
  ...reading,
  returns: { 200: z.object({ data: z.array(workerVersionSchema) }) },
  errors: ['overloaded'],
  doc: 'Lists the versions of the workers, the latest heartbeat first',
  note: 'At most 200',
})

export const groupErrors = route('GET /v1/errors', {
  ...reading,
  query: minutesQuery(1_440),
  returns: { 200: z.object({ data: z.array(errorGroupSchema) }) },
  errors: ['overloaded'],
  doc: 'Groups the turns that failed in the last minutes by their reason, the most frequent first',
  note: 'At most 100',
})

export type Agent = z.output<typeof agentSchema>
export type Activity = z.output<typeof activitySchema>
export type Worker = z.output<typeof workerSchema>
export type WorkerVersion = z.output<typeof workerVersionSchema>
export type ErrorGroup = z.output<typeof errorGroupSchema>
export type { Accepts, Skill } from './agent-skill.ts'
