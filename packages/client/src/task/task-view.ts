/**
 * The current state of a task: the live fold, kept up to date by one connection for all subscribers.
 *
 * `current` is immutable, and an unchanged part is the same object in the next value. The connection opens a moment after the first listener
 * subscribes, and closes with the last; a later listener continues where the view stopped.
 */
import {
  type Cursor,
  type FoldedTurn,
  type Message,
  messagesOf,
  noState,
  type RivuletError,
  type State,
  type Task,
  type TaskState,
  type TaskStatus,
} from '@rivulet/protocol'
import { toRivuletError } from '../http/rejection.ts'
import type { ConnectionStatus } from '../stream/connection-status.ts'
import { nowhere, type Place } from '../stream/stream-place.ts'
import type { Heard } from '../stream/task-reader.ts'
import type { StreamRequest } from '../stream/task-stream.ts'

export type ViewState = Readonly<{
  id: string
  /** Null until the first snapshot came. */
  task: Task | null
  status: TaskStatus | null
  /** The latest ones, ascending. */
  turns: readonly FoldedTurn[]
  /** From `messagesFrom` on, without holes; earlier ones are had by `messages()`. */
  messages: readonly Message[]
  messagesFrom: number
  /** The state of the task, with the changes of the turn that runs. */
  state: State
  cursor: Cursor | null
  connection: ConnectionStatus
  /** Why the connection failed for good. */
  error: RivuletError | null
  /** How often something was missing and a snapshot had to repair it. */
  repairs: number
}>

export type TaskView = {
  readonly current: ViewState
  /** Called on every change, at once; read `current` then. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void
}

export type ViewOptions = {
  /** Stay connected when the task has ended, to see what others send it. Default false: `send` on the same handle connects again. */
  follow?: boolean
}

type ViewDeps = {
  id: string
  follow: boolean
  stream(request: Pick<StreamRequest, 'place' | 'from' | 'follow' | 'signal' | 'onStatus' | 'onRepair'>): AsyncGenerator<Heard, void, void>
}

export function createTaskView({ id, follow, stream }: ViewDeps): TaskView & { resume(): void } {
  const listeners = new Set<() => void>()
  let place: Place = nowhere
  let task: Task | null = null
  let connection: ConnectionStatus = 'idle'
  let error: RivuletError | null = null
  let repairs = 0
  let running: AbortController | null = null
  let shown: ViewState | null = null
  const messages = rememberMessages()

  return {
    get current() {
      shown ??= look()
      return shown
    },
    subscribe,
    resume,
  }

  function subscribe(listener: () => void): () => void {
    // The same function may come twice; each has to leave by itself.
    const own = () => listener()
    listeners.add(own)
    // Not at once: a component that subscribes, leaves and subscribes again in one go, as React's StrictMode does, opens one connection.
    if (listeners.size === 1) queueMicrotask(resume)
    return () => {
      if (listeners.delete(own) && listeners.size === 0) stop()
    }
  }

  /** Continues from the current cursor, if there are subscribers. An ended task may have started again. */
  function resume(): void {
    if (running) return
    connection = 'idle'
    shown = null
    if (listeners.size === 0) return
    const controller = new AbortController()
    running = controller
    void run(controller)
  }

  function stop(): void {
    running?.abort()
    running = null
    if (connection !== 'ended' && connection !== 'failed') connection = 'idle'
    shown = null
  }

  async function run(controller: AbortController): Promise<void> {
    const { signal } = controller
    const change = (apply: () => void) => {
      if (running !== controller) return
      apply()
      tell()
    }
    const onStatus = (status: ConnectionStatus) =>
      change(() => {
        connection = status
      })
    const onRepair = () =>
      change(() => {
        repairs += 1
      })
    error = null
    try {
      for await (const heard of stream({ place, from: 'snapshot', follow, signal, onStatus, onRepair })) {
        change(() => {
          place = heard.place
          if (heard.event.type === 'snapshot') task = heard.event.task
        })
      }
      finish('ended', null)
    } catch (reason) {
      if (!signal.aborted) finish('failed', toRivuletError(reason))
    }

    function finish(status: ConnectionStatus, reason: RivuletError | null): void {
      change(() => {
        running = null
        connection = status
        error = reason
      })
    }
  }

  function tell(): void {
    shown = null
    notify(listeners)
  }

  function look(): ViewState {
    const state = viewStateOf({ id, place, task, messages, connection, error, repairs })
    task = state.task
    return state
  }
}

export function notify(listeners: ReadonlySet<() => void>): void {
  for (const listener of [...listeners]) {
    try {
      listener()
    } catch (reason) {
      // One listener's mistake is not the other's silence, nor the end of the stream.
      queueMicrotask(() => {
        throw reason
      })
    }
  }
}

export function viewStateOf({
  place: { state, cursor },
  task,
  messages,
  ...rest
}: Pick<ViewState, 'id' | 'task' | 'connection' | 'error' | 'repairs'> & {
  place: Place
  messages: ReturnType<typeof rememberMessages>
}): ViewState {
  const { status, turns, messagesFrom } = state
  const current = task && task.status !== status ? { ...task, status } : task
  const known = { task: current, status: task && status, turns, messages: messages(state), messagesFrom, cursor }
  return { ...rest, ...known, state: state.agentState ?? noState }
}

/** The list before, if the next one has the same items. */
export function unlessSame<T>(before: readonly T[], next: readonly T[]): readonly T[] {
  return next.length !== before.length || next.some((item, place) => item !== before[place]) ? next : before
}

/** The messages of a state; the same array while none of them changes. */
export function rememberMessages(): (state: TaskState) => readonly Message[] {
  let list: TaskState['messages'] | null = null
  let messages: readonly Message[] = []
  return state => {
    if (state.messages === list) return messages
    messages = unlessSame(messages, messagesOf(state))
    list = state.messages
    return messages
  }
}
