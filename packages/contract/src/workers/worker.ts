/** The worker protocol: the calls of workers in any language. */
import { fileIdSchema, fileSchema, turnIdSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { storeCallResult, storeCallSchema } from '../customers/stored-value.ts'
import { route } from '../route.ts'
import { historyResult, releaseResult, usageResult } from './internal-schemas.ts'
import * as call from './worker-schemas.ts'

const working = { tag: 'worker', scope: 'worker' } as const
const headers = call.claimHeaders

export const workerHello = route('POST /worker/v1/hello', {
  ...working,
  body: call.workerHelloBody,
  returns: { 200: call.workerHelloResult },
  errors: ['unsupported_version'],
  doc: 'Registers a worker and its agents, and returns the times and limits that it keeps to',
})

export const workerClaim = route('POST /worker/v1/claim', {
  ...working,
  body: call.workerClaimBody,
  returns: { 200: call.workerClaimResult },
  errors: ['unknown_agent'],
  doc: 'Claims turns for a worker, and waits for one',
})

export const workerAppend = route('POST /worker/v1/append', {
  ...working,
  body: call.workerAppendBody,
  returns: { 200: call.workerAppendResult },
  errors: ['overloaded'],
  doc: 'Appends what turns emit',
})

export const workerHeartbeat = route('POST /worker/v1/heartbeat', {
  ...working,
  body: call.workerHeartbeatBody,
  returns: { 200: call.workerHeartbeatResult },
  doc: 'Extends the leases of the turns of a worker, and waits for what changes about them',
})

export const workerStep = route('POST /worker/v1/step', {
  ...working,
  body: call.workerStepBody,
  returns: { 200: call.workerStepResult },
  doc: 'Stores the result and the messages of a step',
})

export const workerUsage = route('POST /worker/v1/usage', {
  ...working,
  body: call.workerUsageBody,
  returns: { 200: usageResult },
  doc: 'Records what the responses of models used outside a step',
})

export const workerTake = route('POST /worker/v1/take', {
  ...working,
  body: call.workerTakeBody,
  returns: { 200: call.workerTakeResult },
  doc: 'Takes the inputs that joined a turn which a worker holds',
})

export const workerAsk = route('POST /worker/v1/ask', {
  ...working,
  body: call.workerAskBody,
  returns: { 200: call.workerAskResult },
  doc: 'Opens waits of a turn',
})

export const workerStore = route('POST /worker/v1/store', {
  ...working,
  body: z.strictObject({ turn: turnIdSchema, claim: z.string().min(1).max(100), call: storeCallSchema }),
  returns: { 200: storeCallResult },
  errors: ['task_not_found', 'precondition_failed', 'value_too_large', 'store_full'],
  doc: "Reads or changes the values of a turn's customer, agent or tenant",
})

export const workerSpawn = route('POST /worker/v1/spawn', {
  ...working,
  body: call.workerSpawnBody,
  returns: { 200: call.workerSpawnResult },
  doc: 'Creates child tasks of a turn which a worker holds',
})

export const workerWaits = route('GET /worker/v1/waits', {
  ...working,
  headers,
  returns: { 200: call.workerWaitsResult },
  errors: ['task_not_found'],
  doc: 'Lists the waits of a turn',
})

export const workerHistory = route('GET /worker/v1/history', {
  ...working,
  headers,
  query: call.workerHistoryQuery,
  returns: { 200: historyResult },
  errors: ['task_not_found'],
  doc: 'Lists the messages before a turn, or those of one of its children',
})

export const workerReadFile = route('GET /worker/v1/files/:id', {
  ...working,
  params: z.object({ id: fileIdSchema }),
  headers,
  returns: { 200: z.any().describe('Its bytes'), 206: z.any().describe('A range of them') },
  errors: ['task_not_found', 'not_found', 'range_not_satisfiable'],
  doc: 'Returns the bytes of a file of the task, or a range of them',
})

export const workerStoreFile = route('POST /worker/v1/files', {
  ...working,
  headers,
  consumes: ['*/*'],
  body: z.any(),
  returns: { 200: z.object({ file: fileSchema }) },
  errors: ['task_not_found', 'request_timeout', 'quota_exceeded'],
  doc: 'Stores the body as a file of the task',
})

export const workerPark = route('POST /worker/v1/park', {
  ...working,
  body: call.workerParkBody,
  returns: { 200: call.workerParkResult },
  doc: 'Gives up a turn until a wait of it ends',
})

export const workerRelease = route('POST /worker/v1/release', {
  ...working,
  body: call.workerReleaseBody,
  returns: { 200: releaseResult },
  doc: 'Returns a turn to its queue, for any worker',
})

export const workerFinish = route('POST /worker/v1/finish', {
  ...working,
  body: call.workerFinishBody,
  returns: { 200: call.workerFinishResult },
  doc: 'Ends an attempt of a turn with its outcome',
})

export * from './worker-schemas.ts'
