/**
 * What this process knows of a task at one position: the fold of the log up to there, and the rows of Postgres for what the log does not have.
 *
 * A cursor stands for one content in every process: a snapshot has the cursor of the log or of the rows that it was made of, never that of the viewer.
 */
import {
  applyOrSkip,
  type Cursor,
  compareCursors,
  type Event,
  emptyState,
  hasEnded,
  hasOpenQuestion,
  origin,
  type SnapshotReason,
  type TaskState,
  type TaskStatus,
  type Turn,
} from '@rivulet/protocol'
import { placeBehindLostLog, placeOfRows } from './feed-loader.ts'
import { createMessageSpans, type MessageSpans } from './messages/message-spans.ts'
import { covers, isTaskSettled, makeSnapshot, type SnapshotBase } from './snapshot.ts'
import { encodeFrame } from './sse-frame.ts'
import { type Shared, share } from './sse-response.ts'
import { createStoredTaskCache } from './stored-task-cache.ts'

/** The same bytes for all viewers. `position` is where the feed stood, `place` what its id says. */
export type SharedSnapshot = { position: Cursor; place: Cursor; shared: Shared }

export type TaskViewDeps = {
  snapshotBytes: number
  /** Reads the rows, for a reader that has heard of turns up to this one. */
  loadBase: (turnNumber: number) => Promise<SnapshotBase>
  /** The bytes of the frames after a snapshot's position, while a viewer still waits for its socket to take that snapshot; otherwise null. */
  bytesSince: (position: Cursor) => number | null
  onBadEntry: () => void
}

export type TaskView = ReturnType<typeof createTaskView>

export function createTaskView({ snapshotBytes, loadBase, bytesSince, onBadEntry }: TaskViewDeps) {
  const rows = createStoredTaskCache(loadBase)
  const cached = new Map<string, SharedSnapshot & { base: SnapshotBase }>()
  let state: TaskState = emptyState
  let spans: MessageSpans = createMessageSpans()
  let position: Cursor = origin
  /** The position at which no turn was left to end. */
  let settledAt: Cursor | null = null
  return {
    rows,
    state: () => state,
    messageSpan: (index: number) => spans.at(index),
    position: () => position,
    lastTurn,
    status,
    runningTurn: () => knownTurns().find(({ status }) => status === 'running')?.number ?? null,
    isAsking: (turnNumber: number) => knownTurns().some(({ number, waits }) => number === turnNumber && hasOpenQuestion(waits)),
    hasEnded: (turnNumber: number) => knownTurns().some(({ number, status }) => number === turnNumber && hasEnded(status)),
    isSettled: () => settledAt === position,
    settle,
    isReady,
    ready,
    advance,
    replace,
    placeOf,
    snapshot,
  }

  /** Moves one entry on. An entry that is no event, or that makes no sense here, is wrong for every reader: it is skipped. */
  function advance(cursor: Cursor, event: Event | null): void {
    if (event) spans.take(position, cursor, event)
    position = cursor
    if (event) state = applyOrSkip(state, event, cursor, onBadEntry)
    else onBadEntry()
  }

  function replace(next: { state: TaskState; spans: MessageSpans; position: Cursor }, stored: SnapshotBase | null): void {
    ;({ state, spans, position } = next)
    cached.clear()
    rows.put(stored)
    settle()
  }

  /** Called after a whole batch, because a `turn.finished` inside a batch may not be final. */
  function settle(): void {
    const held = rows.get()
    settledAt = held && isTaskSettled(state, held) ? position : null
  }

  function isReady(): boolean {
    const held = rows.get()
    return held !== null && covers(held, state)
  }

  async function ready(): Promise<void> {
    while (!isReady()) await rows.ask(lastTurn())
  }

  function lastTurn(): number {
    return state.turns.at(-1)?.number ?? 0
  }

  function status(): TaskStatus {
    return state.turns.length > 0 ? state.status : rows.require().task.status
  }

  function knownTurns(): readonly Pick<Turn, 'number' | 'status' | 'waits'>[] {
    return state.turns.length > 0 ? state.turns : (rows.get()?.turns ?? [])
  }

  function placeOf(heard: Cursor): Cursor {
    if (compareCursors(heard, position) <= 0) return position
    const stored = rows.require()
    return [placeOfRows(stored), placeBehindLostLog(stored)].find(place => compareCursors(heard, place) <= 0) ?? position
  }

  function snapshot(reason: SnapshotReason, place: Cursor, heard: Cursor): SharedSnapshot {
    const stored = rows.require()
    const key = `${reason} ${place === position ? '' : place}`
    const before = cached.get(key)
    const isSame = before?.position === position && before.base === stored && before.place === place
    if (before && (isSame || (place === position && isCheaper(before, heard)))) return before
    const content = makeSnapshot(reason, place === position ? state : emptyState, stored, snapshotBytes)
    const frame = encodeFrame(place, 'snapshot', JSON.stringify(content))
    const made = { position, place, shared: share([frame]), base: stored }
    cached.set(key, made)
    return made
  }

  /** Whether an earlier snapshot is in memory anyway, and the frames since then are fewer bytes than another snapshot. */
  function isCheaper({ position: from, place, shared }: SharedSnapshot, heard: Cursor): boolean {
    if (from === position || place !== from || compareCursors(from, heard) < 0) return false
    const since = bytesSince(from)
    return since !== null && since <= shared.chunked.length
  }
}
