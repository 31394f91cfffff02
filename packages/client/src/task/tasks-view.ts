/**
 * The current state of several tasks, kept up to date by one connection for all views of a client, so a page has one however many lists it shows.
 *
 * A task is watched while a listener subscribes to a view that names it, or one of its parents, if the views have children. A task that is added joins at
 * its place by a new connection, which resumes the others exactly. The state of each task is immutable, and the same object until it changes.
 */
import type { RivuletError, Task } from '@rivulet/protocol'
import { toRivuletError } from '../http/rejection.ts'
import type { ConnectionStatus } from '../stream/connection-status.ts'
import type { ManyHeard, ManyRequest } from '../stream/many-stream.ts'
import { nowhere, type Place, taskDeleted } from '../stream/stream-place.ts'
import { notify, rememberMessages, unlessSame, type ViewOptions, type ViewState, viewStateOf } from './task-view.ts'

export type TasksView = {
  /** In the order of the ids; behind them their children, in the order in which they were heard of. */
  readonly current: readonly ViewState[]
  /** Called on every change, at once; read `current` then. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void
}

export type TasksViewOptions = ViewOptions & {
  /** Also the children of these tasks, of all levels: those that have not ended, and those that start later. Default false. */
  children?: boolean
}

type TasksViewDeps = Required<TasksViewOptions> & { stream(request: ManyRequest): AsyncGenerator<ManyHeard, void, void> }

type Watched = {
  readonly id: string
  readonly messages: ReturnType<typeof rememberMessages>
  place: Place
  task: Task | null
  repairs: number
  /** How many subscriptions name it. */
  users: number
  progress: { at: 'open' } | { at: 'ended' } | { at: 'failed'; error: RivuletError }
  shown: ViewState | null
}

export function createTasksViews({ follow, children, stream }: TasksViewDeps) {
  const watched = new Map<string, Watched>()
  const listeners = new Set<() => void>()
  let running: { controller: AbortController; ids: Set<string> } | null = null
  let connection: ConnectionStatus = 'idle'
  let isScheduled = false
  return { view }

  function view(given: readonly string[]): TasksView {
    const ids = [...new Set(given.map(id => id.toLowerCase()))]
    const unwatched = new Map(ids.map(id => [id, stateOf(newTask(id))]))
    let shown: readonly ViewState[] = []
    return {
      get current() {
        const next = Array.from(withChildren(ids), id => stateAt(id) ?? (unwatched.get(id) as ViewState))
        shown = unlessSame(shown, next)
        return shown
      },
      subscribe: listener => subscribe(ids, listener),
    }
  }

  /** These, and behind them all their children that are known, and theirs. */
  function withChildren(ids: readonly string[]): Set<string> {
    const all = new Set(ids)
    let size = 0
    while (children && size < all.size) {
      size = all.size
      for (const { id, task } of watched.values()) if (all.has(task?.parent ?? '')) all.add(id)
    }
    return all
  }

  function subscribe(ids: readonly string[], listener: () => void): () => void {
    const own = () => listener()
    listeners.add(own)
    for (const id of ids) {
      const task = watched.get(id) ?? newTask(id)
      task.users += 1
      watched.set(id, task)
    }
    schedule()
    return () => {
      if (!listeners.delete(own)) return
      for (const id of ids) (watched.get(id) as Watched).users -= 1
      schedule()
    }
  }

  /** Not at once: lists that change in one go, and React's StrictMode, open one connection. */
  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    queueMicrotask(() => {
      isScheduled = false
      connect()
    })
  }

  function connect(): void {
    const kept = withChildren(Array.from(watched.values()).flatMap(({ id, users }) => (users > 0 ? [id] : [])))
    for (const id of watched.keys()) {
      if (kept.has(id)) continue
      watched.delete(id)
      // The connection still has it; a view that wants it again needs another, which begins with a snapshot.
      running?.ids.delete(id)
    }
    const open = Array.from(watched.values()).filter(({ progress }) => progress.at === 'open')
    if (open.length > 0 && running && open.every(({ id }) => running?.ids.has(id))) return
    running?.controller.abort()
    running = null
    if (open.length === 0) {
      changeConnection('idle')
      return
    }
    const controller = new AbortController()
    running = { controller, ids: new Set(open.map(({ id }) => id)) }
    void run(controller, new Map(open.map(({ id, place }) => [id, place])))
  }

  async function run(controller: AbortController, places: ReadonlyMap<string, Place>): Promise<void> {
    const { signal } = controller
    const isOurs = () => running?.controller === controller
    const onStatus = (status: ConnectionStatus) => isOurs() && changeConnection(status)
    const onRepair = (id: string) => {
      const task = watched.get(id)
      if (task && isOurs()) task.repairs += 1
    }
    try {
      for await (const heard of stream({ places, from: 'snapshot', follow, children, signal, onStatus, onRepair }))
        if (isOurs()) take(heard)
    } catch (reason) {
      if (isOurs()) fail(reason, places)
    }
    if (!isOurs()) return
    running = null
    schedule()
  }

  function take({ id, event, place }: ManyHeard): void {
    const isChild = children && event.type === 'snapshot' && watched.has(event.task.parent ?? '')
    const task = watched.get(id) ?? (isChild && newTask(id))
    if (!task) return
    watched.set(id, task)
    running?.ids.add(id)
    task.place = place
    if (event.type === 'snapshot') task.task = event.task
    if (event.type === 'end') task.progress = { at: 'ended' }
    if (event.type === 'deleted') task.progress = { at: 'failed', error: taskDeleted() }
    task.shown = null
    notify(listeners)
  }

  /** An error that names tasks is theirs; any other is that of all. */
  function fail(reason: unknown, places: ReadonlyMap<string, Place>): void {
    const error = toRivuletError(reason)
    const named = (error.details ?? []).map(({ path }) => path.replace(/^\/tasks\//, '')).filter(id => places.has(id))
    for (const id of named.length > 0 ? named : places.keys()) {
      const task = watched.get(id)
      if (task) Object.assign(task, { progress: { at: 'failed', error }, shown: null })
    }
    notify(listeners)
  }

  function changeConnection(status: ConnectionStatus): void {
    if (connection === status) return
    connection = status
    for (const task of watched.values()) task.shown = null
    notify(listeners)
  }

  function stateAt(id: string): ViewState | undefined {
    const task = watched.get(id)
    if (task) task.shown ??= stateOf(task)
    return task?.shown ?? undefined
  }

  function stateOf({ id, place, task, messages, progress, repairs }: Watched): ViewState {
    const error = progress.at === 'failed' ? progress.error : null
    return viewStateOf({ id, place, task, messages, connection: progress.at === 'open' ? connection : progress.at, error, repairs })
  }
}

function newTask(id: string): Watched {
  return { id, messages: rememberMessages(), place: nowhere, task: null, repairs: 0, users: 0, progress: { at: 'open' }, shown: null }
}
