/** Every limit with its default: what it limits, and what happens above it. */
import * as protocol from '@rivulet/protocol/limits'
import { code, tableOf } from './marked-block.ts'
import { allVariables } from './variables.ts'

/** A name in capitals is a setting; the others are constants of the protocol. */
const meanings: Readonly<Record<string, readonly [limits: string, beyond: string]>> = {
  headerBytes: ['the headers of a request', '431 `headers_too_large`'],
  headerCount: ['number of headers of a request', '431 `headers_too_large`'],
  paramLength: ["characters of one part of a URL's path", '414 `url_too_long`'],
  requestMs: ['time for the head, and for the whole request, to arrive', '408 `request_timeout`'],
  requestsUnderWay: ['requests on one connection without a response yet', 'the API closes the connection'],
  MAX_BODY_BYTES: ['the body of a request', '413 `body_too_large`'],
  MAX_JSON_DEPTH: ['levels of nesting in JSON', '400 `json_too_deep`'],
  MAX_JSON_ITEMS: ['keys and items in JSON', '400 `json_too_complex`'],
  maxStateBytes: ['the state of a task, as JSON', '413 `state_too_large`; a turn that sets one fails with it'],
  maxStoreKey: ['characters of the key of a stored value', '400 `validation_failed`'],
  maxStoreValueBytes: ['a value of the store, as JSON', '413 `value_too_large`'],
  maxStoreScopeBytes: ['all values of one scope of the store', '413 `store_full`'],
  maxInputs: ['inputs of one turn', '400 `validation_failed`'],
  maxJoinedBytes: ['inputs that join a turn at once', 'the others join later, or run as turns of their own'],
  maxHistoryMessages: ['messages in the `history` of a new task', '400 `validation_failed`'],
  maxSecrets: ['secrets of a task or a turn', '400 `validation_failed`'],
  maxSecretLength: ['characters of a secret', '400 `validation_failed`'],
  maxActivityMinutes: ['minutes of activity or errors', '400 `validation_failed`'],
  maxUsageDays: ['days of a report of usage', '400 `validation_failed`'],
  maxUsageGroups: ['groups of a report of usage', 'the smallest are left out; `total` includes them'],
  maxMetadataFilters: ['`metadata.<key>` filters of one list', '400 `validation_failed`'],
  maxStreamTasks: ['tasks on one event stream', '400 `too_many_tasks`'],
  maxPageSize: ['items of a page', '400 `validation_failed`'],
  maxWaitMs: ['`?wait=` for the end of a turn', '400 `validation_failed`'],
  maxTokenSeconds: ['the life of a token and its successors', '400 `validation_failed`; the API creates no successor, and the streams end'],
  maxDetails: ['entries in `details` of an error', 'the rest is left out'],
  MAX_QUEUED_TURNS_PER_TASK: ['waiting turns of a task', '429 `too_many_turns`'],
  MAX_QUEUED_TURNS: ['due and waiting turns of all tasks', '503 `overloaded`'],
  MAX_TURNS_PER_TENANT: ['turns of a tenant that have not ended', '429 `quota_exceeded`'],
  MAX_KEYS_PER_TENANT: ['keys of a tenant that are neither revoked nor expired', '429 `quota_exceeded`, for a new key and for a rotation'],
  MAX_STORE_BYTES_PER_TENANT: ['bytes of the values in the store of a tenant', '413 `store_full`'],
  MAX_SCHEDULES_PER_TENANT: ['schedules of a tenant', '429 `quota_exceeded`'],
  MAX_WEBHOOKS_PER_TENANT: ['webhooks of a tenant', '429 `quota_exceeded`'],
  MAX_FILE_BYTES_PER_TENANT: ['bytes of all files of a tenant', '429 `quota_exceeded`'],
  RATE_LIMIT_PER_SECOND: ['requests per second of a key', '429 `rate_limited`'],
  RATE_LIMIT_BURST: ['requests at once of a key', '429 `rate_limited`'],
  RATE_LIMIT_TENANT_PER_SECOND: ['requests per second of all keys and tokens of a tenant', '429 `rate_limited`'],
  RATE_LIMIT_TENANT_BURST: ['requests at once of a tenant', '429 `rate_limited`'],
  MAX_STREAMS_PER_TOKEN: ['open streams of a token and its successors, or of one subject of a task', '429 `too_many_streams`'],
  MAX_STREAMS_PER_TASK: ['open streams of a task', '429 `too_many_streams`'],
  MAX_STREAMS_PER_KEY: ['open streams of a key and of all its tokens', '429 `too_many_streams`'],
  MAX_STREAMS_PER_TENANT: ['open streams of all keys and tokens of a tenant', '429 `too_many_streams`'],
  MAX_STREAMS: ['open streams of a process', '503 `overloaded`'],
  MAX_CONNECTIONS: ['open connections of a listener, including streams', 'the API closes the connection at once'],
  MAX_ISOLATED_TURNS: ['isolated processes of one worker', 'the turns wait'],
  MAX_REDIS_MEMORY_PERCENT: ["share of Redis' `maxmemory` in use", '503 `overloaded`'],
  MAX_DELTA_BYTES: ['one delta', 'the worker splits it'],
  MAX_TURN_BYTES: ['the output of a turn, so also one message of it', 'the turn fails, `output_too_large`'],
  MAX_STEPS_BYTES: ["the stored results of a turn's steps", 'the turn fails, `step_too_large`'],
  maxStepName: ["characters of a step's name", '400 `validation_failed`'],
  maxModelName: ['characters of the name of a model', 'the turn fails, `bad_event`; a run cuts it off'],
  maxUsageRecords: ['responses whose usage a worker reports in one call', 'the worker sends several calls'],
  maxWaits: ['waits of a turn', 'the turn fails, `too_many_waits`'],
  maxWaitsBytes: ['the waits of a turn, as JSON', 'the turn fails, `too_many_waits`'],
  maxWaitName: ['characters of the name of a wait or a signal', '400 `validation_failed`'],
  maxWaitDays: ['days that a wait stays open', '400 `validation_failed`'],
  maxAnswerBytes: ['the content of an answer, the data of a signal', '400 `validation_failed`'],
  maxSignals: ['signals of a task that no turn has waited for', '429 `too_many_signals`'],
  maxReasoningIndex: ['parts of a reasoning message', 'the turn fails, `bad_event`'],
  MAX_VIEWER_BYTES: ['unread bytes of a viewer', 'a `snapshot` with the reason `slow`'],
  MAX_VIEWER_STALL_MS: ['time in which a client reads nothing of a stream or of any other response', 'the API closes the connection'],
  MAX_SNAPSHOT_BYTES: [
    'messages of ended turns in a snapshot; and as much again of values of its task and turns',
    'older ones are left out and [listed](http-reference.md#large-values)',
  ],
  MAX_PAGE_BYTES: [
    'a page of tasks or messages; inputs and params of the turns of a task',
    'the page ends earlier; older ones are left out and listed',
  ],
  MAX_CHILD_DEPTH: ['levels of children below one task', '`too_many_children`'],
  MAX_CHILD_ALIVE: ['children of one task that have not ended, with theirs', '`too_many_children`'],
  MAX_CHILD_TOTAL: ['children of one task in all, with theirs', '`too_many_children`'],
  MAX_FILE_BYTES: ['one file', '413 `body_too_large`'],
  MAX_FILE_TRANSFERS: [
    'uploads and downloads at once, in one process; tenants share them, a caller may have a quarter, and others wait for up to 5 s',
    '503 `overloaded`',
  ],
  maxFileName: ['characters of the name of a file', '400 `validation_failed`'],
  maxMimeType: ['characters of the type of a file', '400 `validation_failed`'],
  maxInlineMediaBytes: ['inline media in a stored message', 'the API stores it as [a file](files.md)'],
  maxInlineValueBytes: ['the value of `data` and `tool_response` in a stored message', 'the API stores it as [a file](files.md)'],
  maxQueuedInputBytes: ['the input in `turn.queued`', 'it is left out and listed'],
}

const constants = Object.entries({ ...protocol.headLimits, ...protocol }).filter(
  ([name, value]) => typeof value === 'number' && (name in protocol.headLimits || name.startsWith('max')),
) as [string, number][]
const settings = allVariables()
  .filter(({ name }) => /^(MAX_|RATE_LIMIT_)/.test(name))
  .map(({ name, byDefault }) => [name, byDefault === null ? null : Number(byDefault)] as const)
const defaults = new Map<string, number | null>([...constants, ...settings])

/** In the order of the table. Each limit of the code has its row, and each row is a limit of the code. */
export function limitsTable(names: readonly string[]): string {
  return tableOf(
    ['limit', 'default', 'what it limits', 'what happens above it'],
    names.map(name => {
      const value = defaults.get(name)
      const [limits = '', beyond = ''] = meanings[name] ?? []
      if (value === undefined || limits === '') throw new Error(`scripts/generated/limits.ts and the code do not agree about ${name}`)
      return [code(name), value === null ? 'none' : amountOf(name, value), limits, beyond]
    }),
  )
}

export const allLimits: readonly string[] = [...new Set([...Object.keys(meanings), ...defaults.keys()])]
/** Those that the API sends to workers, too. */
export const taskLimits: readonly string[] = Object.values(protocol.limitNames)

function amountOf(name: string, value: number): string {
  if (/Ms$|_MS$/.test(name)) return `${value / 1_000} s`
  if (!/Bytes$|_BYTES$/.test(name)) return value.toLocaleString('en')
  return value % 2 ** 20 === 0 ? `${value / 2 ** 20} MiB` : `${value / 2 ** 10} KiB`
}
