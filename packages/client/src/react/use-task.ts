/** A task in a component: its state as it streams, and the actions on it. */
import {
  type FoldedTurn,
  type Message,
  noState,
  RivuletError,
  type State,
  type Task,
  type TaskStatus,
  type Turn,
  type Wait,
} from '@rivulet/protocol'
import { useMemo, useSyncExternalStore } from 'react'
import type { RivuletClient } from '../client.ts'
import type { TaskTokenSource } from '../http/credentials.ts'
import type { ConnectionStatus } from '../stream/connection-status.ts'
import type { CancelOptions } from '../task/task-calls.ts'
import type { SendOptions, TaskHandle, TaskInput } from '../task/task-handle.ts'
import { failureOf } from '../task/task-result.ts'
import type { ViewOptions, ViewState } from '../task/task-view.ts'
import { openWaits } from '../waits.ts'
import { useClient } from './client-context.ts'
import { createFrameStore, type FrameStore } from './frame-store.ts'
import { type TaskSource, useHandle } from './use-handle.ts'

export type { TaskSource } from './use-handle.ts'

export type UseTaskOptions = ViewOptions & {
  /** Default: that of the provider. */
  client?: RivuletClient
  /** For a task by its id or by what to create: a token for it, or how to get one. May be written in place; the latest one is asked. */
  token?: TaskTokenSource | undefined
}

export type UsedTask = {
  /** Null until the task is created, and if the hook got neither a task nor an id. */
  task: TaskHandle | null
  /** From `messagesFrom` on; earlier ones are had by `task.messages()`. Those that did not change are the same objects as before. */
  messages: readonly Message[]
  messagesFrom: number
  turns: readonly FoldedTurn[]
  /** The value that the agent keeps for the task, with the changes of the turn that runs; `version` is 0 while it was never set. */
  state: State
  /** Null until the task has been heard of. */
  status: TaskStatus | null
  connection: ConnectionStatus
  /** Why it could not be created or watched, or what it failed with. */
  error: RivuletError | null
  /** The open waits, for forms. */
  waits: readonly Wait[]
  answer: TaskHandle['answer']
  send(input?: TaskInput, options?: SendOptions): Promise<Turn>
  cancel(reason?: string, options?: CancelOptions): Promise<Task>
}

/** @param source the id of a task, what to create, a handle that another component has as well, or null. */
export function useTask(source: TaskSource, { client: given, token, follow = false }: UseTaskOptions = {}): UsedTask {
  const { task, error: rejection } = useHandle(useClient(given), source, token)
  const store = useMemo(() => (task ? createFrameStore(task.view({ follow })) : nothing), [task, follow])
  const state = useSyncExternalStore(store.subscribe, store.current, store.current)
  const actions = useMemo(() => actionsOf(task), [task])
  return useMemo(() => {
    const { messages, messagesFrom, turns, status, connection, state: taskState } = state
    const waits = openWaits(turns)
    return {
      task,
      messages,
      messagesFrom,
      turns,
      state: taskState,
      waits,
      status,
      connection,
      error: rejection ?? state.error ?? failureIn(state),
      ...actions,
    }
  }, [task, state, rejection, actions])
}

function actionsOf(task: TaskHandle | null): Pick<UsedTask, 'send' | 'cancel' | 'answer'> {
  const missing = async (): Promise<never> => {
    throw new RivuletError('task_not_found', 'There is no task yet')
  }
  if (!task) return { send: missing, cancel: missing, answer: missing }
  return {
    send: (input, options) => task.send(input, options),
    cancel: (reason, options) => task.cancel(reason, options),
    answer: task.answer,
  }
}

function failureIn({ status, turns }: ViewState): RivuletError | null {
  const turn = turns.at(-1)
  return status === 'failed' && turn ? failureOf(status, turn) : null
}

const nothingYet: ViewState = {
  ...{ id: '', task: null, status: null, turns: [], messages: [], messagesFrom: 0, state: noState, cursor: null },
  ...{ connection: 'idle', error: null, repairs: 0 },
}

const nothing: FrameStore<ViewState> = { subscribe: () => () => {}, current: () => nothingYet }
