/** The calls about one task that are one request each. They keep nothing: streams, views and results are those of the handle. */

import type { CancelScope, ChangeTaskInput, Step } from '@rivulet/contract/tasks'
import type { CreateTokenInput, RevokeTokensInput, TaskToken } from '@rivulet/contract/tokens'
import type { Attempt } from '@rivulet/contract/turns'
import { type Message, RivuletError, type State, type Task, type Turn, type Usage, type Wait } from '@rivulet/protocol'
import type { CallOptions, Http } from '../http/http.ts'
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
import { leavable } from '../stream/leavable.ts'
import { createTaskWaitCalls, openWaits, type TaskWaitCalls } from '../waits.ts'

/** `state` is absent while it was never set. */
export type TaskDetail = { task: Task; turns: Turn[]; state?: State }

/** A line of an export: the task first, then its turns, its messages, its state if it has one, and the usage of all turns together. */
export type ExportLine =
  | { type: 'task'; task: Task }
  | { type: 'turn'; turn: Turn }
  | { type: 'message'; message: Message }
  | { type: 'state'; state: State }
  | { type: 'usage'; usage: Usage }

export type CancelOptions = CallOptions & { scope?: CancelScope; idempotencyKey?: string }

export type TaskCalls = TaskWaitCalls & {
  /** The task and its latest turns, as stored. A turn names in `omitted` what was left out of it because it is large. */
  detail(options?: CallOptions): Promise<TaskDetail>
  /** The open waits of the task. */
  waits(options?: CallOptions): Promise<Wait[]>
  /** One turn by its number, whole. */
  getTurn(number: number, options?: CallOptions): Promise<Turn>
  /** Every attempt of a turn, the first one first. */
  attempts(turnNumber: number, options?: CallOptions): Promise<Attempt[]>
  /** The latest steps that its turns have taken, the earliest of them first. Not for a token. */
  steps(options?: CallOptions): Promise<Step[]>
  messages(query?: MessageQuery, options?: CallOptions): Promise<Page<Message, number>>
  /** One message by its index, also of a running turn. */
  getMessage(index: number, options?: CallOptions): Promise<Message>
  /** A token for this task alone, for a browser: pass it to a client there as `token`. */
  createToken(token: CreateTokenInput, options?: CallOptions): Promise<TaskToken>
  /** Ends the tokens of this task that were made before now: those of one subject, or all of them. Open streams follow within 30 s. */
  revokeTokens(whose?: RevokeTokensInput, options?: CallOptions): Promise<void>
  /** Changes the name (null removes it) and the metadata: a key with null is removed, objects are merged, other values replace. */
  change(change: ChangeTaskInput, options?: CallOptions): Promise<Task>
  /** Cancels every turn that has not ended; with `scope: 'turn'` only the one that runs. */
  cancel(reason?: string, options?: CancelOptions): Promise<Task>
  /** Everything that is stored of the task, line by line. */
  export(options?: CallOptions): AsyncIterableIterator<ExportLine, void, void>
  /** Removes a task that has ended, with everything that belongs to it. */
  remove(options?: CallOptions): Promise<void>
}

export function createTaskCalls(http: Http, path: string): TaskCalls {
  return {
    ...createTaskWaitCalls(http, path),
    detail,
    waits: own => detail(own).then(({ turns }) => openWaits(turns)),
    getTurn: (number, own) => http.call({ path: `${path}/turns/${number}`, ...own, read: readTurn }),
    attempts: (number, own) => http.call({ path: `${path}/turns/${number}/attempts`, ...own, read: readList<Attempt>('attempt') }),
    steps: own => http.call({ path: `${path}/steps`, ...own, read: readList<Step>('step') }),
    messages: (query, own) => http.call({ path: `${path}/messages`, query, ...own, read: readPage<Message, number>('message') }),
    getMessage: (index, own) => http.call({ path: `${path}/messages/${index}`, ...own, read: readField<Message>('message') }),
    createToken: (body, own) => http.call({ method: 'POST', path: `${path}/tokens`, body, ...own, read: readBody<TaskToken>('token') }),
    revokeTokens: (query, own) => http.call({ method: 'DELETE', path: `${path}/tokens`, query, ...own, read: readNothing }),
    change: (body, own) => http.call({ method: 'PATCH', path, body, ...own, read: readTask }),
    cancel: (reason, { scope, ...own } = {}) =>
      http.call({ method: 'POST', path: `${path}/cancel`, body: { reason, scope }, ...own, read: readTask }),
    export: exportLines,
    remove: own => http.call({ method: 'DELETE', path, ...own, read: readNothing, refused }),
  }

  function detail(own?: CallOptions): Promise<TaskDetail> {
    const read = readJson(({ task, turns, state }) => ({
      task: toEntity<Task>(task, 'task'),
      turns: toEntities<Turn>(turns, 'turn'),
      ...(state !== undefined && { state: toEntity<State>(state, 'state') }),
    }))
    return http.call({ path, ...own, read })
  }

  function exportLines({ signal }: CallOptions = {}): AsyncIterableIterator<ExportLine, void, void> {
    return leavable(signal, async function* (own) {
      const body = await http.call({ path: `${path}/export`, signal: own, read: async response => response.body })
      if (body) yield* readLines<ExportLine>(body, own)
    })
  }
}

export const readTurn = readField<Turn>('turn')
const readTask = readField<Task>('task')

/** A task that is not there any more, when an earlier try may have removed it, is removed. */
function refused(error: unknown, retries: number): void {
  if (retries === 0 || !(error instanceof RivuletError) || error.code !== 'task_not_found') throw error
}
