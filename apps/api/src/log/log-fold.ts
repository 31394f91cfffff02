/** Reads the log of a task from Redis, in pages, and folds it. */
import { decodeByteText, type LogEntry, type LogReader } from '@rivulet/broker'
import {
  applyOrSkip,
  type Cursor,
  type Event,
  emptyState,
  formatCursor,
  isMessageEvent,
  type MessageEvent,
  origin,
  parseEvent,
  RivuletError,
  type TaskId,
  type TaskState,
} from '@rivulet/protocol'

/** Of the log, in memory at a time while it is folded. */
const pageBytes = 1024 * 1024
/** Entries, when nothing is known of their size yet. An input may take megabytes. */
export const firstPage = 20

/**
 * Every entry from a cursor on, that entry included, up to another, if given; in pages, because awaiting each entry took longer
 * than folding it. Each page is read from the last entry of the page before: if that is gone, the log was trimmed or lost meanwhile, and what is read would
 * have a hole.
 */
export async function* readLog(log: LogReader, task: TaskId, from: Cursor, to?: Cursor): AsyncGenerator<readonly LogEntry[]> {
  let page = await log.read(task, from, firstPage, to)
  let count = firstPage
  yield page
  for (let last = page.at(-1); last && page.length === count; last = page.at(-1)) {
    count = nextCount(page, pageBytes)
    page = await log.read(task, last.cursor, count, to)
    if (page[0]?.cursor !== last.cursor) throw new RivuletError('dependency_unavailable', 'The log changed while it was being read; retry')
    yield page.slice(1)
  }
}

/** How many entries to read next for about so many bytes: entries differ in size by a thousand, and those of one page less. */
export function nextCount(page: readonly LogEntry[], bytes: number): number {
  const read = page.reduce((sum, { json }) => sum + json.length, 1)
  return Math.min(1_000, Math.max(10, Math.floor((page.length * bytes) / read)))
}

/** Whether a reader with this cursor has nothing of any log: it joined before the log of a new task was opened, or begins at the start. */
export function isBeforeLog(cursor: Cursor): boolean {
  return cursor === origin || cursor === formatCursor(1, 0)
}

/**
 * The fold of everything from an epoch on, up to where the log turns out to have lost something, if it has.
 *
 * @param keptTo of a turn that parked: its log may continue with the message of this index, without `turn.started`
 * @returns `misplaced`: the index of the first output that no fold takes, because the message at that index is closed, or is not the next one
 */
export async function foldFrom(
  log: LogReader,
  task: TaskId,
  epoch: number,
  keptTo: number | null,
): Promise<{ state: TaskState; isWhole: boolean; misplaced: number | null }> {
  let state: TaskState = { ...emptyState, messagesFrom: keptTo ?? 0 }
  let misplaced: number | null = null
  for await (const page of readLog(log, task, formatCursor(epoch, 0))) {
    for (const entry of page) {
      const event = decodeEntry(task, entry)
      let hasLost = false
      const next = event ? applyOrSkip(state, event, entry.cursor, error => (hasLost = isLoss(error))) : state
      if (hasLost) return { state, isWhole: false, misplaced }
      if (next.discarded > state.discarded && event && isOutput(event)) misplaced ??= event.index
      state = next
    }
  }
  return { state, isWhole: true, misplaced }
}

/** The end of a message has no text that could be lost. */
function isOutput(event: Event): event is Exclude<MessageEvent, { type: 'message.finished' }> {
  return isMessageEvent(event) && event.type !== 'message.finished'
}

/** Folds the entries after `from`, up to `to`, into a state that has everything before them. Null if the log has lost one of the two. */
export async function foldBetween(
  log: LogReader,
  task: TaskId,
  before: TaskState,
  { from, to }: { from: Cursor; to: Cursor },
  onBadEntry: () => void,
): Promise<TaskState | null> {
  let state = before
  let first: Cursor | null = null
  let last: Cursor | null = null
  for await (const page of readLog(log, task, from, to)) {
    first ??= page[0]?.cursor ?? null
    last = page.at(-1)?.cursor ?? last
    for (const entry of page) {
      const event = entry.cursor === from ? null : decodeEntry(task, entry)
      if (event) state = applyOrSkip(state, event, entry.cursor, onBadEntry)
    }
  }
  const isLost = last !== to || (first !== from && !isBeforeLog(from))
  return isLost ? null : state
}

/** Any other error is one of the entry itself. */
function isLoss(error: unknown): boolean {
  return error instanceof RivuletError && error.code === 'offset_mismatch'
}

/** The event of an entry, or null if the entry is not an event of this task. */
export function decodeEntry(task: TaskId, { json }: LogEntry): Event | null {
  return decodeEvent(task, decodeByteText(json))
}

/** Null if the JSON is not an event of this task. */
export function decodeEvent(task: TaskId, json: string): Event | null {
  try {
    const event = parseEvent(JSON.parse(json))
    return event?.task === task ? event : null
  } catch {
    return null
  }
}
