/**
 * The events of several tasks over any number of connections, one at a time, each event once.
 *
 * Each task has its own place, and every connection resumes all of them. If an event of one task is missing, that task alone joins again with a
 * snapshot. A task that has ended is left out of the next connection; the stream ends with the last one, unless it follows.
 */
import { type Cursor, origin, RivuletError } from '@rivulet/protocol'
import type { ConnectionStatus } from './connection-status.ts'
import { reconnecting, type StreamDeps } from './reconnecting.ts'
import type { Frame } from './sse-parser.ts'
import { nowhere, type Place } from './stream-place.ts'
import type { TaskEvent } from './task-event.ts'
import { createTaskReader, type ReaderOptions, type TaskReader } from './task-reader.ts'

/** A task that was deleted is an event here, because the others go on. */
export type ManyEvent = TaskEvent | { type: 'deleted'; task: string; cursor: Cursor }

export type ManyHeard = { id: string; event: ManyEvent; place: Place }

export type ManyRequest = Pick<ReaderOptions, 'from' | 'isForgetful'> & {
  /** Where each task stands. */
  places: ReadonlyMap<string, Place>
  follow: boolean
  /** Also the children of these tasks. */
  children?: boolean
  signal: AbortSignal
  onStatus?: (status: ConnectionStatus) => void
  onRepair?: (id: string) => void
}

export function streamMany(deps: StreamDeps, request: ManyRequest): AsyncGenerator<ManyHeard, void, void> {
  const { places, from, follow, children = false, isForgetful, signal, onStatus, onRepair } = request
  /** Of the tasks that have not ended. */
  const readers = new Map<string, TaskReader>()
  for (const [id, place] of places) addReader(id, place)
  return reconnecting(deps, {
    ...{ signal, onStatus, take, isOver: () => readers.size === 0 },
    request: () => ({ path: '/v1/events', body: { tasks: cursors(), follow, ...(children && { children }) } }),
    recover: removed,
  })

  function addReader(id: string, place: Place): TaskReader {
    const reader = createTaskReader({ place, from, isForgetful, onRepair: () => onRepair?.(id) })
    readers.set(id, reader)
    return reader
  }

  function cursors(): Record<string, Cursor | null> {
    return Object.fromEntries(Array.from(readers, ([id, reader]) => [id, cursorOf(reader)]))
  }

  function take({ id: name = '', data }: Frame): ManyHeard | null {
    const [id = '', cursor] = name.split('/')
    const reader = readers.get(id) ?? (children && id !== '' ? addReader(id, nowhere) : undefined)
    if (!reader) return null
    try {
      const heard = reader.read({ id: cursor, data })
      if (heard?.event.type === 'end') readers.delete(id)
      return heard && { id, ...heard }
    } catch (error) {
      if (error instanceof RivuletError && error.code === 'task_not_found') return deleted(id, reader)
      throw error
    }
  }

  /** Tasks that were deleted while there was no connection. Any other error is thrown, also for a task that was never heard of. */
  function removed(error: unknown): ManyHeard[] {
    const named = error instanceof RivuletError && error.code === 'task_not_found' ? (error.details ?? []) : []
    const found = named.map(({ path }): [string, TaskReader | undefined] => {
      const id = path.replace(/^\/tasks\//, '')
      return [id, readers.get(id)]
    })
    if (found.length === 0) throw error
    return found.map(([id, reader]) => {
      if (!reader || reader.place.cursor === null) throw error
      return deleted(id, reader)
    })
  }

  function deleted(id: string, { place }: TaskReader): ManyHeard {
    readers.delete(id)
    return { id, event: { type: 'deleted', task: id, cursor: place.cursor ?? origin }, place }
  }
}

function cursorOf(reader: TaskReader): Cursor | null {
  const at = reader.next()
  if (at === 'start') return origin
  return at === 'snapshot' ? null : at
}
