/** The entry point for callers of agents. It opens no connection by itself. */

import type { Activity, Agent, ErrorGroup } from '@rivulet/contract/agents'
import type { CreateTaskInput, TaskSummary } from '@rivulet/contract/tasks'
import type { UsageGrouping, UsageReport } from '@rivulet/contract/usage'
import type { Delivery } from '@rivulet/contract/webhooks'
import { type Json, requireCursor, type Task, type TaskStatus } from '@rivulet/protocol'
import { createFeedCalls, type FeedCalls } from './feed.ts'
import { createFileCalls, type FileCalls } from './files.ts'
import type { Calls } from './generated/calls.ts'
import { pageWakeUps, type WakeUps } from './http/backoff.ts'
import type { QueryOf } from './http/call-of.ts'
import { callsOf } from './http/calls.ts'
import { createCredentials, type TaskTokenSource, type TokenSource } from './http/credentials.ts'
import { type CallOptions, createHttp, type Http, metadataQuery, type Query } from './http/http.ts'
import { type Page, readFields, readJson } from './http/responses.ts'
import { createStoreCalls, type StoreCalls } from './store.ts'
import { leavable } from './stream/leavable.ts'
import { type ManyEvent, streamMany } from './stream/many-stream.ts'
import { nowhere, placeAfter } from './stream/stream-place.ts'
import { type RunResult, runTask } from './task/run-task.ts'
import { type CreatedTask, createTaskHandle, readCreated, type TaskHandle, type UnstartedTask } from './task/task-handle.ts'
import { createTasksViews, type TasksView, type TasksViewOptions } from './task/tasks-view.ts'
import { createWaitCalls, type WaitCalls } from './waits.ts'

export type ClientOptions = {
  /** Where the API is: `http://127.0.0.1:4000`. */
  url: string
  key?: string | undefined
  /** In place of `key`, for a page that is about one task. */
  token?: TokenSource | undefined
  /** Default: the platform's. */
  fetch?: typeof fetch
  /** When to try again at once. Default: a browser that is online again, and a hidden tab that is looked at again. */
  wakeUps?: WakeUps
  /** Tries of a call after the first; event streams try for ever. Default 8. */
  maxRetries?: number
  /** For each try of a call. Default 30,000. */
  timeoutMs?: number
  /** Silence after which an event stream is taken for dead; the server says something every 15 s. Default 45,000. */
  silenceMs?: number
  /** For jitter. Default Math.random. */
  random?: () => number
}

export type KeyCalls = Omit<Calls['keys'], 'audit' | 'whoami'>
export type LimitCalls = Calls['limits']
export type ScheduleCalls = Calls['schedules']
export type WebhookCalls = Calls['webhooks']
export type AuditQuery = QueryOf<Calls['keys']['audit']>
export type KeyQuery = QueryOf<Calls['keys']['list']>
export type ScheduleQuery = QueryOf<Calls['schedules']['list']>
export type WebhookQuery = QueryOf<Calls['webhooks']['list']>
export type DeliveryQuery = WebhookQuery & { status?: Delivery['status'] | undefined }

/** `metadata` finds tasks that have all of these. At most 100 a page, newest first. */
export type TaskQuery = {
  agent?: string
  status?: TaskStatus
  name?: string
  /** The children and forks of this task. */
  parent?: string
  /** Times in ISO 8601. */
  createdAfter?: string
  createdBefore?: string
  /** Of the last turn: `timeout`, `agent_error` and the like. */
  errorCode?: string
  /** Of a group of `agents.errors()`: tasks of which a turn failed for this reason. */
  errorFingerprint?: string
  /** How long the turns that have ended ran, taken together. */
  minDurationMs?: number
  maxDurationMs?: number
  /** Finds tasks with this text in their id, name, metadata or first input. */
  q?: string
  metadata?: Record<string, string>
  limit?: number
  cursor?: string
}

/** `from` is included, `to` is not. Text is ISO 8601; a date is the beginning of its day in UTC. */
export type UsageRequest = { by?: UsageGrouping | undefined; from?: string | Date | undefined; to?: string | Date | undefined }

export type HandleOptions = {
  /** For everything that the handle does, in place of what the client has: a token for this task. */
  token?: TaskTokenSource | undefined
}

export type WatchManyOptions = CallOptions & {
  /** The last cursor that the caller has of a task, by its id. */
  after?: Readonly<Record<string, string>>
  /** Tasks without one: a snapshot and every later event (default), or every event from the first. */
  from?: 'start' | 'snapshot'
  /** Also the children of these tasks, of all levels: those that have not ended, and those that start later. Default false. */
  children?: boolean
  /** Stay when the tasks have ended. Default false. */
  follow?: boolean
}

export type CreateOptions = HandleOptions & CallOptions & { idempotencyKey?: string }

export type RivuletClient = {
  readonly url: string
  /**
   * Creates a task, or adds an input to the one of its `name`, and resolves with the result of that turn. Rejects if the turn failed or was canceled, with
   * the result so far as `cause`. It opens no event stream: each request waits for the end for up to 20 s, and the next one goes on waiting.
   */
  run(body: CreateTaskInput & { start?: true }, options?: CreateOptions): Promise<RunResult>
  tasks: {
    /** Resolves when the task is stored. */
    create(body: CreateTaskInput & { start?: true }, options?: CreateOptions): Promise<CreatedTask>
    create(body: CreateTaskInput, options?: CreateOptions): Promise<UnstartedTask>
    /** A handle; asks nothing. */
    get(id: string, options?: HandleOptions): TaskHandle
    list(query?: TaskQuery, options?: CallOptions): Promise<Page<Task>>
    /** The same tasks in short, for a list that people read: with titles and figures, without params. */
    summaries(query?: TaskQuery, options?: CallOptions): Promise<Page<TaskSummary>>
  }
  /** The events of up to 1,000 tasks by one connection, each event once. It reconnects, and resumes each task at its own place. */
  watchMany(ids: readonly string[], options?: WatchManyOptions): AsyncIterableIterator<{ id: string; event: ManyEvent }, void, void>
  /** The state of several tasks. All views of a client with the same options share one connection. */
  viewMany(ids: readonly string[], options?: TasksViewOptions): TasksView
  agents: Omit<Calls['agents'], 'change' | 'group' | 'read'> & {
    /** Turns that ended in the last minutes, in buckets of time. At most 10,080 (7 days), 10 by default. */
    activity(minutes?: number, options?: CallOptions): Promise<Activity>
    /** The turns that failed in the last minutes (a day by default), grouped by their reason. */
    errors(minutes?: number, options?: CallOptions): Promise<ErrorGroup[]>
    /** A paused agent accepts tasks and starts none, until it is resumed. */
    pause(name: string, options?: CallOptions): Promise<Agent>
    resume(name: string, options?: CallOptions): Promise<Agent>
  }
  files: FileCalls
  keys: KeyCalls
  waits: WaitCalls
  feed: FeedCalls
  webhooks: WebhookCalls
  schedules: ScheduleCalls
  limits: LimitCalls
  store: StoreCalls
  /** Who changed what, newest first, with a key that has the scope `admin`. At most 100 a page. */
  audit: Calls['keys']['audit']
  /** What the responses of models used and cost, in groups. Default: each of the last 30 days. */
  usage(query?: UsageRequest, options?: CallOptions): Promise<UsageReport>
  /** For whom the API takes the caller, and what it may do. */
  whoami: Calls['keys']['whoami']
  /** Whether the API is up, and whether it has what it needs: both reject where it is not, and ask once. */
  health(options?: CallOptions): Promise<{ status: string }>
  ready(options?: CallOptions): Promise<{ status: string }>
  /** In Prometheus' format. */
  metrics(options?: CallOptions): Promise<string>
  openapi(options?: CallOptions): Promise<Json>
}

export function createClient(options: ClientOptions): RivuletClient {
  const { url, key, token, fetch: given, wakeUps = pageWakeUps, maxRetries = 8, timeoutMs = 30_000, silenceMs = 45_000 } = options
  const { random = Math.random } = options
  // Looked up with each request, and called without an owner: a browser's fetch insists on that.
  const send: typeof fetch = given ?? ((input, init) => fetch(input, init))
  const http = httpWith({ key, token })
  const deps = { http, wakeUps, random, silenceMs }
  const { change, group, read, ...agents } = callsOf(http, 'agents')
  const { audit, whoami, ...keys } = callsOf(http, 'keys')
  const shared: Record<string, ReturnType<typeof createTasksViews>> = {}

  return {
    url,
    run,
    tasks: {
      ...{ create, get },
      list: (filters, own) =>
        http.call({ path: '/v1/tasks', query: queryOf(filters), ...own, read: readFields<Page<Task>>('data:task[] nextCursor:json') }),
      summaries: (filters, own) =>
        http.call({
          path: '/v1/tasks',
          query: { ...queryOf(filters), view: 'summary' },
          ...own,
          read: readFields<Page<TaskSummary>>('data:summary[] nextCursor:json'),
        }),
    },
    watchMany,
    viewMany,
    agents: {
      ...agents,
      activity: (minutes, own) => read({ minutes }, own),
      errors: (minutes, own) => group({ minutes }, own),
      pause: (name, own) => change(name, { paused: true }, own),
      resume: (name, own) => change(name, { paused: false }, own),
    },
    files: createFileCalls(http),
    waits: createWaitCalls(http),
    webhooks: callsOf(http, 'webhooks'),
    schedules: callsOf(http, 'schedules'),
    limits: callsOf(http, 'limits'),
    store: createStoreCalls(http),
    ...{ keys, audit, whoami },
    usage: ({ by, from, to } = {}, own) =>
      http.call({ path: '/v1/usage', query: { by, from: timeOf(from), to: timeOf(to) }, ...own, read: readFields<UsageReport>('') }),
    feed: createFeedCalls(deps),
    health: own => http.call({ path: '/healthz', retries: 0, ...own, read: readStatus }),
    ready: own => http.call({ path: '/readyz', retries: 0, ...own, read: readStatus }),
    metrics: own => http.call({ path: '/metrics', ...own, read: response => response.text() }),
    openapi: own => http.call({ path: '/openapi.json', ...own, read: readJson(body => body as Json) }),
  }

  function httpWith(credentials: Pick<ClientOptions, 'key' | 'token'>): Http {
    return createHttp({ url, fetch: send, credentials: createCredentials(credentials), wakeUps, random, maxRetries, timeoutMs })
  }

  /** Under the id as the server spells it in every event: capitals mean the same task. */
  function get(given: string, own?: HandleOptions): TaskHandle {
    const id = given.toLowerCase()
    return createTaskHandle(depsOf(id, own), id)
  }

  function depsOf(id: string, { token: own }: HandleOptions = {}) {
    return own === undefined ? deps : { ...deps, http: httpWith({ token: typeof own === 'string' ? own : () => own(id) }) }
  }

  function create(body: CreateTaskInput & { start?: true }, options?: CreateOptions): Promise<CreatedTask>
  function create(body: CreateTaskInput, options?: CreateOptions): Promise<UnstartedTask>
  async function create(body: CreateTaskInput, { token: own, ...call }: CreateOptions = {}): Promise<UnstartedTask> {
    const { task, turn } = await http.call({ method: 'POST', path: '/v1/tasks', body, ...call, read: readCreated })
    // A newer server may return fields that the handle has methods for.
    return Object.assign(createTaskHandle(depsOf(task.id, { token: own }), task.id, turn?.number), { task, ...(turn && { turn }) })
  }

  function run(body: CreateTaskInput & { start?: true }, { token: own, ...call }: CreateOptions = {}): Promise<RunResult> {
    // A wait that is as long as a try may take would be taken for a dead connection.
    const waitMs = Math.min(20_000, Math.floor(timeoutMs * 0.8))
    return runTask(http, body, { ...call, waitMs, httpOf: id => depsOf(id, { token: own }).http })
  }

  function watchMany(
    ids: readonly string[],
    { after = {}, from = 'snapshot', follow = false, children = false, signal }: WatchManyOptions = {},
  ) {
    const known = new Map(Object.entries(after).map(([id, cursor]) => [id.toLowerCase(), placeAfter(requireCursor(cursor))]))
    const places = new Map(ids.map(id => id.toLowerCase()).map(id => [id, known.get(id) ?? nowhere]))
    return leavable(signal, async function* (own) {
      const request = { places, from, follow, children, isForgetful: true, signal: own }
      for await (const { id, event } of streamMany(deps, request)) yield { id, event }
    })
  }

  function viewMany(ids: readonly string[], { follow = false, children = false }: TasksViewOptions = {}): TasksView {
    const name = `${follow} ${children}`
    shared[name] ??= createTasksViews({ follow, children, stream: request => streamMany(deps, request) })
    return shared[name].view(ids)
  }
}

function timeOf(given: string | Date | undefined): string | undefined {
  return given instanceof Date ? given.toISOString() : given
}

function queryOf({ metadata, ...filters }: TaskQuery = {}): Query {
  return { ...filters, ...metadataQuery(metadata) }
}

const readStatus = readJson(({ status }) => ({ status: String(status) }))
