/** What a task's log adds up to, read from the stream. */
import type { LogEntry, LogReader } from '@rivulet/broker'
import {
  applyEvent,
  type Cursor,
  type Event,
  emptyState,
  epochOf,
  formatCursor,
  parseEvent,
  RivuletError,
  seqOf,
  type TaskState,
} from '@rivulet/protocol'

const pageSize = 1_000

/** Every entry from a cursor on, that entry included, up to another, if given. */
export async function* readLog(log: LogReader, task: string, from: Cursor, to?: Cursor): AsyncGenerator<LogEntry> {
  for (let next = from; ; ) {
    const page = await log.read(task, next, pageSize, to)
    yield* page
    const last = page.at(-1)
    if (!last || page.length < pageSize) return
    next = formatCursor(epochOf(last.cursor), seqOf(last.cursor) + 1)
  }
}

/** The fold of everything from an epoch on, up to where the log turns out to have lost something, if it has. */
export async function foldFrom(log: LogReader, task: string, epoch: number): Promise<{ state: TaskState; isWhole: boolean }> {
  let state = emptyState
  for await (const entry of readLog(log, task, formatCursor(epoch, 0))) {
    const event = decodeEntry(task, entry)
    try {
      if (event) state = applyEvent(state, event, entry.cursor)
    } catch (error) {
      // Anything else is an entry that makes no sense, and is passed over.
      if (error instanceof RivuletError && error.code === 'offset_mismatch') return { state, isWhole: false }
    }
  }
  return { state, isWhole: true }
}

/** The fold one event further. One that makes no sense there is wrong for every reader: it is passed on, and each notices. */
export function foldEvent(before: TaskState, event: Event, cursor: Cursor, onBadEntry: () => void): TaskState {
  try {
    return applyEvent(before, event, cursor)
  } catch {
    onBadEntry()
    return { ...before, cursor }
  }
}

/** The event of an entry, or null where somebody put something else into the task's log. */
export function decodeEntry(task: string, { json }: LogEntry): Event | null {
  try {
    const event = parseEvent(JSON.parse(json))
    return event?.task === task ? event : null
  } catch {
    return null
  }
}
