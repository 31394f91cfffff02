/**
 * A feed's first look at its task, and every look after something was lost: the log, folded from its beginning; and where there is none, or one
 * that lacks something, what Postgres says.
 */
import type { LogEntry, LogReader, LogState } from '@rivulet/broker'
import { type Cursor, emptyState, formatCursor, hasEnded, origin, type TaskState } from '@rivulet/protocol'
import { decodeEntry, foldEvent, readLog } from '../log/log-fold.ts'
import type { TurnState } from '../store/reads/read.ts'
import { createFrameRing, type FrameRing } from './frame-ring.ts'
import { isTaskSettled, type SnapshotBase } from './snapshot.ts'
import { encodeEntry } from './sse-frame.ts'

export type Loaded = {
  ring: FrameRing
  state: TaskState
  position: Cursor
  base: SnapshotBase | null
  /** The task's epoch, where its log is gone or of another life of Redis: nothing goes on in it. */
  lostEpoch: number | null
}

export type FeedLoaderDeps = {
  task: string
  log: LogReader
  /** What Postgres says, for a reader that has heard of turns up to this one. */
  loadBase: (turn: number) => Promise<SnapshotBase>
  /** The task's epoch, as Postgres has it. */
  loadEpoch: () => Promise<number>
  /** How its latest turns stand there. */
  loadTurns: () => Promise<readonly TurnState[]>
  onBadEntry: () => void
}

export function createFeedLoader({ task, log, loadBase, loadEpoch, loadTurns, onBadEntry }: FeedLoaderDeps) {
  return { load, lacksSomething }

  /** Everything anew. Until it is installed, whoever looks sees the feed as it was. */
  async function load(): Promise<Loaded> {
    for (;;) {
      const known = await log.state(task)
      const loading = known && (await loadLog(known))
      if (loading === 'again') continue
      if (loading) return loading
      const withoutLog = await loadWithoutLog()
      // A log that was raised meanwhile goes on below that place.
      if ((await log.state(task))?.epoch === known?.epoch) return withoutLog
    }
  }

  /** Null where it lacks something. */
  async function loadLog(known: LogState): Promise<Loaded | 'again' | null> {
    const fresh = createFrameRing()
    let folded: TaskState = emptyState
    for await (const entry of readLog(log, task, known.begin ?? origin, known.cursor)) folded = fold(folded, entry, fresh)
    // Between the two questions the log may have been lost; one that has just been trimmed to nothing stays where it stands.
    if (folded.cursor !== known.cursor && (await log.state(task))?.cursor !== known.cursor) return 'again'
    if (known.isStale && (await lacksSomething(folded))) return null
    return { ring: fresh, state: folded, base: null, position: known.cursor, lostEpoch: known.isStale ? await loadEpoch() : null }
  }

  /**
   * A task that has ended stands behind everything that its log has told, and one that has not before what its log is going to tell. The epoch
   * is asked for first: if it is raised meanwhile, the position is too low and the log is read, never too high.
   */
  async function loadWithoutLog(): Promise<Loaded> {
    const epoch = await loadEpoch()
    const stored = await loadBase(0)
    const at = isTaskSettled(emptyState, stored) ? formatCursor(epoch + 1, 0) : epoch <= 1 ? origin : formatCursor(epoch, 0)
    return { ring: createFrameRing(), state: emptyState, base: stored, position: at, lostEpoch: epochWithoutLog(epoch) }
  }

  /**
   * Whether a log of another life of Redis lacks the end of a turn, which it may never tell, or knows of no turn that has not ended where there is
   * one. Of a turn that waits behind another it is told at the end of that.
   */
  async function lacksSomething(folded: TaskState): Promise<boolean> {
    const first = folded.turns[0]?.number ?? 0
    const told = new Map(folded.turns.map(({ number, status }) => [number, status]))
    const isOver = folded.turns.every(({ status }) => hasEnded(status))
    return (await loadTurns()).some(({ number, status }) => {
      const known = told.get(number)
      return number >= first && (hasEnded(status) ? !known || !hasEnded(known) : !known && isOver)
    })
  }

  function fold(before: TaskState, entry: LogEntry, frames: FrameRing): TaskState {
    const event = decodeEntry(task, entry)
    if (!event) {
      onBadEntry()
      return { ...before, cursor: entry.cursor }
    }
    frames.push(encodeEntry(entry, event))
    frames.trim(null, 0)
    return foldEvent(before, event, entry.cursor, onBadEntry)
  }
}

/** A log that is opened before anybody has claimed a turn has epoch 1. */
export function epochWithoutLog(epoch: number): number {
  return Math.max(epoch, 1)
}
