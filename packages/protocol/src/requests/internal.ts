/** The calls of workers to the server, under `/internal`. Events go through Redis; claims, leases and results go through these calls to Postgres. */
import { z } from 'zod'
import { agentNameSchema, failureSchema, messageSchema, taskSchema, turnIdSchema, turnSchema, usageSchema } from '../entities/entities.ts'
import { stopReasonSchema } from '../entities/status-schema.ts'
import { defaultLimits, maxStepName } from '../limits.ts'
import { jsonSchema } from '../values/json-schema.ts'

const id = z.string().min(1).max(100)
/**
 * A turn as its worker holds it. The claim id is the worker's own secret: it proves the hold, and tells a question that is asked again, because
 * its answer was lost, from one of a worker that has lost the turn.
 */
const holding = z.strictObject({ turnId: turnIdSchema, epoch: z.int().min(1), claimId: id })

/** The outcome of a durable step. Only the worker reads it: the server stores it as text, whatever its depth, up to the size limit. */
export const stepMemorySchema = z.object({
  /** Absent when the step returned nothing. */
  result: jsonSchema.optional(),
  messages: z.array(messageSchema.pick({ content: true, metadata: true, status: true, stopReason: true, usage: true, error: true })),
  /** Usage that was counted in the step and that no message carries. */
  usage: usageSchema.optional(),
})

const rememberedStep = z.object({ name: z.string().min(1).max(maxStepName), memory: z.string() })

const turnLimits = z.object({ deltaBytes: z.int(), turnBytes: z.int(), stepsBytes: z.int() })

export const helloBody = z.strictObject({
  worker: id,
  agents: z
    .array(z.strictObject({ name: agentNameSchema, description: z.string().max(1_000) }))
    .max(1_000)
    .refine(agents => new Set(agents.map(({ name }) => name)).size === agents.length, 'Agent names must be unique'),
})

export const claimBody = z.strictObject({ worker: id, turnId: turnIdSchema, claimId: id })

export const claimResult = z.discriminatedUnion('result', [
  z.object({
    result: z.literal('claimed'),
    epoch: z.int(),
    attempt: z.int(),
    task: taskSchema,
    turn: turnSchema,
    input: messageSchema.nullable(),
    firstIndex: z.int(),
    deadline: z.iso.datetime(),
    /** The time until the deadline, for a worker whose clock is wrong. */
    timeLeftMs: z.int(),
    /** A worker died while it ran this turn, so the turn should run in its own process. */
    isolated: z.boolean(),
    /** The steps that earlier claims of this turn have finished. */
    steps: z.array(rememberedStep).default([]),
    /** The limits of the turn's output and steps. */
    limits: turnLimits.default(defaultLimits),
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
})
/** Turns that this worker no longer holds: canceled, ended or given to another. */
export const heartbeatResult = z.object({ lost: z.array(turnIdSchema) })

export const reopenBody = holding
export const reopenResult = z.discriminatedUnion('result', [
  z.object({ result: z.literal('reopened'), epoch: z.int() }),
  z.object({ result: z.literal('superseded') }),
])

/** By the claim, not the epoch: the same attempt may just be moving to another one. */
export const stepBody = z.strictObject({ turnId: turnIdSchema, claimId: id, ...rememberedStep.shape })
export const stepResult = z.object({ result: z.enum(['remembered', 'superseded', 'too_large']) })

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

/** The messages of the turn's task. By the claim, like a step. */
export const historyBody = z.strictObject({ turnId: turnIdSchema, claimId: id, after: z.int32().min(0).optional() })
export const historyResult = z.object({ data: z.array(messageSchema), nextCursor: z.int().nullable() })

export type Hello = z.output<typeof helloBody>
export type ClaimResult = z.output<typeof claimResult>
export type Claim = Extract<ClaimResult, { result: 'claimed' }>
export type Holding = z.output<typeof holding>
export type ReleaseBody = z.output<typeof releaseBody>
export type RememberedStep = z.output<typeof rememberedStep>
export type StepMemory = z.output<typeof stepMemorySchema>
export type StepBody = z.output<typeof stepBody>
export type StepResult = z.output<typeof stepResult>['result']
export type FinishBody = z.output<typeof finishBody>
export type FinishResult = z.output<typeof finishResult>['result']
