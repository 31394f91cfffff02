/** Opens the viewers of several tasks on one response, a few at a time, so that their snapshots do not fill the memory of the process together. */
import type { LogReader } from '@rivulet/broker'
import type { Cursor, TaskId } from '@rivulet/protocol'
import type { Tenant } from '../../store/connection/tenant.ts'
import type { Hub } from '../hub.ts'
import type { SseResponse } from '../sse-response.ts'
import { findPlace } from '../viewer-place.ts'
import { type ManyResponse, respondToMany } from './many-response.ts'

const openedTogether = 8

export type ManyRequest = { tenant: Tenant; tasks: ReadonlyMap<TaskId, Cursor | null>; isFollowing: boolean }

/** @param onError gets what keeps a task from being watched. The connection is cut then, so that the client asks again and gets the reason. */
export function watchMany(
  { hub, log, onError }: { hub: Hub; log: LogReader; onError: (error: unknown) => void },
  response: SseResponse,
  { tenant, tasks, isFollowing }: ManyRequest,
): ManyResponse {
  const many = respondToMany(response, tasks.size)
  const rest = tasks.entries()
  for (let i = 0; i < openedTogether; i += 1) open().catch(fail)
  return many

  async function open(): Promise<void> {
    for (const [task, cursor] of rest) {
      if (!(await many.room())) return
      // A place even for a client that has everything: it is sent `end` again.
      const place = await findPlace(hub, log, { tenant, task }, { cursor, isFollowing: true })
      if (place) many.add(task, part => hub.watch(place.feed, part, { begin: place.begin, isFollowing }))
    }
  }

  function fail(error: unknown): void {
    onError(error)
    response.destroy()
  }
}
