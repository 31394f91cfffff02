/**
 * Opens the viewers of several tasks on one response, a few at a time, so that their snapshots do not fill the memory of the process together. With
 * children, a child is added when its start passes, and the open children of a task when a snapshot of the task passes: a snapshot stands for events that
 * the client does not get.
 */
import type { LogReader } from '@rivulet/broker'
import { type Cursor, maxStreamTasks, RivuletError, type TaskId } from '@rivulet/protocol'
import type { Tenant } from '../../store/connection/tenant.ts'
import type { Hub } from '../hub.ts'
import type { SseResponse } from '../sse-response.ts'
import { findPlace } from '../viewer/viewer-place.ts'
import { type ManyResponse, respondToMany } from './many-response.ts'

const openedTogether = 8

/** `onError` gets what keeps a task from being watched. The connection is cut then, so that the client asks again and gets the reason. */
export type ManyDeps = { hub: Hub; log: LogReader; onError: (error: unknown) => void }

export type ManyRequest = {
  tenant: Tenant
  tasks: ReadonlyMap<TaskId, Cursor | null>
  isFollowing: boolean
  children: Children | null
}

export type Children = {
  /** The children of a task that have not ended. */
  openOf(task: TaskId): Promise<TaskId[]>
  /** Throws `task_not_found` for a child that the caller may not read: it may be of another agent. */
  check(child: TaskId): Promise<void>
}

export function watchMany(deps: ManyDeps, response: SseResponse, { tenant, tasks, isFollowing, children }: ManyRequest): ManyResponse {
  const known = new Set(tasks.keys())
  const many = respondToMany(response, tasks.size, {
    isTagged: true,
    children: children && { started: addChild, snapshot: addOpenChildren },
  })
  const opener = createOpener(deps, many, response, { tenant, isFollowing, check: async () => {}, onMissing: null })
  const childOpener = children && createOpener(deps, many, response, { tenant, isFollowing, check: children.check, onMissing: many.skip })
  for (const [task, cursor] of tasks) opener.open(task, cursor)
  return many

  function addChild(child: TaskId): void {
    if (known.has(child) || known.size >= maxStreamTasks) return
    known.add(child)
    many.await()
    childOpener?.open(child, null)
  }

  function addOpenChildren(task: TaskId): void {
    // The response must not end with the task before its children are known.
    many.await()
    children
      ?.openOf(task)
      .then(open => {
        for (const child of open) addChild(child)
        many.skip()
      })
      .catch(opener.fail)
  }
}

type OpenerOptions = {
  tenant: Tenant
  isFollowing: boolean
  check(task: TaskId): Promise<void>
  /** For a task that does not exist, or no longer; null: the connection is cut. */
  onMissing: ((task: TaskId) => void) | null
}

/** Opens viewers when the socket has room, a few at a time. */
export function createOpener(
  { hub, log, onError }: ManyDeps,
  many: ManyResponse,
  response: Pick<SseResponse, 'destroy'>,
  { tenant, isFollowing, check, onMissing }: OpenerOptions,
) {
  const queue: [TaskId, Cursor | null][] = []
  let openers = 0
  return { open, fail }

  function open(task: TaskId, cursor: Cursor | null): void {
    queue.push([task, cursor])
    if (openers >= openedTogether) return
    openers += 1
    openQueued()
      .catch(fail)
      .finally(() => {
        openers -= 1
      })
  }

  async function openQueued(): Promise<void> {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [task, cursor] = next
      if (!(await many.room())) return
      // A place even for a client that has everything: it is sent `end` again.
      const place = await check(task)
        .then(() => findPlace(hub, log, { tenant, task }, { cursor, isFollowing: true }))
        .catch(unlessMissing(task))
      if (place) many.add(task, part => hub.watch(place.feed, part, { begin: place.begin, isFollowing }))
    }
  }

  function unlessMissing(task: TaskId): (error: unknown) => null {
    return error => {
      if (!onMissing || !(error instanceof RivuletError) || error.code !== 'task_not_found') throw error
      onMissing(task)
      return null
    }
  }

  function fail(error: unknown): void {
    onError(error)
    response.destroy()
  }
}
