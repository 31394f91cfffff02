/**
 * The state of a task at one position, as this process knows it: the fold of the log up to there, and the rows of Postgres for what the log does not have.
 *
 * Most deltas are folded only when a snapshot needs them: until then, the outline has everything else, which is what the state of turns depends on.
 *
 * A cursor stands for one content in every process: a snapshot has the cursor of the log or of the rows that it was made of, never that of the viewer.
 */
import { encodeByteText } from '@rivulet/broker'
import {
  applyOrSkip,
  type Cursor,
  compareCursors,
  type Event,
  emptyState,
  hasEnded,
  isAnsweredByRequest,
  messagesOf,
  origin,
  type SnapshotReason,
  type TaskState,
  type TaskStatus,
  type Turn,
  type Wait,
} from '@rivulet/protocol'
import { mayBecomeFile } from '../store/files/large-values.ts'
import { placeBehindLostLog, placeOfRows } from './feed-loader.ts'
import type { FrameRing } from './frame-ring.ts'
import { createMessageSpans, type MessageSpans } from './messages/message-spans.ts'
import { covers, isTaskSettled, makeSnapshot, type SnapshotBase } from './snapshot.ts'
import { encodeFrame } from './sse-frame.ts'
import { type Shared, share } from './sse-response.ts'
import { createStoredTaskCache } from './stored-task-cache.ts'

/** The same bytes for all viewers. `position` is where the feed stood, `place` what its id says. */
export type SharedSnapshot = { position: Cursor; place: Cursor; shared: Shared }

type TaskViewDeps = {
  snapshotBytes: number
  /** Reads the rows, for a reader that knows of turns up to this one. */
  loadBase: (turnNumber: number) => Promise<SnapshotBase>
  /** The bytes of the frames after a snapshot's position, while a viewer still waits for its socket to take that snapshot; otherwise null. */
  bytesSince: (position: Cursor) => number | null
  ring: () => FrameRing
  onBadEntry: () => void
}

export type TaskView = ReturnType<typeof createTaskView>

export function createTaskView({ snapshotBytes, loadBase, bytesSince, ring, onBadEntry }: TaskViewDeps) {
  const rows = createStoredTaskCache(loadBase)
  const cached = new Map<string, SharedSnapshot & { base: SnapshotBase }>()
  /** The fold of everything up to `foldedTo`. */
  let state: TaskState = emptyState
  let foldedTo: Cursor = origin
  /** The fold of everything up to the position, but for the deltas after `foldedTo`. */
  let outline: TaskState = emptyState
  let spans: MessageSpans = createMessageSpans()
  let position: Cursor = origin
  /** The position at which no turn was left to end. */
  let settledAt: Cursor | null = null
  return {
    rows,
    outline: () => outline,
    state: () => state,
    foldedTo: () => foldedTo,
    messageSpan: (index: number) => spans.at(index),
    position: () => position,
    lastTurn,
    status,
    runningTurn: () => knownTurns().find(({ status }) => status === 'running')?.number ?? null,
    questionsOf: (turnNumber: number) => questionsIn(knownTurns().find(({ number }) => number === turnNumber)?.waits),
    hasEnded: (turnNumber: number) => knownTurns().some(({ number, status }) => number === turnNumber && hasEnded(status)),
    isSettled: () => settledAt === position,
    settle,
    isKnown,
    known,
    isReady,
    advance,
    pass,
    fold,
    replace,
    placeOf,
    snapshot,
  }

  /** Moves one entry on. An entry that is no event, or that makes no sense here, is wrong for every reader: it is skipped. */
  function advance(cursor: Cursor, event: Event | null): void {
    const isFolded = foldedTo === position
    if (event) spans.take(position, cursor, event)
    position = cursor
    if (!event) onBadEntry()
    // Whether it makes sense is seen when everything before it is folded.
    else if (!isFolded) outline = applyOrSkip(outline, event, cursor)
    if (isFolded) fold(event ? applyOrSkip(state, event, cursor, onBadEntry) : state, cursor)
    if (event?.type === 'turn.finished' && hasLargeValue(event.turn)) rows.outdate()
  }

  /** The rows have a file in place of it. */
  function hasLargeValue(turnNumber: number): boolean {
    return messagesOf(outline).some(({ turn, content }) => turn === turnNumber && mayBecomeFile(content))
  }

  /** Moves on by a delta that is folded later. */
  function pass(cursor: Cursor): void {
    position = cursor
  }

  /** The fold of everything up to a cursor, made elsewhere. */
  function fold(folded: TaskState, cursor: Cursor): void {
    state = folded
    foldedTo = cursor
    if (foldedTo === position) outline = state
  }

  function replace(next: { state: TaskState; spans: MessageSpans; position: Cursor }, stored: SnapshotBase | null): void {
    ;({ spans, position } = next)
    fold(next.state, position)
    cached.clear()
    rows.put(stored)
    settle()
  }

  /** Called after a whole batch, because a `turn.finished` inside a batch may not be final. */
  function settle(): void {
    const held = rows.get()
    settledAt = held && isTaskSettled(outline, held) ? position : null
  }

  function isKnown(): boolean {
    const held = rows.get()
    return held !== null && rows.isCurrent() && covers(held, outline)
  }

  async function known(): Promise<void> {
    while (!isKnown()) await rows.ask(lastTurn())
  }

  function isReady(): boolean {
    return isKnown() && ring().reaches(foldedTo)
  }

  /** Everything up to the position. Needs `isReady`. */
  function wholeState(): TaskState {
    if (foldedTo === position) return state
    const frames = ring().after(foldedTo) ?? []
    fold(
      frames.reduce((folded, frame) => applyOrSkip(folded, frame.decode(), frame.cursor, onBadEntry), state),
      position,
    )
    return state
  }

  function lastTurn(): number {
    return outline.turns.at(-1)?.number ?? 0
  }

  function status(): TaskStatus {
    return outline.turns.length > 0 ? outline.status : rows.require().task.status
  }

  function knownTurns(): readonly Pick<Turn, 'number' | 'status' | 'waits'>[] {
    return outline.turns.length > 0 ? outline.turns : (rows.get()?.turns ?? [])
  }

  function placeOf(clientCursor: Cursor): Cursor {
    if (compareCursors(clientCursor, position) <= 0) return position
    const stored = rows.require()
    return [placeOfRows(stored), placeBehindLostLog(stored)].find(place => compareCursors(clientCursor, place) <= 0) ?? position
  }

  function snapshot(reason: SnapshotReason, place: Cursor, clientCursor: Cursor): SharedSnapshot {
    const stored = rows.require()
    const key = `${reason} ${place === position ? '' : place}`
    const before = cached.get(key)
    const isSame = before?.position === position && before.base === stored && before.place === place
    if (before && (isSame || (place === position && isCheaper(before, clientCursor)))) return before
    const content = makeSnapshot(reason, place === position ? wholeState() : emptyState, stored, snapshotBytes)
    const frame = encodeFrame(place, 'snapshot', encodeByteText(JSON.stringify(content)), null, content)
    const made = { position, place, shared: share([frame]), base: stored }
    cached.set(key, made)
    return made
  }

  /** Whether an earlier snapshot is in memory anyway, and the frames since then are fewer bytes than another snapshot. */
  function isCheaper({ position: from, place, shared }: SharedSnapshot, clientCursor: Cursor): boolean {
    if (from === position || place !== from || compareCursors(from, clientCursor) < 0) return false
    const since = bytesSince(from)
    return since !== null && since <= shared.chunked.length
  }
}

/** The open questions among waits of a turn, as one text: two are the same where nothing was asked or answered between. */
export function questionsIn(waits: readonly Pick<Wait, 'id' | 'kind' | 'status'>[] = []): string {
  return waits.flatMap(({ id, kind, status }) => (status === 'open' && isAnsweredByRequest(kind) ? [id] : [])).join()
}
