/**
 * One task's log in this process: read once, however many are watching.
 *
 * A feed stands at a position and holds the fold up to it and the newest frames before it. A push moves it on if it follows that position;
 * otherwise the log is read from the position, that entry included, to where the log says that it stands: what lies beyond is not ours. Where
 * the entry at the position is gone, something was lost: the feed is loaded anew and its viewers get a snapshot. So nothing is missed silently,
 * and nothing is applied twice.
 */
import { isDeepStrictEqual } from 'node:util'
import type { LogEntry, Push } from '@rivulet/broker'
import {
  type Cursor,
  compareCursors,
  emptyState,
  epochOf,
  origin,
  type SnapshotReason,
  type TaskState,
  type TaskStatus,
  type TurnStatus,
} from '@rivulet/protocol'
import { decodeEntry, foldEvent, readLog } from '../log/log-fold.ts'
import { createFeedLoader, epochWithoutLog, type FeedLoaderDeps, type Loaded } from './feed-loader.ts'
import { createFrameRing, type FrameRing } from './frame-ring.ts'
import { createLogPages, type KeptParts, type LogPages } from './log-pages.ts'
import { covers, isTaskSettled, makeSnapshot, type SnapshotBase } from './snapshot.ts'
import { encodeEntry, encodeFrame } from './sse-frame.ts'
import { type Shared, share } from './sse-response.ts'
import { createStoredTaskCache } from './stored-task-cache.ts'

export type Feed = {
  readonly task: string
  readonly ring: FrameRing
  /** What the ring no longer holds. */
  readonly pages: LogPages
  /** Resolves when the log has been read. */
  readonly loaded: Promise<void>
  position(): Cursor
  /** How often it was loaded: a cursor that it held before may be in a gap now. */
  loads(): number
  /** Whether who has heard everything up to this cursor knows what the feed knows. Needs `ready`. */
  isAt(cursor: Cursor): boolean
  status(): TaskStatus
  /** The turn that is running, as far as the feed knows. */
  runningTurn(): number | null
  /** Whether nothing is left to come. */
  isSettled(): boolean
  /** Makes sure that a snapshot can be made at once; also before `status` and `isSettled` are asked for the first time. */
  ready(): Promise<void>
  isReady(): boolean
  /**
   * What a snapshot stands for, to a viewer who has heard everything up to a cursor: the position; or that cursor, where the log has lost its end
   * and goes on in a later epoch. Nobody is taken back.
   */
  placeOf(heard: Cursor): Cursor
  /**
   * The snapshot at the position, for viewers at this place. While a viewer still waits for its socket to take an earlier one, those who come get
   * the same bytes, and what came since from the ring; not one who has heard more than that. Needs `ready`.
   */
  snapshot(reason: SnapshotReason, place: Cursor, heard: Cursor): SharedSnapshot
  take(push: Push): void
  /** Compares with the log, in case a push was lost. */
  check(): Promise<void>
  lastHeardAt(): number
  /** When the newest entry was said, by the clock of whoever said it; 0 before there was one. */
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

export function createFeed(deps: FeedDeps): Feed {
  const { task, log, loadBase, loadEpoch, snapshotBytes, kept, follow, isAwaited, onFrames, onGap, onBadEntry, onError } = deps
  let ring = createFrameRing()
  let pages = createLogPages({ log, task, kept })
  let state: TaskState = emptyState
  let position: Cursor = origin
  const base = createStoredTaskCache(loadBase)
  const loader = createFeedLoader(deps)
  const cached = new Map<SnapshotReason, SharedSnapshot & { base: SnapshotBase }>()
  /** The task's epoch when its log was gone, or had lost its end: nothing goes on in it. Null while the log goes on where it stands. */
  let lostEpoch: number | null = null
  let inbox: Push[] = []
  let reading: Promise<void> | null = null
  let heardAt = performance.now()
  let saidAt = 0
  let loads = 0
  /** Where it stood when nothing was left to come. What was written in one step is read one by one: in the midst of it an end is not the end. */
  let settledAt: Cursor | null = null

  const loaded = read(async () => {
    await follow()
    install(await loader.load())
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
    // Without a log, Postgres goes on under the same position until the task has ended.
    isAt: cursor => cursor === position && (hasLog() || isTaskSettled(state, base.require())),
    status: () => (state.turns.length > 0 ? state.status : base.require().task.status),
    runningTurn: () => knownTurns().find(({ status }) => status === 'running')?.number ?? null,
    isSettled: () => settledAt === position,
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
    if (reading) {
      inbox.push(push)
      return
    }
    if (push.previous === position) {
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
    if (!reading) look()
  }

  function isReady(): boolean {
    const held = base.get()
    return held !== null && covers(held, state)
  }

  function look(): void {
    const held = base.get()
    settledAt = held && isTaskSettled(state, held) ? position : null
  }

  function hasLog(): boolean {
    return ring.length > 0 || state.turns.length > 0
  }

  function knownTurns(): readonly { number: number; status: TurnStatus }[] {
    return state.turns.length > 0 ? state.turns : (base.get()?.turns ?? [])
  }

  function placeOf(heard: Cursor): Cursor {
    const isTaken = lostEpoch !== null && epochOf(heard) <= lostEpoch && compareCursors(heard, position) > 0
    return isTaken ? heard : position
  }

  function snapshot(reason: SnapshotReason, place: Cursor, heard: Cursor): SharedSnapshot {
    const known = base.require()
    const before = cached.get(reason)
    const isSame = before?.position === position && before.base === known && before.place === place
    if (before && (isSame || (place === position && isStillSent(before, heard)))) return before
    const frame = encodeFrame(place, 'snapshot', JSON.stringify(makeSnapshot(reason, state, known, snapshotBytes)))
    const made = { position, place, shared: share([frame]), base: known }
    cached.set(reason, made)
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
    await reading?.catch(() => {})
    return read(catchUp)
  }

  /** One reading at a time; what is pushed meanwhile is taken after it. */
  function read(work: () => Promise<void>): Promise<void> {
    reading ??= work().finally(() => {
      reading = null
      look()
      const pushed = inbox
      inbox = []
      for (const push of pushed) take(push)
      onFrames()
    })
    return reading
  }

  function install(loading: Loaded): void {
    ;({ ring, state, position, lostEpoch } = loading)
    cached.clear()
    base.put(loading.base)
    pages = createLogPages({ log, task, kept })
    loads += 1
    look()
    heardAt = performance.now()
  }

  async function catchUp(): Promise<void> {
    const known = await log.state(task)
    heardAt = performance.now()
    if (!known || (known.isStale && !hasLog())) return stayWithoutLog()
    if (known.begin && compareCursors(position, known.begin) < 0) return reload()
    if (known.isStale) {
      // Whole or not at all: what is applied one by one might look like an end.
      if (known.cursor !== position || (await loader.lacksSomething(state))) return reload()
      lostEpoch = await loadEpoch()
      return
    }
    lostEpoch = null
    if (known.cursor === position) return
    const isAtStart = position === origin && known.isWhole
    let isFirst = true
    for await (const entry of readLog(log, task, position, known.cursor)) {
      if (isFirst && entry.cursor !== position && !isAtStart) return reload()
      isFirst = false
      apply(entry)
    }
    if (isFirst) return reload()
  }

  /** Nothing was lost if there was nothing before either, and no log came and went meanwhile: then the turns would stand elsewhere. */
  async function stayWithoutLog(): Promise<void> {
    const held = base.get()
    if (hasLog() || !held) return reload()
    if (isTaskSettled(state, held)) return
    const epoch = await loadEpoch()
    if (!isDeepStrictEqual((await loadBase(0)).turns, held.turns)) return reload()
    lostEpoch = epochWithoutLog(epoch)
  }

  /** In one step, so that nobody is shown the new log before being told of the gap. */
  async function reload(): Promise<void> {
    const loading = await loader.load()
    const stored = loading.base ?? (await loadBase(lastTurnOf(loading.state)))
    install({ ...loading, base: stored })
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
