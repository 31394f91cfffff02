/** A caller's handle of one task: its events, text, result and view, and the actions on it. */
import {
  type Attempt,
  type CancelScope,
  type ChangeTaskInput,
  type CreateTokenInput,
  type CreateTurnInput,
  type Cursor,
  type ForkTaskInput,
  hasEnded,
  type IfBusy,
  type Message,
  messagesOf,
  parseCursor,
  type RevokeTokensInput,
  RivuletError,
  type State,
  type StreamFormat,
  type Task,
  type TaskState,
  type TaskToken,
  type Turn,
  type Usage,
  type Wait,
} from '@rivulet/protocol'
import type { CallOptions } from '../http/http.ts'
import { readLines } from '../http/json-lines.ts'
import {
  type MessageQuery,
  type Page,
  readBody,
  readField,
  readJson,
  readList,
  readNothing,
  readPage,
  toEntities,
  toEntity,
} from '../http/responses.ts'
import { type FormatChunk, streamFormat } from '../stream/format-stream.ts'
import { leavable } from '../stream/leavable.ts'
import { type MessageStreamEvent, streamMessage } from '../stream/message-stream.ts'
import type { StreamDeps } from '../stream/reconnecting.ts'
import { nowhere, type Place, placeAfter } from '../stream/stream-place.ts'
import type { TaskEvent } from '../stream/task-event.ts'
import { type StreamRequest, streamTask } from '../stream/task-stream.ts'
import { createTaskWaitCalls, openWaits, type TaskWaitCalls } from '../waits.ts'
import { type ReadMessages, withTurn } from './left-out.ts'
import { createResultWait } from './result-wait.ts'
import { failureOf, type TaskResult } from './task-result.ts'
import { createTaskStateCalls, type TaskStateCalls } from './task-state-calls.ts'
import { createNarrator } from './task-text.ts'
import { createTaskView, type TaskView, type ViewOptions } from './task-view.ts'

export type { MessageQuery, Page } from '../http/responses.ts'

/** `state` is absent while it was never set. */
export type TaskDetail = { task: Task; turns: Turn[]; state?: State }

export type EventsOptions = CallOptions & {
  /** Only events after this cursor: the `cursor` of an event, or the `id:` of a frame. */
  after?: Cursor | (string & {})
  /** Without `after`: every event from the first (default), or a snapshot and every later event. */
  from?: 'start' | 'snapshot'
  /** Stay when the task has ended. Default false. */
  follow?: boolean
}

/** A line of an export: the task first, then its turns, its messages, its state if it has one, and the usage of all turns together. */
export type ExportLine =
  | { type: 'task'; task: Task }
  | { type: 'turn'; turn: Turn }
  | { type: 'message'; message: Message }
  | { type: 'state'; state: State }
  | { type: 'usage'; usage: Usage }

export type ChunksOptions = CallOptions & {
  /** The id of the last chunk that the caller has. Default: the task, or the turn, as far as it has come, and then what follows. */
  after?: string
  /** For a format of one turn. Default: the first turn that has not ended, else the last. */
  turn?: number
  /** For a format of the whole task: stay when the task has ended. Default false. */
  follow?: boolean
}

/** What a turn is about: a text, a content, or up to 20 of them, as consecutive messages of the user. */
export type TaskInput = NonNullable<CreateTurnInput['input']>

export type SendOptions = CallOptions & {
  params?: CreateTurnInput['params']
  /** When a turn is running or queued. Default `queue`. */
  ifBusy?: IfBusy
  /** Discards the turns after this one, 0 for all of them, before the new one: to edit an input, or to generate a response again. */
  after?: number
  /** With `ifBusy: 'merge'`: the turn starts so long after its latest input, but at most `debounceMaxMs` after its first. */
  debounceMs?: number
  debounceMaxMs?: number
  idempotencyKey?: string
}

export type CancelOptions = CallOptions & { scope?: CancelScope; idempotencyKey?: string }

export type TaskHandle = TaskWaitCalls & {
  readonly id: string
  /** How often a reader of this handle found that something was missing, and had it repaired by a snapshot. */
  readonly repairs: number
  /** Every event once. Each call has a connection of its own, read at the pace of its reader; leaving closes it. */
  events(options?: EventsOptions): AsyncIterableIterator<TaskEvent, void, void>
  /** The task in another format, chunk by chunk, resumed at the last id whenever the connection breaks. */
  chunks(format: StreamFormat, options?: ChunksOptions): AsyncIterableIterator<FormatChunk, void, void>
  /** The words of what is being done, as they come. Throws when it fails or is canceled. */
  text(options?: CallOptions): AsyncIterableIterator<string, void, void>
  /** Waits for the end of everything that was sent. Rejects with the turn's error, whose `cause` is the result as far as it came. */
  result(options?: CallOptions): Promise<TaskResult>
  view(options?: ViewOptions): TaskView
  /** Gives the task its next input. */
  send(input?: TaskInput, options?: SendOptions): Promise<Turn>
  /** Cancels every turn that has not ended; with `scope: 'turn'` only the one that runs. */
  cancel(reason?: string, options?: CancelOptions): Promise<Task>
  /** Copies the task up to the end of a turn, by default the last that has ended; an input is the next turn of the copy. */
  fork(request?: ForkTaskInput, options?: CallOptions & { idempotencyKey?: string }): Promise<CreatedTask>
  /** The task and its latest turns, as stored. A turn names in `omitted` what was left out of it because it is large. */
  detail(options?: CallOptions): Promise<TaskDetail>
  /** The open waits of the task. */
  waits(options?: CallOptions): Promise<Wait[]>
  /** One turn by its number, whole. */
  getTurn(number: number, options?: CallOptions): Promise<Turn>
  /** Every attempt of a turn, the first one first. */
  attempts(turnNumber: number, options?: CallOptions): Promise<Attempt[]>
  messages(query?: MessageQuery, options?: CallOptions): Promise<Page<Message, number>>
  /** One message by its index, also of a running turn. */
  getMessage(index: number, options?: CallOptions): Promise<Message>
  /** The events of one message, from its first one or after a cursor, until it is closed. Waits for a message that a turn may still send. */
  messageEvents(index: number, options?: CallOptions & { after?: string }): AsyncIterableIterator<MessageStreamEvent, void, void>
  /** A token for this task alone, for a browser: pass it to a client there as `token`. */
  createToken(wish: CreateTokenInput, options?: CallOptions): Promise<TaskToken>
  /** Ends the tokens of this task that were made before now: those of one subject, or all of them. Open streams follow within 30 s. */
  revokeTokens(whose?: RevokeTokensInput, options?: CallOptions): Promise<void>
  /** Changes the name (null removes it) and the metadata: a key with null is removed, objects are merged, other values replace. */
  change(change: ChangeTaskInput, options?: CallOptions): Promise<Task>
  /** The value that the agent keeps for the task, beside its messages. */
  readonly state: TaskStateCalls
  /** Runs the last turn again, as a new turn with the same input and params; the last one is discarded. */
  retry(options?: CallOptions & { idempotencyKey?: string }): Promise<Turn>
  /** Everything that is stored of the task, line by line. */
  export(options?: CallOptions): AsyncIterableIterator<ExportLine, void, void>
  /** Removes a task that has ended, with everything that belongs to it. */
  remove(options?: CallOptions): Promise<void>
}

export type CreatedTask = TaskHandle & {
  /** As it was when it was accepted. */
  readonly task: Task
  readonly turn: Turn
}

/** A task that was created with `start: false`. One of the same name may have a turn. */
export type UnstartedTask = TaskHandle & { readonly task: Task; readonly turn?: Turn }

/** @param turnNumber the latest turn that is known to be there; 0 when none is. */
export function createTaskHandle(deps: StreamDeps, id: string, turnNumber = 0): TaskHandle {
  const { http } = deps
  const path = `/v1/tasks/${encodeURIComponent(id)}`
  const views = new Map<boolean, ReturnType<typeof createTaskView>>()
  const results = createResultWait({ view: () => view(), messages })
  let expectedTurn = turnNumber
  let repairs = 0

  return {
    id,
    get repairs() {
      return repairs
    },
    ...createTaskWaitCalls(http, path),
    ...{ events, chunks, text, view, send, fork, detail, messages, messageEvents, retry, export: exportLines },
    result: results.wait,
    state: createTaskStateCalls(http, path),
    waits: own => detail(own).then(({ turns }) => openWaits(turns)),
    getTurn: (number, own) => http.call({ path: `${path}/turns/${number}`, ...own, read: readTurn }),
    attempts: (number, own) => http.call({ path: `${path}/turns/${number}/attempts`, ...own, read: readList<Attempt>('attempt') }),
    getMessage: (index, own) => http.call({ path: `${path}/messages/${index}`, ...own, read: readField<Message>('message') }),
    createToken: (body, own) => http.call({ method: 'POST', path: `${path}/tokens`, body, ...own, read: readBody<TaskToken>('token') }),
    revokeTokens: (query, own) => http.call({ method: 'DELETE', path: `${path}/tokens`, query, ...own, read: readNothing }),
    change: (body, own) => http.call({ method: 'PATCH', path, body, ...own, read: readTask }),
    cancel: (reason, { scope, ...own } = {}) =>
      http.call({ method: 'POST', path: `${path}/cancel`, body: { reason, scope }, ...own, read: readTask }),
    remove: own => http.call({ method: 'DELETE', path, ...own, read: readNothing, refused }),
  }

  function events({ after, from = 'start', follow = false, signal }: EventsOptions = {}): AsyncIterableIterator<TaskEvent, void, void> {
    const place: Place = after === undefined ? nowhere : placeAfter(requireCursor(after))
    return leavable(signal, async function* (own) {
      for await (const { event } of stream({ place, from, follow, isForgetful: true, signal: own })) yield event
    })
  }

  function chunks(format: StreamFormat, { signal, ...options }: ChunksOptions = {}): AsyncIterableIterator<FormatChunk, void, void> {
    return leavable(signal, own => streamFormat(deps, { id, format, ...options, signal: own }))
  }

  function text({ signal }: CallOptions = {}): AsyncIterableIterator<string, void, void> {
    const firstTurn = (state: TaskState) => expectedTurn || turnAtHand(state)
    const narrator = createNarrator(firstTurn)
    return leavable(signal, async function* (own) {
      const stored: ReadMessages = query => messages(query, { signal: own })
      for await (const { event, place } of stream({ place: nowhere, from: 'snapshot', follow: false, signal: own })) {
        const { state } = place
        yield* narrator.tell(event, event.type === 'snapshot' ? await withTurn(state, firstTurn(state), stored) : state)
        const failure = event.type === 'end' ? failureIn(place.state) : null
        if (failure) throw failure
      }
    })
  }

  function view({ follow = false }: ViewOptions = {}) {
    const known = views.get(follow) ?? createTaskView({ id, follow, stream })
    views.set(follow, known)
    return known
  }

  async function send(input?: TaskInput, { idempotencyKey, signal, ...how }: SendOptions = {}): Promise<Turn> {
    const body = { input, ...how }
    return expect(await http.call({ method: 'POST', path: `${path}/turns`, body, idempotencyKey, signal, read: readTurn }))
  }

  /** A turn that this handle has added: its streams, views and results go on until it has ended. */
  function expect(sent: Turn): Turn {
    expectedTurn = Math.max(expectedTurn, sent.number)
    results.renew()
    for (const known of views.values()) known.resume()
    return sent
  }

  function detail(own?: CallOptions): Promise<TaskDetail> {
    const read = readJson(({ task, turns, state }) => ({
      ...{ task: toEntity<Task>(task, 'task'), turns: toEntities<Turn>(turns, 'turn') },
      ...(state !== undefined && { state: toEntity<State>(state, 'state') }),
    }))
    return http.call({ path, ...own, read })
  }

  async function fork(body: ForkTaskInput = {}, call: CallOptions & { idempotencyKey?: string } = {}): Promise<CreatedTask> {
    const accepted = await http.call({ method: 'POST', path: `${path}/fork`, body, ...call, read: readAccepted })
    return Object.assign(createTaskHandle(deps, accepted.task.id, accepted.turn.number), accepted)
  }

  function messages(query?: MessageQuery, own?: CallOptions): Promise<Page<Message, number>> {
    return http.call({ path: `${path}/messages`, query, ...own, read: readPage<Message, number>('message') })
  }

  function messageEvents(index: number, { after, signal }: CallOptions & { after?: string } = {}) {
    return leavable(signal, own => streamMessage(deps, { id, index, after, signal: own }))
  }

  async function retry(own?: CallOptions & { idempotencyKey?: string }): Promise<Turn> {
    return expect(await http.call({ method: 'POST', path: `${path}/retry`, body: {}, ...own, read: readTurn }))
  }

  function exportLines({ signal }: CallOptions = {}): AsyncIterableIterator<ExportLine, void, void> {
    return leavable(signal, async function* (own) {
      const body = await http.call({ path: `${path}/export`, signal: own, read: async response => response.body })
      if (body) yield* readLines<ExportLine>(body, own)
    })
  }

  function stream(request: Omit<StreamRequest, 'id' | 'expectedTurn'>) {
    return streamTask(deps, {
      ...request,
      id,
      expectedTurn: () => expectedTurn,
      onRepair: () => {
        repairs += 1
        request.onRepair?.()
      },
    })
  }
}

const readTurn = readField<Turn>('turn')
const readTask = readField<Task>('task')

/** Reads the response to a request that creates a task, whose turn is there. */
const readAccepted = readJson(({ task, turn }) => ({ task: toEntity<Task>(task, 'task'), turn: toEntity<Turn>(turn, 'turn') }))

/** The same of a task that may have no turn yet. */
export const readCreated = readJson(({ task, turn }) => ({
  task: toEntity<Task>(task, 'task'),
  ...(turn !== undefined && { turn: toEntity<Turn>(turn, 'turn') }),
}))

export function requireCursor(given: string): Cursor {
  const cursor = parseCursor(given)
  if (cursor === null) throw new RivuletError('bad_cursor', 'A cursor must be <epoch>-<seq>, two whole numbers')
  return cursor
}

/** A task that is not there any more, when an earlier try may have removed it, is removed. */
function refused(error: unknown, retries: number): void {
  if (retries === 0 || !(error instanceof RivuletError) || error.code !== 'task_not_found') throw error
}

/** The turn that a newcomer is interested in: the first that has not ended, else the last. */
function turnAtHand({ turns }: TaskState): number {
  return (turns.find(({ status }) => !hasEnded(status)) ?? turns.at(-1))?.number ?? 0
}

function failureIn(state: TaskState): RivuletError | null {
  const turn = state.turns.at(-1)
  return turn && hasEnded(state.status) ? failureOf(state.status, turn, messagesOf(state)) : null
}
