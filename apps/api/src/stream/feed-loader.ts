/**
 * Loads a feed, at first and after every loss: it folds the log from its beginning. If Redis has no log of the task, or one that lacks something, it
 * reads the rows of Postgres.
 */
import type { LogEntry, LogReader, LogState } from '@rivulet/broker'
import {
  applyOrSkip,
  type Cursor,
  emptyState,
  formatCursor,
  hasEnded,
  nextIndexOf,
  origin,
  type TaskId,
  type TaskState,
  type Turn,
} from '@rivulet/protocol'
import { decodeEntry, readLog } from '../log/log-fold.ts'
import type { TaskVersion } from '../store/reads/tasks.ts'
import type { Ground } from './feed-state.ts'
import { FrameRing } from './frame-ring.ts'
import { createMessageSpans, type MessageSpans } from './messages/message-spans.ts'
import type { SnapshotBase } from './snapshot.ts'
import { encodeEntry } from './sse-frame.ts'

export type Loaded = { ground: Ground; ring: FrameRing; state: TaskState; spans: MessageSpans; position: Cursor } & (
  | { ground: 'live'; base: null }
  | { ground: 'stale' | 'rows'; base: SnapshotBase }
)

export type FeedLoaderDeps = {
  task: TaskId
  log: LogReader
  /** The rows of Postgres, for a reader that knows turns up to this one. */
  loadBase: (turnNumber: number) => Promise<SnapshotBase>
  /** The version of the task's rows. */
  loadVersion: () => Promise<TaskVersion>
  onBadEntry: () => void
  /** The bytes that the ring keeps for viewers that come back. */
  ringBytes?: number | undefined
}

export function createFeedLoader({ task, log, loadBase, onBadEntry, ringBytes }: FeedLoaderDeps) {
  return { load, isStillLost }

  /** Everything anew. Until it is installed, readers of the feed see it as it was. */
  async function load(): Promise<Loaded> {
    for (;;) {
      const known = await log.state(task)
      const loading = (known && (await loadLog(known))) ?? (await loadRows())
      if (loading === 'again') continue
      if (loading.ground === 'live' || (await isStillLost(known))) return loading
    }
  }

  /** Asked after rows were read, because a log that was opened meanwhile stands before the place of rows that changed after that. */
  async function isStillLost(known: LogState | null): Promise<boolean> {
    return (await log.state(task))?.epoch === known?.epoch
  }

  /** Null where it lacks something. */
  async function loadLog(known: LogState): Promise<Loaded | 'again' | null> {
    const ring = new FrameRing(ringBytes)
    const spans = createMessageSpans()
    let state: TaskState = emptyState
    for await (const page of readLog(log, task, known.begin ?? origin, known.cursor)) {
      for (const entry of page) state = fold(state, entry, ring, spans)
    }
    const now = await log.state(task)
    // It was lost meanwhile, or raised, and then trimmed before what was read. One that was trimmed to nothing before stays where it stands.
    if (now?.epoch !== known.epoch || (state.cursor !== known.cursor && now.cursor !== known.cursor)) return 'again'
    const position = known.cursor
    if (!known.isStale) return { ground: 'live', ring, state, spans, position, base: null }
    const base = await loadBase(state.turns.at(-1)?.number ?? 0)
    return lacksSomething(state, base) ? null : { ground: 'stale', ring, state, spans, position, base }
  }

  async function loadRows(): Promise<Loaded> {
    const base = await loadBase(0)
    return {
      ground: 'rows',
      ring: new FrameRing(ringBytes),
      state: emptyState,
      spans: createMessageSpans(),
      base,
      position: placeOfRows(base),
    }
  }

  function fold(before: TaskState, entry: LogEntry, frames: FrameRing, spans: MessageSpans): TaskState {
    const event = decodeEntry(task, entry)
    if (!event) {
      onBadEntry()
      return { ...before, cursor: entry.cursor }
    }
    spans.take(before.cursor, entry.cursor, event)
    frames.push(encodeEntry(entry, event, frames.slab))
    frames.trim(null, 0)
    return applyOrSkip(before, event, entry.cursor, onBadEntry)
  }
}

/** Rows stand before the log that is opened under their epoch. One place is one content, because every change of the rows raises the epoch. */
export function placeOfRows({ epoch }: SnapshotBase): Cursor {
  return formatCursor(epoch, 0)
}

/**
 * Where the same rows stand for a client that has more of a log of their epoch, which is lost: no log is ever written under an odd epoch. The
 * log of a new task had nothing but these rows.
 */
export function placeBehindLostLog({ epoch }: SnapshotBase): Cursor {
  return epoch === 1 ? formatCursor(1, 1) : formatCursor(epoch + 1, 0)
}

/**
 * Whether a stale log lacks the end of a turn, which it may never get, or knows of no turn that has not ended where there is one. A turn that
 * waits behind another is sent at the end of that turn.
 */
export function lacksSomething(folded: TaskState, base: SnapshotBase): boolean {
  const { turns } = base
  const first = folded.turns[0]?.number ?? 0
  const foldedStatuses = new Map(folded.turns.map(({ number, status }) => [number, status]))
  const isOver = folded.turns.every(({ status }) => hasEnded(status))
  // The rows have the messages and waits of a turn that has parked: a log that knows less of it has lost its end.
  if (turns.some(turn => turn.status === 'waiting' && lacksWait(folded, turn, base))) return true
  return turns.some(({ number, status }) => {
    const known = foldedStatuses.get(number)
    return number >= first && (hasEnded(status) ? !known || !hasEnded(known) : !known && isOver)
  })
}

function lacksWait(folded: TaskState, { number, waits = [] }: Turn, { nextIndex }: SnapshotBase): boolean {
  const known = folded.turns.find(turn => turn.number === number)?.waits ?? []
  const hasWaits = waits.every(({ id, status }) => known.some(wait => wait.id === id && wait.status === status))
  return !hasWaits || nextIndexOf(folded) < nextIndex
}
