/** The calls about one task that are one request each. They keep nothing: streams, views and results are those of the handle. */

import type { CancelScope } from '@rivulet/contract/tasks'
import { type Json, type Message, RivuletError, type State, type Task, type Turn, type Usage, type Wait } from '@rivulet/protocol'
import type { Calls } from '../generated/calls.ts'
import { callsOf } from '../http/calls.ts'
import type { CallOptions, Http } from '../http/http.ts'
import { readLines } from '../http/json-lines.ts'
import { pathOf } from '../http/path-of.ts'
import { readFields, readNothing } from '../http/responses.ts'
import { leavable } from '../stream/leavable.ts'
import { createTaskWaitCalls, openWaits, type TaskWaitCalls } from '../waits.ts'

/** `state` is absent while it was never set. */
export type TaskDetail = Awaited<ReturnType<Calls['tasks']['get']>>

/** A line of an export: the task first, then its turns, its messages, its state if it has one, and the usage of all turns together. */
export type ExportLine =
  | { type: 'task'; task: Task }
  | { type: 'turn'; turn: Turn }
  | { type: 'message'; message: Message }
  | { type: 'state'; state: State }
  | { type: 'usage'; usage: Usage }

export type CancelOptions = CallOptions & { scope?: CancelScope; idempotencyKey?: string }

export type TaskStateCalls = {
  /** As the last turn that ended or parked has left it. Version 0 and null while it was never set. */
  get(options?: CallOptions): Promise<State>
  /**
   * Replaces the state of which the caller knows this version; `any` replaces whatever is there. Rejects with `precondition_failed` if it has another
   * version, and with `task_busy` while a turn runs. A reply that was lost makes the retry of the call fail with `precondition_failed`, too.
   */
  put(value: Json, version: number | 'any', options?: CallOptions): Promise<State>
}

type Wrapped = 'cancelTask' | 'get' | 'getState' | 'putState' | 'retryTurn'

type OwnTaskCalls = {
  /** The task and its latest turns, as stored. A turn names in `omitted` what was left out of it because it is large. */
  detail(options?: CallOptions): Promise<TaskDetail>
  /** The open waits of the task. */
  waits(options?: CallOptions): Promise<Wait[]>
  /** One turn by its number, whole. */
  getTurn(number: number, options?: CallOptions): Promise<Turn>
  /** Cancels every turn that has not ended; with `scope: 'turn'` only the one that runs. */
  cancel(reason?: string, options?: CancelOptions): Promise<Task>
  /** Everything that is stored of the task, line by line. */
  export(options?: CallOptions): AsyncIterableIterator<ExportLine, void, void>
  /** Removes a task that has ended, with everything that belongs to it. */
  remove(options?: CallOptions): Promise<void>
  /** The value that the agent keeps for the task, beside its messages. */
  readonly state: TaskStateCalls
}

export type TaskCalls = TaskWaitCalls & OwnTaskCalls & Omit<Calls['tasks'], Wrapped>

export function createTaskCalls(http: Http, id: string): TaskCalls & Pick<Calls['tasks'], 'retryTurn'> {
  const path = pathOf('tasks', id)
  const { get: detail, getState, putState, cancelTask, ...calls } = callsOf(http, 'tasks', id)
  return {
    ...calls,
    ...createTaskWaitCalls(http, id),
    detail,
    waits: own => detail(own).then(({ turns }) => openWaits(turns)),
    getTurn: (number, own) => http.call({ path: `${path}/turns/${number}`, ...own, read: readTurn }),
    cancel: (reason, { scope, ...own } = {}) => cancelTask({ reason, scope }, own),
    export: exportLines,
    remove: own => http.call({ method: 'DELETE', path, ...own, read: readNothing, refused }),
    state: {
      get: getState,
      put: (value, version, own) => putState({ value }, { ...own, ifMatch: version === 'any' ? '*' : `"${version}"` }),
    },
  }

  function exportLines({ signal }: CallOptions = {}): AsyncIterableIterator<ExportLine, void, void> {
    return leavable(signal, async function* (own) {
      const body = await http.call({ path: `${path}/export`, signal: own, read: async response => response.body })
      if (body) yield* readLines<ExportLine>(body, own)
    })
  }
}

export const readTurn = readFields<Turn>('turn:turn')

/** A task that is not there any more, when an earlier try may have removed it, is removed. */
function refused(error: unknown, retries: number): void {
  if (retries === 0 || !(error instanceof RivuletError) || error.code !== 'task_not_found') throw error
}
