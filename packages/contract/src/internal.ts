/** The calls of workers. The lease in Postgres decides which worker runs a turn. */
import {
  appendBody,
  appendResult,
  askBody,
  askResult,
  childBody,
  claimBody,
  claimResult,
  fileSchema,
  finishBody,
  finishResult,
  heartbeatBody,
  heartbeatResult,
  helloBody,
  helloResult,
  hintsBody,
  hintsResult,
  historyBody,
  historyResult,
  nextBody,
  nextResult,
  parkBody,
  parkResult,
  readFileBody,
  releaseBody,
  releaseResult,
  reopenBody,
  reopenResult,
  spawnBody,
  spawnResult,
  stepBody,
  stepResult,
  takeBody,
  takeResult,
  usageBody,
  usageResult,
  waitsBody,
  waitsResult,
} from '@rivulet/protocol'
import { z } from 'zod'
import { route } from './route.ts'

const working = { tag: 'internal', scope: 'worker' } as const

export const registerWorker = route('POST /internal/hello', {
  ...working,
  body: helloBody,
  returns: { 200: helloResult },
  doc: 'Registers a worker and its agents',
})

export const awaitTurn = route('POST /internal/next', {
  ...working,
  body: nextBody,
  returns: { 200: nextResult },
  errors: ['unknown_agent'],
  doc: 'Returns the next turn for a worker without Redis, when there is one',
})

export const awaitHints = route('POST /internal/hints', {
  ...working,
  body: hintsBody,
  returns: { 200: hintsResult },
  doc: 'Returns what changed about the turns of a worker without Redis',
})

export const claimTurn = route('POST /internal/claim', {
  ...working,
  body: claimBody,
  returns: { 200: claimResult },
  doc: 'Claims a turn for a worker',
})

export const reopenTurn = route('POST /internal/reopen', {
  ...working,
  body: reopenBody,
  returns: { 200: reopenResult },
  doc: 'Reopens the log of a turn that lost entries',
})

export const extendLeases = route('POST /internal/heartbeat', {
  ...working,
  body: heartbeatBody,
  returns: { 200: heartbeatResult },
  doc: 'Extends the leases of the turns of a worker',
})

export const releaseTurn = route('POST /internal/release', {
  ...working,
  body: releaseBody,
  returns: { 200: releaseResult },
  doc: 'Returns a turn to the queue',
})

export const finishTurn = route('POST /internal/finish', {
  ...working,
  body: finishBody,
  returns: { 200: finishResult },
  doc: 'Ends a turn',
})

export const appendEvents = route('POST /internal/append', {
  ...working,
  body: appendBody,
  returns: { 200: appendResult },
  errors: ['overloaded'],
  doc: 'Appends to the logs of turns',
})

export const rememberStep = route('POST /internal/step', {
  ...working,
  body: stepBody,
  returns: { 200: stepResult },
  doc: 'Stores the result of a step',
})

export const recordUsage = route('POST /internal/usage', {
  ...working,
  body: usageBody,
  returns: { 200: usageResult },
  doc: 'Records what the responses of models used',
})

export const takeInputs = route('POST /internal/take', {
  ...working,
  body: takeBody,
  returns: { 200: takeResult },
  doc: 'Takes the inputs that joined a turn',
})

export const readHistory = route('POST /internal/messages', {
  ...working,
  body: historyBody,
  returns: { 200: historyResult },
  errors: ['task_not_found'],
  doc: 'Lists the earlier messages of a task',
})

export const askCaller = route('POST /internal/ask', {
  ...working,
  body: askBody,
  returns: { 200: askResult },
  doc: 'Creates a wait of a turn',
})

export const spawnChildren = route('POST /internal/spawn', {
  ...working,
  body: spawnBody,
  returns: { 200: spawnResult },
  doc: 'Creates child tasks of a turn',
})

export const readChild = route('POST /internal/child', {
  ...working,
  body: childBody,
  returns: { 200: historyResult },
  errors: ['task_not_found'],
  doc: 'Lists the messages of a child task',
})

export const readWaits = route('POST /internal/waits', {
  ...working,
  body: waitsBody,
  returns: { 200: waitsResult },
  doc: 'Returns the waits of a turn and how they ended',
})

export const parkTurn = route('POST /internal/park', {
  ...working,
  body: parkBody,
  returns: { 200: parkResult },
  doc: 'Parks a turn until what it waits for is there',
})

export const readWorkerFile = route('POST /internal/file', {
  ...working,
  body: readFileBody,
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
