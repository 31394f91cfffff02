/** What workers ask of the server over HTTP, below `/internal`. Redis carries the words; Postgres, behind these calls, knows what is true. */
import { z } from 'zod'
import { agentNameSchema, failureSchema, messageSchema, taskSchema, turnSchema, usageSchema } from './entities.ts'
import { jsonSchema } from './json.ts'
import { defaultLimits, maxStepName } from './limits.ts'
import { stopReasonSchema } from './status.ts'

const id = z.string().min(1).max(100)
const holding = z.strictObject({ turn: z.uuid(), epoch: z.int().min(1) })

/** What a step has come to. The worker alone reads it: the server keeps it as text, whatever its depth and size within the limit. */
export const stepMemorySchema = z.object({
  /** Absent when the step answered nothing. */
  result: jsonSchema.optional(),
  messages: z.array(messageSchema.pick({ content: true, metadata: true, status: true, stopReason: true, usage: true, error: true })),
})

const rememberedStep = z.object({ name: z.string().min(1).max(maxStepName), memory: z.string() })

const turnLimits = z.object({ deltaBytes: z.int(), turnBytes: z.int(), stepsBytes: z.int() })

export const helloBody = z.strictObject({
  worker: id,
  agents: z
    .array(z.strictObject({ name: agentNameSchema, description: z.string().max(1_000) }))
    .max(1_000)
    .refine(agents => new Set(agents.map(({ name }) => name)).size === agents.length, 'Name each agent once'),
})

export const claimBody = z.strictObject({ worker: id, turn: z.uuid(), claimId: id })

export const claimAnswer = z.discriminatedUnion('answer', [
  z.object({
    answer: z.literal('claimed'),
    epoch: z.int(),
    attempt: z.int(),
    task: taskSchema,
    turn: turnSchema,
    input: messageSchema.nullable(),
    firstIndex: z.int(),
    deadline: z.iso.datetime(),
    /** How far away the deadline is, for a worker whose clock is wrong. */
    timeLeftMs: z.int(),
    /** A worker died while it ran this turn: it should have a process of its own. */
    isolated: z.boolean(),
    /** What earlier claims of this turn have finished for good. */
    steps: z.array(rememberedStep).default([]),
    /** What the turn may say and remember. */
    limits: turnLimits.default(defaultLimits),
    /** How long ago the turn was queued. Absent from servers of before it was told, like what follows. */
    waitedMs: z.int().optional(),
    /** The trace that the turn is a part of, as W3C Trace Context has it. */
    traceparent: z.string().optional(),
  }),
  z.object({ answer: z.enum(['leased', 'settled']) }),
])

export const heartbeatBody = z.strictObject({
  worker: id,
  turns: z.array(holding).max(10_000),
  /** Turns of this worker whose log refused a write since the last heartbeat, because somebody else has them: for the server's books. */
  fenced: z.int().min(0).default(0),
})
/** Turns that this worker no longer holds: canceled, ended or given to another. */
export const heartbeatAnswer = z.object({ lost: z.array(z.uuid()) })

/** The claim tells a question that is asked again, because its answer was lost, from one of a worker that has lost the turn. */
export const reopenBody = z.strictObject({ ...holding.shape, claimId: id })
export const reopenAnswer = z.discriminatedUnion('answer', [
  z.object({ answer: z.literal('reopened'), epoch: z.int() }),
  z.object({ answer: z.literal('superseded') }),
])

/** By the claim, not the epoch: the same attempt may just be moving to another one. */
export const stepBody = z.strictObject({ turn: z.uuid(), claimId: id, ...rememberedStep.shape })
export const stepAnswer = z.object({ answer: z.enum(['remembered', 'superseded', 'too_large']) })

export const releaseBody = holding
export const releaseAnswer = z.object({ answer: z.enum(['released', 'superseded']) })

export const finishBody = z.strictObject({
  ...holding.shape,
  outcome: z.strictObject({
    status: z.enum(['completed', 'failed']),
    stopReason: stopReasonSchema.optional(),
    usage: usageSchema.optional(),
    error: failureSchema.optional(),
  }),
  /** How many entries the worker appended in this epoch. */
  n: z.int().min(0),
  /** The worker's own fold of its messages. */
  digest: z.string().max(64),
})
export const finishAnswer = z.object({ answer: z.enum(['committed', 'retrying', 'already', 'superseded', 'gap']) })

export const historyBody = z.strictObject({ task: z.uuid(), after: z.int32().min(0).optional() })
export const historyAnswer = z.object({ data: z.array(messageSchema), nextCursor: z.int().nullable() })

export type Hello = z.output<typeof helloBody>
export type ClaimAnswer = z.output<typeof claimAnswer>
export type Claim = Extract<ClaimAnswer, { answer: 'claimed' }>
export type Holding = z.output<typeof holding>
export type HeartbeatBody = z.output<typeof heartbeatBody>
export type ReopenBody = z.output<typeof reopenBody>
export type RememberedStep = z.output<typeof rememberedStep>
export type StepMemory = z.output<typeof stepMemorySchema>
export type StepBody = z.output<typeof stepBody>
export type StepAnswer = z.output<typeof stepAnswer>['answer']
export type FinishBody = z.output<typeof finishBody>
export type FinishAnswer = z.output<typeof finishAnswer>['answer']
