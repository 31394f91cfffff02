/** The calls of workers. The lease in Postgres decides which worker runs a turn. */
import { fileSchema, turnIdSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { storeCallResult, storeCallSchema } from '../customers/stored-value.ts'
import { route } from '../route.ts'
import * as call from './internal-schemas.ts'

const working = { tag: 'internal', scope: 'worker' } as const

export const registerWorker = route('POST /internal/hello', {
  ...working,
  body: call.helloBody,
  returns: { 200: call.helloResult },
  doc: 'Registers a worker and its agents',
})

export const awaitTurn = route('POST /internal/next', {
  ...working,
  body: call.nextBody,
  returns: { 200: call.nextResult },
  errors: ['unknown_agent'],
  doc: 'Returns the next turn for a worker without Redis, when there is one',
})

export const awaitHints = route('POST /internal/hints', {
  ...working,
  body: call.hintsBody,
  returns: { 200: call.hintsResult },
  doc: 'Returns what changed about the turns of a worker without Redis',
})

export const claimTurn = route('POST /internal/claim', {
  ...working,
  body: call.claimBody,
  returns: { 200: call.claimResult },
  doc: 'Claims a turn for a worker',
})

export const reopenTurn = route('POST /internal/reopen', {
  ...working,
  body: call.reopenBody,
  returns: { 200: call.reopenResult },
  doc: 'Reopens the log of a turn that lost entries',
})

export const extendLeases = route('POST /internal/heartbeat', {
  ...working,
  body: call.heartbeatBody,
  returns: { 200: call.heartbeatResult },
  doc: 'Extends the leases of the turns of a worker',
})

export const releaseTurn = route('POST /internal/release', {
  ...working,
  body: call.releaseBody,
  returns: { 200: call.releaseResult },
  doc: 'Returns a turn to the queue',
})

export const finishTurn = route('POST /internal/finish', {
  ...working,
  body: call.finishBody,
  returns: { 200: call.finishResult },
  doc: 'Ends a turn',
})

export const appendEvents = route('POST /internal/append', {
  ...working,
  body: call.appendBody,
  returns: { 200: call.appendResult },
  errors: ['overloaded'],
  doc: 'Appends to the logs of turns',
})

export const rememberStep = route('POST /internal/step', {
  ...working,
  body: call.stepBody,
  returns: { 200: call.stepResult },
  doc: 'Stores the result of a step',
})

export const recordUsage = route('POST /internal/usage', {
  ...working,
  body: call.usageBody,
  returns: { 200: call.usageResult },
  doc: 'Records what the responses of models used',
})

export const takeInputs = route('POST /internal/take', {
  ...working,
  body: call.takeBody,
  returns: { 200: call.takeResult },
  doc: 'Takes the inputs that joined a turn',
})

export const useStore = route('POST /internal/store', {
  ...working,
  body: z.strictObject({ turnId: turnIdSchema, claimId: z.string().min(1).max(100), call: storeCallSchema }),
  returns: { 200: storeCallResult },
  errors: ['task_not_found', 'precondition_failed', 'value_too_large', 'store_full'],
  doc: "Reads or changes the values of a turn's customer, agent or tenant",
})

export const readHistory = route('POST /internal/messages', {
  ...working,
  body: call.historyBody,
  returns: { 200: call.historyResult },
  errors: ['task_not_found'],
  doc: 'Lists the earlier messages of a task',
})

export const askCaller = route('POST /internal/ask', {
  ...working,
  body: call.askBody,
  returns: { 200: call.askResult },
  doc: 'Creates a wait of a turn',
})

export const spawnChildren = route('POST /internal/spawn', {
  ...working,
  body: call.spawnBody,
  returns: { 200: call.spawnResult },
  doc: 'Creates child tasks of a turn',
})

export const readChild = route('POST /internal/child', {
  ...working,
  body: call.childBody,
  returns: { 200: call.historyResult },
  errors: ['task_not_found'],
  doc: 'Lists the messages of a child task',
})

export const readWaits = route('POST /internal/waits', {
  ...working,
  body: call.waitsBody,
  returns: { 200: call.waitsResult },
  doc: 'Returns the waits of a turn and how they ended',
})

export const parkTurn = route('POST /internal/park', {
  ...working,
  body: call.parkBody,
  returns: { 200: call.parkResult },
  doc: 'Parks a turn until what it waits for is there',
})

export const readWorkerFile = route('POST /internal/file', {
  ...working,
  body: call.readFileBody,
  returns: { 200: z.any().describe('Its bytes') },
  errors: ['task_not_found', 'not_found', 'range_not_satisfiable'],
  doc: 'Returns the bytes of a file of a turn',
})

export const storeWorkerFile = route('POST /internal/files', {
  ...working,
  consumes: ['*/*'],
  body: z.any(),
  returns: { 200: z.object({ file: fileSchema }) },
  errors: ['task_not_found', 'request_timeout', 'quota_exceeded'],
  doc: 'Stores the body as a file of a turn',
})

export * from './internal-schemas.ts'
