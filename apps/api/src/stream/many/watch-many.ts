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

export type ManyRequest = {
  tenant: Tenant
  tasks: ReadonlyMap<TaskId, Cursor | null>
  isFollowing: boolean
  /** The children of a task that have not ended; null: without children. */
  openChildren: ((task: TaskId) => Promise<TaskId[]>) | null
}

/** @param onError gets what keeps a task from being watched. The connection is cut then, so that the client asks again and gets the reason. */
export function watchMany(
  { hub, log, onError }: { hub: Hub; log: LogReader; onError: (error: unknown) => void },
  response: SseResponse,
  { tenant, tasks, isFollowing, openChildren }: ManyRequest,
): ManyResponse {
  const known = new Set(tasks.keys())
  const queue = [...tasks]
  let openers = 0
  const many = respondToMany(response, tasks.size, openChildren && { started: addChild, snapshot: addOpenChildren })
  openMore()
  return many

  function openMore(): void {
    while (openers < openedTogether && queue.length > 0) {
      openers += 1
      open()
        .catch(fail)
        .finally(() => {
          openers -= 1
        })
    }
  }

  async function open(): Promise<void> {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [task, cursor] = next
      if (!(await many.room())) return
      // A place even for a client that has everything: it is sent `end` again.
      const place = await findPlace(hub, log, { tenant, task }, { cursor, isFollowing: true }).catch(unlessDeletedChild(task))
      if (place) many.add(task, part => hub.watch(place.feed, part, { begin: place.begin, isFollowing }))
    }
  }

  function addChild(child: TaskId): void {
    if (known.has(child) || known.size >= maxStreamTasks) return
    known.add(child)
    many.await()
    queue.push([child, null])
    openMore()
  }

  function addOpenChildren(task: TaskId): void {
    // The response must not end with the task before its children are known.
    many.await()
    openChildren?.(task)
      .then(children => {
        for (const child of children) addChild(child)
        many.skip()
      })
      .catch(fail)
  }

  function unlessDeletedChild(task: TaskId): (error: unknown) => null {
    return error => {
      if (tasks.has(task) || !(error instanceof RivuletError) || error.code !== 'task_not_found') throw error
      many.skip()
      return null
    }
  }

  function fail(error: unknown): void {
    onError(error)
    response.destroy()
  }
}
