/**
 * One task's log in this process: read once, however many are watching.
 *
 * A feed stands at a position and holds the fold up to it and the newest frames before it. A push moves it on if it follows that position;
 * otherwise the log is read from the position, that entry included. Where the entry at the position is gone, something was lost: the feed is loaded
 * anew, from the log or from the rows of Postgres, and its viewers get a snapshot. A cursor stands for one content in every process: a snapshot
 * has the cursor of the log or of the rows that it was made of, never that of the viewer.
 */
import type { LogEntry, LogState, Push } from '@rivulet/broker'
import {
  type Cursor,
  compareCursors,
  emptyState,
  hasEnded,
  origin,
  type SnapshotReason,
  type TaskId,
  type TaskState,
  type TaskStatus,
  type TurnStatus,
} from '@rivulet/protocol'
import { decodeEntry, foldEvent, isBeforeLog, readLog } from '../log/log-fold.ts'
import {
  createFeedLoader,
  type FeedLoaderDeps,
  type Ground,
  type Loaded,
  lacksSomething,
  placeBehindLostLog,
  placeOfRows,
} from './feed-loader.ts'
import { createFrameRing, type FrameRing } from './frame-ring.ts'
import { createLogPages, type KeptParts, type LogPages } from './log-pages.ts'
import { covers, isTaskSettled, makeSnapshot, type SnapshotBase } from './snapshot.ts'
import { encodeEntry, encodeFrame } from './sse-frame.ts'
import { type Shared, share } from './sse-response.ts'
import { createStoredTaskCache } from './stored-task-cache.ts'

export type Feed = {
  readonly task: TaskId
  readonly ring: FrameRing
  /** What the ring no longer holds. */
  readonly pages: LogPages
  /** Resolves when the log has been read. */
  readonly loaded: Promise<void>
  position(): Cursor
  /** How often it was loaded: a cursor that it held before may be in a gap now. */
  loads(): number
  /** Whether a viewer with this cursor has what the feed has. Needs `check`, because a log may be lost, or the rows may have changed. */
  isAt(cursor: Cursor): boolean
  /** Whether a viewer with this cursor has everything there will be. Needs `check`. */
  isAtEnd(cursor: Cursor): boolean
  status(): TaskStatus
  /** The turn that is running, as far as the feed knows. */
  runningTurn(): number | null
  /** Whether nothing is left to come. */
  isSettled(): boolean
  /** Whether the end of a turn is in the log, and so in Postgres, too. False for a turn that neither the log nor the latest rows have. */
  hasEnded(turn: number): boolean
  /** Makes sure that a snapshot can be made at once; also before `status` and `isSettled` are asked for the first time. */
  ready(): Promise<void>
  isReady(): boolean
  /**
   * The place of the snapshot for a viewer that has heard everything up to a cursor: the position; or, where that viewer has heard more of a log that is
   * lost, a place of the rows. Never before what the viewer has heard.
   */
  placeOf(heard: Cursor): Cursor
  /**
   * The snapshot at a place. While a viewer still waits for its socket to take an earlier one at the position, viewers that come get the same
   * bytes, and what came since from the ring; not a viewer that has heard more than that. Needs `ready`.
   */
  snapshot(reason: SnapshotReason, place: Cursor, heard: Cursor): SharedSnapshot
  take(push: Push): void
  /** Compares with the log, in case a push was lost. */
  check(): Promise<void>
  lastHeardAt(): number
  /** When the newest entry was written, by the clock of its writer; 0 before there was one. */
  lastSaidAt(): number
}

/** The same bytes for all viewers. `position` is where the feed stood, `place` what its id says. */
export type SharedSnapshot = { position: Cursor; place: Cursor; shared: Shared }

export type FeedDeps = FeedLoaderDeps & {
  snapshotBytes: number
  kept: KeptParts
  /** Resolves when pushes are heard: only then is the log read, so that nothing falls between. */
  follow: () => Promise<void>
  /** Whether a viewer that stands at this position waits for its socket. */
  isAwaited: (position: Cursor) => boolean
  onFrames: () => void
  /** The feed had to be loaded anew: its viewers have missed something. */
  onGap: () => void
  onError: (error: unknown) => void
}

/** What the feed stands on. Where no log goes on, Postgres knows the cursor of an ended task's last end. */
type Standing = { ground: 'live' } | { ground: Exclude<Ground, 'live'>; endCursor: Cursor | null }

/** Whether the log or the rows are being read; what is `pushed` meanwhile is taken afterwards. */
type Reading = { at: 'rest' } | { at: 'work'; done: Promise<void>; pushed: Push[] }

export function createFeed(deps: FeedDeps): Feed {
  const { task, log, loadBase, loadVersion, snapshotBytes, kept, follow, isAwaited, onFrames, onGap, onBadEntry, onError } = deps
  let ring = createFrameRing()
  let pages = createLogPages({ log, task, kept })
  let state: TaskState = emptyState
  let position: Cursor = origin
  const base = createStoredTaskCache(loadBase)
  const loader = createFeedLoader(deps)
  const cached = new Map<string, SharedSnapshot & { base: SnapshotBase }>()
  let standing: Standing = { ground: 'rows', endCursor: null }
  let reading: Reading = { at: 'rest' }
  let heardAt = performance.now()
  let saidAt = 0
  let loads = 0
  /** Where it stood when nothing was left to come. What was written in one step is read one by one: in the midst of it an end is not the end. */
  let settledAt: Cursor | null = null

  const loaded = read(async () => {
    await follow()
    const loading = await loader.load()
    install(loading, loading.base)
  })
  return {
    task,
    get ring() {
      return ring
    },
    get pages() {
      return pages
    },
    loaded,
    position: () => position,
    loads: () => loads,
    isAt: cursor => cursor === position,
    isAtEnd: cursor =>
      settledAt === position && (placeOf(cursor) === cursor || (standing.ground !== 'live' && cursor === standing.endCursor)),
    status: () => (state.turns.length > 0 ? state.status : base.require().task.status),
    runningTurn: () => knownTurns().find(({ status }) => status === 'running')?.number ?? null,
    isSettled: () => settledAt === position,
    hasEnded: turn => knownTurns().some(({ number, status }) => number === turn && hasEnded(status)),
    ready,
    isReady,
    placeOf,
    snapshot,
    take,
    check,
    lastHeardAt: () => heardAt,
    lastSaidAt: () => saidAt,
  }

  function take(push: Push): void {
    heardAt = performance.now()
    if (reading.at === 'work') {
      reading.pushed.push(push)
      return
    }
    if (standing.ground === 'live' && push.previous === position) {
      for (const entry of push.entries) apply(entry)
      look()
      onFrames()
      return
    }
    const last = push.entries.at(-1)
    if (last && compareCursors(last.cursor, position) <= 0) return
    read(catchUp).catch(onError)
  }

  async function ready(): Promise<void> {
    while (!isReady()) await base.ask(lastTurnOf(state))
    if (reading.at === 'rest') look()
  }

  function isReady(): boolean {
    const held = base.get()
    return held !== null && covers(held, state)
  }

  function look(): void {
    const held = base.get()
    settledAt = held && isTaskSettled(state, held) ? position : null
  }

  function knownTurns(): readonly { number: number; status: TurnStatus }[] {
    return state.turns.length > 0 ? state.turns : (base.get()?.turns ?? [])
  }

  function placeOf(heard: Cursor): Cursor {
    if (compareCursors(heard, position) <= 0) return position
    const rows = base.require()
    return [placeOfRows(rows), placeBehindLostLog(rows)].find(place => compareCursors(heard, place) <= 0) ?? position
  }

  function snapshot(reason: SnapshotReason, place: Cursor, heard: Cursor): SharedSnapshot {
    const known = base.require()
    const key = `${reason} ${place === position ? '' : place}`
    const before = cached.get(key)
    const isSame = before?.position === position && before.base === known && before.place === place
    if (before && (isSame || (place === position && isStillSent(before, heard)))) return before
    const content = makeSnapshot(reason, place === position ? state : emptyState, known, snapshotBytes)
    const frame = encodeFrame(place, 'snapshot', JSON.stringify(content))
    const made = { position, place, shared: share([frame]), base: known }
    cached.set(key, made)
    return made
  }

  /** Whether its bytes are held anyway, and what came since is less than another of them. */
  function isStillSent({ position: from, place, shared }: SharedSnapshot, heard: Cursor): boolean {
    if (from === position || place !== from || compareCursors(from, heard) < 0 || !isAwaited(from)) return false
    const since = ring.after(from)
    return since !== null && since.reduce((sum, { bytes }) => sum + bytes.length, 0) <= shared.chunked.length
  }

  async function check(): Promise<void> {
    // What is being read now may have been asked for before the loss.
    if (reading.at === 'work') await reading.done.catch(() => {})
    return read(catchUp)
  }

  /** One reading at a time; what is pushed meanwhile is taken after it. */
  function read(work: () => Promise<void>): Promise<void> {
    if (reading.at === 'work') return reading.done
    const pushed: Push[] = []
    const done = work().finally(() => {
      reading = { at: 'rest' }
      look()
      for (const push of pushed) take(push)
      onFrames()
    })
    reading = { at: 'work', done, pushed }
    return done
  }

  function install(loading: Loaded, stored: SnapshotBase | null): void {
    ;({ ring, state, position } = loading)
    standing = loading.ground === 'live' ? { ground: 'live' } : { ground: loading.ground, endCursor: null }
    cached.clear()
    base.put(stored)
    pages = createLogPages({ log, task, kept })
    loads += 1
    look()
    heardAt = performance.now()
  }

  async function catchUp(): Promise<void> {
    const known = await log.state(task)
    heardAt = performance.now()
    if (!known || known.isStale) return keep(known)
    if (known.begin && compareCursors(position, known.begin) < 0) return reload()
    const isAtStart = isBeforeLog(position) && known.isWhole
    if (standing.ground !== 'live' && !isAtStart) return reload()
    standing = { ground: 'live' }
    if (known.cursor === position) return
    let isFirst = true
    for await (const entry of readLog(log, task, position, known.cursor)) {
      if (isFirst && entry.cursor !== position && !isAtStart) return reload()
      isFirst = false
      apply(entry)
    }
    if (isFirst) return reload()
  }

  /** Without a log that lives: the feed stays where it is if the rows, or what is left of the log, are what they were. */
  async function keep(left: LogState | null): Promise<void> {
    if (standing.ground !== 'rows' && left?.cursor !== position) return reload()
    const { epoch, endCursor } = await loadVersion()
    const held = base.get()
    const isSame = held?.epoch === epoch
    if (standing.ground === 'rows') {
      if (!isSame) return reload()
      standing = { ground: 'rows', endCursor }
      return
    }
    const rows = isSame ? held : await loadBase(lastTurnOf(state))
    // Whole or not at all: entries that are applied one by one might look like an end.
    if (lacksSomething(state, rows) || !(isSame || (await loader.isStillLost(left)))) return reload()
    base.put(rows)
    standing = { ground: 'stale', endCursor }
  }

  /** In one step, so that no viewer is sent the new log before its snapshot. */
  async function reload(): Promise<void> {
    const loading = await loader.load()
    install(loading, loading.base ?? (await loadBase(lastTurnOf(loading.state))))
    onGap()
  }

  function apply(entry: LogEntry): void {
    if (compareCursors(entry.cursor, position) <= 0) return
    const event = decodeEntry(task, entry)
    position = entry.cursor
    if (!event) {
      onBadEntry()
      return
    }
    saidAt = event.at
    state = foldEvent(state, event, entry.cursor, onBadEntry)
    ring.push(encodeEntry(entry, event))
  }
}

function lastTurnOf(state: TaskState): number {
  return state.turns.at(-1)?.number ?? 0
}
