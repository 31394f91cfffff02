/** The calls of workers to the server, under `/internal`. Events go through Redis; claims, leases and results go through these calls to Postgres. */
import {
  agentNameSchema,
  contentSchema,
  defaultLimits,
  failureSchema,
  fileIdSchema,
  formSchemaFault,
  jsonObjectSchema,
  jsonSchema,
  maxStepName,
  maxUsageRecords,
  maxWaitDays,
  maxWaits,
  messageSchema,
  paramsSchemaSchema,
  pricesSchema,
  speakerSchema,
  stateChangeSchema,
  stateSchema,
  stopReasonSchema,
  taskIdSchema,
  taskSchema,
  turnIdSchema,
  turnSchema,
  turnWaitSchema,
  usageRecordSchema,
  usageSchema,
  waitActionSchema,
  waitKindSchema,
} from '@rivulet/protocol'
import { z } from 'zod'
import { acceptsSchema, inputModesSchema, skillsSchema } from '../agent-skill.ts'
import { maxAttemptsSchema, taskFields, timeoutMsSchema, waitName } from '../tasks/fields.ts'

const id = z.string().min(1).max(100)
/**
 * A turn as its worker holds it. The claim id is the worker's own secret: it proves the hold, and tells a question that is asked again, because
 * its reply was lost, from one of a worker that has lost the turn.
 */
const holding = z.strictObject({ turnId: turnIdSchema, epoch: z.int().min(1), claimId: id })

/** The outcome of a durable step. Only the worker reads it: the server stores it as text, whatever its depth, up to the size limit. */
export const stepMemorySchema = z.object({
  /** Absent when the step returned nothing. */
  result: jsonSchema.optional(),
  messages: z.array(
    messageSchema
      .pick({ content: true, metadata: true, status: true, stopReason: true, usage: true, response: true, error: true })
      .extend({ author: speakerSchema.optional() }),
  ),
  /** Usage that was counted in the step and that no message carries. */
  usage: usageSchema.optional(),
  /** Changes of the task's state that were made in the step. */
  changes: z.array(stateChangeSchema).optional(),
})

const historyFields = { turnId: turnIdSchema, claimId: id, after: z.int32().min(0).optional() }

const rememberedStep = z.object({ name: z.string().min(1).max(maxStepName), memory: z.string() })

export const turnLimits = z.object({ deltaBytes: z.int(), turnBytes: z.int(), stepsBytes: z.int() })

/** What an agent announces for its tasks. */
export const agentSettingsSchema = z.strictObject({
  /** JSON Schema of the params: an object. */
  params: paramsSchemaSchema.optional(),
  /** Defaults for tasks that do not say. */
  timeoutMs: timeoutMsSchema.optional(),
  maxAttempts: maxAttemptsSchema.optional(),
  /** A turn stays with the version of the worker that began it. */
  pin: z.boolean().optional(),
  skills: skillsSchema.optional(),
  inputModes: inputModesSchema.optional(),
  accepts: acceptsSchema.optional(),
})

export const helloBody = z.strictObject({
  worker: id,
  /** It takes turns from the queues that the result names. Without it, its agents cannot have names that others have taken. */
  takesQueues: z.literal(true).optional(),
  /** The release of its agents, else of its SDK. Older workers omit it, and `slots`. */
  version: z.string().min(1).max(100).optional(),
  /** Turns that it runs at a time, at most. */
  slots: z.int().min(1).max(1_000_000).optional(),
  agents: z
    .array(z.strictObject({ name: agentNameSchema, description: z.string().max(1_000), ...agentSettingsSchema.shape }))
    .max(1_000)
    .refine(agents => new Set(agents.map(({ name }) => name)).size === agents.length, 'Agent names must be unique'),
})

/** `queues`: by agent, where the queue is named otherwise. Older servers omit it. */
export const helloResult = z.object({ queues: z.record(agentNameSchema, z.string().max(200)).optional() })

export const claimBody = z.strictObject({ worker: id, turnId: turnIdSchema, claimId: id })

export const claimResult = z.discriminatedUnion('result', [
  z.object({
    result: z.literal('claimed'),
    epoch: z.int(),
    attempt: z.int(),
    task: taskSchema,
    turn: turnSchema,
    input: messageSchema.nullable(),
    /** All inputs, in order. Older servers omit this field. */
    inputs: z.array(messageSchema).optional(),
    firstIndex: z.int(),
    deadline: z.iso.datetime(),
    /** The time until the deadline, for a worker whose clock is wrong. */
    timeLeftMs: z.int(),
    /** A worker died while it ran this turn, so the turn should run in its own process. */
    isolated: z.boolean(),
    /** The steps that earlier claims of this turn have finished. */
    steps: z.array(rememberedStep).default([]),
    /** The messages that the turn has stored when it parked: what it emits now begins with them. */
    kept: z.array(messageSchema).default([]),
    /** The state of the task before the turn, and as the turn had made it when it parked. Absent if it was never set. */
    state: stateSchema.optional(),
    keptState: stateSchema.optional(),
    /** In the clear, because the agent needs them. Absent without secrets. */
    secrets: z.record(z.string(), z.string()).optional(),
    /** The limits of the turn's output and steps. */
    limits: turnLimits.default(defaultLimits),
    /** Whether the task has used its budget, so that the turn may call no model. */
    isOverBudget: z.boolean().default(false),
    /** The rest of the task's budget, and the prices by which usage counts for `usd`. Older servers omit this field. */
    budget: z.object({ tokens: z.number().optional(), usd: z.number().optional(), prices: pricesSchema.optional() }).optional(),
    /** How long ago the turn was queued. Older servers omit this field and `traceparent`. */
    waitedMs: z.int().optional(),
    /** The trace of the turn, in W3C Trace Context form. */
    traceparent: z.string().optional(),
  }),
  /** Its time has not come by the clock of Postgres: the job goes back to the queue for so long. */
  z.object({ result: z.literal('early'), waitMs: z.int().min(1) }),
  z.object({ result: z.enum(['leased', 'settled']) }),
])

export const heartbeatBody = z.strictObject({
  worker: id,
  turns: z.array(holding).max(10_000),
  /** How many turns of this worker lost their log to a higher epoch since the last heartbeat. The server counts them in a metric. */
  fenced: z.int().min(0).default(0),
  /** The turns that wait for an answer in this worker, and how many open waits it knows of each. */
  waiting: z.record(turnIdSchema, z.int().min(1)).default({}),
})
/** Turns that this worker no longer holds: canceled, ended or given to another. And those of which a wait was closed. */
export const heartbeatResult = z.object({ lost: z.array(turnIdSchema), answered: z.array(turnIdSchema).default([]) })

/**
 * What the turns of a worker without Redis have said, in one batch. `entries` is one event as JSON in each line, numbered from `first` in its epoch, so
 * that a batch which is sent again is written once.
 */
export const appendBody = z.strictObject({
  appends: z
    .array(z.strictObject({ ...holding.shape, first: z.int().min(1), entries: z.string() }))
    .min(1)
    .max(1_000),
})
/** Of each append. `fenced` also for a turn that the worker does not hold. */
export const appendResult = z.object({
  results: z.array(z.enum(['ok', 'duplicate', 'gap', 'missing', 'fenced', 'closed', 'full'])),
})

export const pollMs = z.int().min(0).max(10_000)
/** The next turn of one of these agents, for a worker without Redis. Null if none came in time. */
export const nextBody = z.strictObject({ agents: z.array(agentNameSchema).min(1).max(1_000), waitMs: pollMs })
export const nextResult = z.object({ turn: z.object({ agent: agentNameSchema, turnId: turnIdSchema }).nullable() })

/** What a worker with Redis hears on its channel: turns that are over, and turns of which a wait was closed. Hints: the heartbeat tells the same. */
export const hintsBody = z.strictObject({ worker: id, waitMs: pollMs })
export const hintsResult = z.object({ over: z.array(turnIdSchema), answered: z.array(turnIdSchema) })

export const reopenBody = holding
export const reopenResult = z.discriminatedUnion('result', [
  z.object({ result: z.literal('reopened'), epoch: z.int() }),
  z.object({ result: z.literal('superseded') }),
])

/** By the claim, not the epoch: the same attempt may just be moving to another one. */
export const stepBody = z.strictObject({
  ...{ turnId: turnIdSchema, claimId: id, ...rememberedStep.shape },
  /** How long the step took. A worker of an earlier version does not tell. */
  durationMs: z.int().min(0).max(2_147_483_647).optional(),
  /** What the step used: it is stored with the step. */
  usage: z.array(usageRecordSchema).max(maxUsageRecords).default([]),
})
export const stepResult = z.object({ result: z.enum(['remembered', 'superseded', 'too_large']), isOverBudget: z.boolean().default(false) })

/** Usage that the log of the turn may not have: of a call that no message carries, or of a turn that this worker has lost. */
export const usageBody = z.strictObject({
  turnId: turnIdSchema,
  claimId: id,
  records: z.array(usageRecordSchema).min(1).max(maxUsageRecords),
})
export const usageResult = z.object({ isOverBudget: z.boolean() })

/** `blocked`: the turn blocked the event loop of its worker, which exits because of it. Such a release counts as a death; any other does not. */
export const releaseBody = z.strictObject({
  ...holding.shape,
  blocked: z.strictObject({ ms: z.int().min(0), stack: z.string().max(4_000) }).optional(),
})
export const releaseResult = z.object({ result: z.enum(['released', 'superseded']) })

export const finishBody = z.strictObject({
  ...holding.shape,
  outcome: z.strictObject({
    status: z.enum(['completed', 'failed']),
    stopReason: stopReasonSchema.optional(),
    usage: usageSchema.optional(),
    /** As viewers get it. */
    error: failureSchema.optional(),
    /** What was thrown, where that is more: for callers with a key, and for the log. */
    detail: z.string().optional(),
  }),
  /** How many entries the worker appended in this epoch. */
  n: z.int().min(0),
  /** The digest of the worker's own fold of its messages. */
  digest: z.string().max(64),
})
export const finishResult = z.object({ result: z.enum(['committed', 'retrying', 'already', 'superseded', 'gap']) })

export const wantedWait = z.strictObject({
  name: waitName,
  kind: waitKindSchema.exclude(['task']),
  index: z.int().min(0).optional(),
  title: z.string().min(1).max(500),
  detail: z.string().max(20_000).optional(),
  schema: jsonObjectSchema
    .superRefine((schema, context) => {
      const fault = formSchemaFault(schema)
      if (fault) context.addIssue({ code: 'custom', path: fault.path.split('/').slice(1), message: fault.reason })
    })
    .optional(),
  callId: z.string().max(200).optional(),
  tool: z.string().max(200).optional(),
  arguments: jsonSchema.optional(),
  argumentsSchema: paramsSchemaSchema.optional(),
  actions: z.array(waitActionSchema).max(3),
  assignee: z.string().min(1).max(200).optional(),
  metadata: jsonObjectSchema,
  expires: z.union([
    z.strictObject({
      inMs: z
        .int()
        .min(0)
        .max(maxWaitDays * 86_400_000),
    }),
    z.strictObject({ at: z.iso.datetime() }),
  ]),
})

/** Opens waits of a turn, all or none. A name that the turn has asked before is the same wait. By the claim, like a step. */
export const askBody = z.strictObject({ turnId: turnIdSchema, claimId: id, waits: z.array(wantedWait).min(1).max(maxWaits) })
export const askResult = z.discriminatedUnion('result', [
  /** `isTold`: they stand in the log. If not, the worker has to reopen it. */
  z.object({ result: z.literal('asked'), waits: z.array(turnWaitSchema), isTold: z.boolean() }),
  z.object({ result: z.enum(['superseded', 'too_many', 'too_large']) }),
])

export const wantedChild = z.strictObject({
  ...taskFields.pick({ agent: true, input: true, params: true, timeoutMs: true }).shape,
  name: waitName,
  /** The turn goes on without it. */
  detached: z.boolean(),
  onParentEnd: z.enum(['cancel', 'abandon']),
  callId: z.string().max(200).optional(),
})

/** Creates children of a turn. A name that the turn has spawned before is the same child. By the claim, like a step. */
export const spawnBody = z.strictObject({ turnId: turnIdSchema, claimId: id, children: z.array(wantedChild).min(1).max(maxWaits) })
export const spawnedChild = z.union([
  z.object({ name: z.string(), task: taskIdSchema }),
  /** A child that was refused: the limits of its tree, its agent or its params do not allow it. */
  z.object({ name: z.string(), error: failureSchema }),
])
export const spawnResult = z.discriminatedUnion('result', [
  /** `waits` has one for each child that the turn waits for. `isTold`: they stand in the log. If not, the worker has to reopen it. */
  z.object({ result: z.literal('spawned'), children: z.array(spawnedChild), waits: z.array(turnWaitSchema), isTold: z.boolean() }),
  z.object({ result: z.enum(['superseded', 'too_many', 'too_large']) }),
])

/** The messages of a child's first turn, by its name. By the claim of its parent. Empty if it was deleted. */
export const childBody = z.strictObject({ ...historyFields, name: waitName })

/** The waits of a turn as they are now. By the claim, like a step. */
export const waitsBody = z.strictObject({ turnId: turnIdSchema, claimId: id })
export const waitsResult = z.object({ waits: z.array(turnWaitSchema).nullable() })

/** Stores what the turn has emitted, and frees its worker until its waits are closed. `answered`: none of them is open any more. */
export const parkBody = z.strictObject({ ...holding.shape, n: z.int().min(0), digest: z.string().max(64) })
export const parkResult = z.object({ result: z.enum(['parked', 'answered', 'superseded', 'gap']) })

/**
 * Inputs of queued turns that join the turn, in order: those that joined it in an earlier attempt, and those that want to now. By the claim, like a
 * step. `after` and `upTo` are numbers of turns; `maxBytes` is how much the turn has room for.
 */
export const takeBody = z.strictObject({
  turnId: turnIdSchema,
  claimId: id,
  after: z.int().min(0),
  upTo: z.int().min(1).optional(),
  maxBytes: z.int().min(0),
})
export const joinedInput = z.object({ turn: z.int().min(1), inputs: z.array(contentSchema) })
/** Null when the turn is no longer this claim's. */
export const takeResult = z.object({ joined: z.array(joinedInput).nullable() })

/** The messages of the turn's task. By the claim, like a step. */
export const historyBody = z.strictObject(historyFields)
export const historyResult = z.object({ data: z.array(messageSchema), nextCursor: z.int().nullable() })

/** A file of the turn's task. By the claim, like a step. The upload has the turn and the claim in its headers, because its body is the file. */
export const readFileBody = z.strictObject({ turnId: turnIdSchema, claimId: id, file: fileIdSchema })
export const storeFileHeaders = z.object({ 'x-turn-id': turnIdSchema, 'x-claim-id': id })

export type AgentSettings = z.output<typeof agentSettingsSchema>
export type Hello = z.output<typeof helloBody>
export type ClaimResult = z.output<typeof claimResult>
export type Claim = Extract<ClaimResult, { result: 'claimed' }>
export type Holding = z.output<typeof holding>
export type ReleaseBody = z.output<typeof releaseBody>
export type RememberedStep = z.output<typeof rememberedStep>
export type StepMemory = z.output<typeof stepMemorySchema>
export type StepBody = z.input<typeof stepBody>
export type StepResult = z.output<typeof stepResult>
export type UsageBody = z.output<typeof usageBody>
export type WantedWait = z.output<typeof wantedWait>
export type AskBody = z.output<typeof askBody>
export type AskResult = z.output<typeof askResult>
export type WantedChild = z.output<typeof wantedChild>
export type WantedChildInput = z.input<typeof wantedChild>
export type SpawnBody = z.output<typeof spawnBody>
export type SpawnedChild = z.output<typeof spawnedChild>
export type SpawnResult = z.output<typeof spawnResult>
export type ParkBody = z.output<typeof parkBody>
export type ParkResult = z.output<typeof parkResult>['result']
export type TakeBody = z.output<typeof takeBody>
export type JoinedInput = z.output<typeof joinedInput>
export type AppendBody = z.output<typeof appendBody>
export type AppendResult = z.output<typeof appendResult>['results'][number]
export type NextBody = z.output<typeof nextBody>
export type NextTurn = z.output<typeof nextResult>['turn']
export type Hints = z.output<typeof hintsResult>
export type FinishBody = z.output<typeof finishBody>
export type FinishResult = z.output<typeof finishResult>['result']
