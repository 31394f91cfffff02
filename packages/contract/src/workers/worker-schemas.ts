/**
 * The public protocol of workers, under `/worker/v1`: HTTP and JSON, for any language. A worker sends updates, and the server composes the events of the log
 * from them. It grows by optional fields only; anything else is a new version, which `hello` negotiates.
 */
import {
  agentNameSchema,
  contentSchema,
  failureSchema,
  jsonObjectSchema,
  jsonSchema,
  maxInputs,
  maxWaits,
  messageSchema,
  pricesSchema,
  stateSchema,
  stopReasonSchema,
  taskSchema,
  turnIdSchema,
  turnWaitSchema,
  updateSchema,
  usageSchema,
} from '@rivulet/protocol'
import { z } from 'zod'
import {
  finishBody,
  helloBody,
  joinedInput,
  pollMs,
  releaseBody,
  spawnedChild,
  stepBody,
  stepMemorySchema,
  stepResult,
  turnLimits,
  usageBody,
  wantedChild,
  wantedWait,
} from './internal-schemas.ts'

/** The versions of the protocol that this server speaks. */
export const workerProtocols: readonly number[] = [1]
const id = z.string().min(1).max(100)
/** The claim is what proves the hold of a turn. */
const claimed = { turn: turnIdSchema, claim: id }
/** The epoch is the one that the claim or the last append has returned. */
const held = { ...claimed, epoch: z.int().min(1) }
const number = z.int().min(0)

export const workerHelloBody = helloBody.omit({ takesQueues: true }).extend({ protocol: z.int() })
export const workerHelloResult = z.object({
  protocol: z.int(),
  /** How long a silent worker keeps its turns, and how often it should renew them. */
  leaseMs: z.int(),
  heartbeatMs: z.int(),
  /** The longest `waitMs`. */
  maxWaitMs: z.int(),
  limits: turnLimits.extend({ bodyBytes: z.int(), jsonItems: z.int() }),
})

export const workerClaimBody = z.strictObject({
  worker: id,
  agents: z.array(agentNameSchema).min(1).max(1_000),
  /** Free slots of the worker. */
  max: z.int().min(1).max(100).default(1),
  /** Names the claim, so that it can be repeated: a claim with the same id returns the turns that it has claimed. Another for each claim. */
  claimId: id.optional(),
  /** How long to wait for a turn. Below 500, it is 500. */
  waitMs: pollMs.default(5_000),
})

/** A step that an earlier claim of the turn has finished. It is not run again. */
const finishedStep = z.object({ name: z.string(), ...stepMemorySchema.shape })

const claimedTurn = z.object({
  ...held,
  attempt: z.int(),
  agent: agentNameSchema,
  /** The number of the turn in its task. */
  number: z.int(),
  task: taskSchema,
  params: jsonSchema.optional(),
  inputs: z.array(messageSchema),
  /** Messages with a lower index are the history: `GET /worker/v1/history` returns them. */
  history: z.object({ before: z.int() }),
  /** Messages that the turn stored when it parked. They are its messages 0, 1, …: an update of one of them is dropped. */
  kept: z.array(messageSchema),
  steps: z.array(finishedStep),
  waits: z.array(turnWaitSchema),
  /** The state of the task before the turn, and as the turn had made it when it parked. Absent if it was never set. */
  state: stateSchema.optional(),
  keptState: stateSchema.optional(),
  /** In the clear, because the agent needs them. */
  secrets: z.record(z.string(), z.string()).optional(),
  limits: turnLimits,
  deadline: z.iso.datetime(),
  /** The time until the deadline, for a worker whose clock is wrong. */
  timeLeftMs: z.int(),
  /** A worker died while it ran this turn. */
  isolated: z.boolean(),
  isOverBudget: z.boolean(),
  budget: z.object({ tokens: z.number().optional(), usd: z.number().optional(), prices: pricesSchema.optional() }).optional(),
  /** How long the turn was queued. */
  waitedMs: z.int().optional(),
  /** The trace of the turn, in W3C Trace Context form. */
  traceparent: z.string().optional(),
})
export const workerClaimResult = z.object({ turns: z.array(claimedTurn) })

/** A new value of the task's state, or a merge patch of it. A version that the log has is dropped, because a turn that was parked repeats its changes. */
const stateUpdateSchema = z.union([
  z.strictObject({ type: z.literal('state'), version: z.int().min(1), value: jsonSchema }),
  z.strictObject({ type: z.literal('state'), version: z.int().min(1), patch: jsonObjectSchema }),
])
/** The inputs of a turn that `take` has returned become messages of this one. */
const joinUpdateSchema = z.strictObject({
  type: z.literal('join'),
  turn: z.int().min(1),
  inputs: z.array(contentSchema).min(1).max(maxInputs),
})

/** What a worker sends: the updates of an agent, and these two. */
export const workerUpdateSchema = z.union([...updateSchema.options, stateUpdateSchema, joinUpdateSchema])

/** Each update is checked by itself, so that a bad one of one turn does not reject the others; the description has its shape. */
const updates = z.array(z.unknown()).meta({
  items: z.toJSONSchema(workerUpdateSchema, { io: 'input', unrepresentable: 'any' }),
})

export const workerAppendBody = z.strictObject({
  /** `first` is the number of the first of its updates: they are numbered from 1 in each epoch. */
  appends: z
    .array(z.strictObject({ ...held, first: z.int().min(1), updates }))
    .min(1)
    .max(1_000)
    .refine(appends => new Set(appends.map(({ turn }) => turn)).size === appends.length, 'A call must have one append of a turn'),
})
/**
 * `ok`: written. `duplicate`: was written before. `gap`: go on from `next`, and under `epoch` if there is one. `fenced`: another worker has the turn.
 * `closed`: the turn has ended. `full`: the turn has no room for it. `invalid`: `error` names the fix of the update `at`.
 * `unavailable`: send it again later, because the server could not find out whether it is written. In the other cases, nothing was written.
 */
const appended = z.object({
  result: z.enum(['ok', 'duplicate', 'gap', 'fenced', 'closed', 'full', 'invalid', 'unavailable']),
  /** The number of the next update. */
  next: number,
  epoch: z.int().optional(),
  at: number.optional(),
  error: failureSchema.optional(),
})
export const workerAppendResult = z.object({ results: z.array(appended) })

export const workerHeartbeatBody = z.strictObject({
  worker: id,
  /** `waiting`: how many open waits of the turn the worker waits for. */
  turns: z.array(z.strictObject({ ...held, waiting: z.int().min(0).default(0) })).max(10_000),
  /** The leases are renewed at once. Then the reply waits so long for a turn that is lost, canceled or answered. */
  waitMs: pollMs.default(0),
})
export const workerHeartbeatResult = z.object({
  /** Turns that the worker no longer holds. */
  lost: z.array(turnIdSchema),
  /** Of those, the ones that were canceled. */
  canceled: z.array(turnIdSchema),
  /** Turns of which a wait was closed. */
  answered: z.array(turnIdSchema),
})

const { durationMs, usage: stepUsage } = stepBody.shape
export const workerStepBody = z.strictObject({
  ...claimed,
  name: stepBody.shape.name,
  ...stepMemorySchema.shape,
  messages: stepMemorySchema.shape.messages.default([]),
  durationMs,
  /** What the step used: it is stored with the step. */
  records: stepUsage,
})
export const workerStepResult = stepResult

export const workerAskBody = z.strictObject({
  ...held,
  waits: z
    .array(wantedWait.omit({ index: true }))
    .min(1)
    .max(maxWaits),
})
const opened = { isInLog: z.boolean() }
export const workerAskResult = z.discriminatedUnion('result', [
  /** If they are not in the log, the log lost entries: the result of the next append names the epoch and the number to go on from. */
  z.object({ result: z.literal('asked'), waits: z.array(turnWaitSchema), ...opened }),
  z.object({ result: z.literal('gap'), next: number, epoch: z.int() }),
  z.object({ result: z.enum(['superseded', 'too_many', 'too_large']) }),
])

export const workerSpawnBody = z.strictObject({ ...claimed, children: z.array(wantedChild).min(1).max(maxWaits) })
export const workerSpawnResult = z.discriminatedUnion('result', [
  z.object({ result: z.literal('spawned'), children: z.array(spawnedChild), waits: z.array(turnWaitSchema), ...opened }),
  z.object({ result: z.enum(['superseded', 'too_many', 'too_large']) }),
])

export const workerTakeBody = z.strictObject({ ...held, after: z.int().min(0), upTo: z.int().min(1).optional() })
/** Null when the turn is no longer this claim's. Each becomes an update `join`. */
export const workerTakeResult = z.object({ joined: z.array(joinedInput).nullable() })

export const workerUsageBody = z.strictObject({ ...claimed, records: usageBody.shape.records })

export const workerParkBody = z.strictObject({ ...held, last: number })
/** `answered`: no wait is open any more. `open_message`: close the messages first. A `gap` is as that of an append. */
const gap = { next: number.optional(), epoch: z.int().optional() }
export const workerParkResult = z.object({ result: z.enum(['parked', 'answered', 'superseded', 'gap', 'open_message']), ...gap })

export const workerReleaseBody = z.strictObject({ ...held, blocked: releaseBody.shape.blocked })

const { status, error, detail } = finishBody.shape.outcome.shape
export const workerFinishBody = z.strictObject({
  ...held,
  /** The number of the last update: 0 without any. */
  last: number,
  status,
  /** Default: by the messages. */
  stopReason: stopReasonSchema.optional(),
  /** Beside the usage that messages carry. */
  usage: usageSchema.optional(),
  error,
  detail,
})
export const workerFinishResult = z.object({ result: z.enum(['committed', 'retrying', 'already', 'superseded', 'gap']), ...gap })

/** A turn and its claim, for calls without a JSON body. */
export const claimHeaders = z.object({ 'x-turn-id': turnIdSchema, 'x-claim-id': id })
export const workerHistoryQuery = z.strictObject({
  after: z.coerce.number().int().min(0).max(2_147_483_647).optional(),
  /** The messages of the first turn of this child instead. */
  child: wantedChild.shape.name.optional(),
})
export const workerWaitsResult = z.object({ waits: z.array(turnWaitSchema) })

export type WorkerAppend = z.output<typeof workerAppendBody>['appends'][number]
export type WorkerAppended = z.output<typeof appended>
export type ClaimedTurn = z.output<typeof claimedTurn>
export type WorkerUpdate = z.output<typeof workerUpdateSchema>
