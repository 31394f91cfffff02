/** A caller's handle of one task: its calls, and its streams, views and results, which go on until every turn that the handle has added has ended. */

import type { StreamFormat } from '@rivulet/contract/fields'
import type { ForkTaskInput } from '@rivulet/contract/tasks'
import type { CreateTurnInput, IfBusy } from '@rivulet/contract/turns'
import {
  type Cursor,
  hasEnded,
  messagesOf,
  type RivuletError,
  requireCursor,
  type Task,
  type TaskState,
  type Turn,
} from '@rivulet/protocol'
import type { CallOptions } from '../http/http.ts'
import { pathOf } from '../http/path-of.ts'
import { readFields } from '../http/responses.ts'
import { type FormatChunk, streamFormat } from '../stream/format-stream.ts'
import { leavable } from '../stream/leavable.ts'
import { type MessageStreamEvent, streamMessage } from '../stream/message-stream.ts'
import type { StreamDeps } from '../stream/reconnecting.ts'
import { nowhere, type Place, placeAfter } from '../stream/stream-place.ts'
import type { TaskEvent } from '../stream/task-event.ts'
import { type StreamRequest, streamTask } from '../stream/task-stream.ts'
import { type ReadMessages, withTurn } from './left-out.ts'
import { createResultWait } from './result-wait.ts'
import { createTaskCalls, readTurn, type TaskCalls } from './task-calls.ts'
import { failureOf, type TaskResult } from './task-result.ts'
import { createNarrator } from './task-text.ts'
import { createTaskView, type TaskView, type ViewOptions } from './task-view.ts'

export type EventsOptions = CallOptions & {
  /** Only events after this cursor: the `cursor` of an event, or the `id:` of a frame. */
  after?: Cursor | (string & {})
  /** Without `after`: every event from the first (default), or a snapshot and every later event. */
  from?: 'start' | 'snapshot'
  /** Stay when the task has ended. Default false. */
  follow?: boolean
}

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
  /** For the agent alone, encrypted until then. Default: those of the task. */
  secrets?: CreateTurnInput['secrets']
  /** When a turn is running or queued. Default `queue`. */
  ifBusy?: IfBusy
  /** Discards the turns after this one, 0 for all of them, before the new one: to edit an input, or to generate a response again. */
  after?: number
  /** With `ifBusy: 'merge'`: the turn starts so long after its latest input, but at most `debounceMaxMs` after its first. */
  debounceMs?: number
  debounceMaxMs?: number
  idempotencyKey?: string
}

export type TaskHandle = TaskCalls & {
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
  /** Copies the task up to the end of a turn, by default the last that has ended; an input is the next turn of the copy. */
  fork(request?: ForkTaskInput, options?: CallOptions & { idempotencyKey?: string }): Promise<CreatedTask>
  /** The events of one message, from its first one or after a cursor, until it is closed. Waits for a message that a turn may still send. */
  messageEvents(index: number, options?: CallOptions & { after?: string }): AsyncIterableIterator<MessageStreamEvent, void, void>
  /** Runs the last turn again, as a new turn with the same input and params; the last one is discarded. */
  retry(options?: CallOptions & { idempotencyKey?: string }): Promise<Turn>
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
  const path = pathOf('tasks', id)
  const views = new Map<boolean, ReturnType<typeof createTaskView>>()
  const { retryTurn, ...calls } = createTaskCalls(http, id)
  const results = createResultWait({ view: () => view(), messages: calls.messages })
  let expectedTurn = turnNumber
  let repairs = 0

  return {
    id,
    get repairs() {
      return repairs
    },
    ...calls,
    ...{ events, chunks, text, view, send, fork, messageEvents, retry },
    result: results.wait,
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
      const stored: ReadMessages = query => calls.messages(query, { signal: own })
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

  async function fork(body: ForkTaskInput = {}, call: CallOptions & { idempotencyKey?: string } = {}): Promise<CreatedTask> {
    const { task, turn } = await http.call({ method: 'POST', path: `${path}/fork`, body, ...call, read: readForked })
    return Object.assign(createTaskHandle(deps, task.id, turn.number), { task, turn })
  }

  function messageEvents(index: number, { after, signal }: CallOptions & { after?: string } = {}) {
    return leavable(signal, own => streamMessage(deps, { id, index, after, signal: own }))
  }

  async function retry(own?: CallOptions & { idempotencyKey?: string }): Promise<Turn> {
    return expect(await retryTurn({}, own))
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

const readForked = readFields<{ task: Task; turn: Turn }>('task:task turn:turn')

/** Of a request that creates a task, which may have no turn yet. */
export const readCreated = readFields<{ task: Task; turn?: Turn }>('task:task turn?:turn')

/** The turn that a newcomer is interested in: the first that has not ended, else the last. */
function turnAtHand({ turns }: TaskState): number {
  return (turns.find(({ status }) => !hasEnded(status)) ?? turns.at(-1))?.number ?? 0
}

function failureIn(state: TaskState): RivuletError | null {
  const turn = state.turns.at(-1)
  return turn && hasEnded(state.status) ? failureOf(state.status, turn, messagesOf(state)) : null
}
