/**
 * One task's log in this process: read once, however many are watching.
 *
 * A feed stands at a position and holds the fold up to it and the newest frames before it. A push moves it on if it follows that position;
 * otherwise the log is read from the position, that entry included, to where the log says that it stands: what lies beyond is not ours. Where
 * the entry at the position is gone, something was lost: the feed is loaded anew and its viewers get a snapshot. So nothing is missed silently,
 * and nothing is applied twice.
 */
import { isDeepStrictEqual } from 'node:util'
import type { LogEntry, LogReader, Push } from '@rivulet/broker'
import {
  applyEvent,
  type Cursor,
  compareCursors,
  type Event,
  emptyState,
  epochOf,
  formatCursor,
  hasEnded,
  origin,
  type SnapshotReason,
  type TaskState,
  type TaskStatus,
  type TurnStatus,
} from '@rivulet/protocol'
import { createFrameRing, type FrameRing } from './frame-ring.ts'
import { createHeldBase } from './held-base.ts'
import { decodeEntry, readLog } from './log-fold.ts'
import { createLogPages, type KeptParts, type LogPages } from './log-pages.ts'
import { covers, isTaskSettled, makeSnapshot, type SnapshotBase } from './snapshot.ts'
import { encodeEntry, encodeWireEvent, type Frame } from './sse-frame.ts'

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
  /** The snapshot at the position, for viewers at this place. Needs `ready`. */
  snapshot(reason: SnapshotReason, place: Cursor): Frame
  take(push: Push): void
  /** Compares with the log, in case a push was lost. */
  check(): Promise<void>
  lastHeardAt(): number
  /** When the newest entry was said, by the clock of whoever said it; 0 before there was one. */
  lastSaidAt(): number
}

export type FeedDeps = {
  task: string
  log: LogReader
  /** What Postgres says, for a reader that has heard of turns up to this one. */
  loadBase: (turn: number) => Promise<SnapshotBase>
  /** The task's epoch, as Postgres has it. */
  loadEpoch: () => Promise<number>
  snapshotBytes: number
  kept: KeptParts
  /** Resolves when pushes are heard: only then is the log read, so that nothing falls between. */
  follow: () => Promise<void>
  onFrames: () => void
  /** The feed had to be loaded anew: its viewers have missed something. */
  onGap: () => void
  onBadEntry: () => void
  onError: (error: unknown) => void
}

export function createFeed(deps: FeedDeps): Feed {
  const { task, log, loadBase, loadEpoch, snapshotBytes, kept, follow, onFrames, onGap, onBadEntry, onError } = deps
  let ring = createFrameRing()
  let pages = createLogPages({ log, task, kept })
  let state: TaskState = emptyState
  let position: Cursor = origin
  const base = createHeldBase(loadBase)
  let cached: { reason: SnapshotReason; state: TaskState; base: SnapshotBase; frame: Frame } | null = null
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
    install(await load())
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

  function snapshot(reason: SnapshotReason, place: Cursor): Frame {
    const known = base.require()
    const isSame = cached?.reason === reason && cached.state === state && cached.base === known && cached.frame.cursor === place
    if (!cached || !isSame) {
      const frame = encodeWireEvent(place, makeSnapshot(reason, state, known, snapshotBytes))
      cached = { reason, state, base: known, frame }
    }
    return cached.frame
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

  /** Everything anew. Until it is installed, whoever looks sees the feed as it was. */
  async function load(): Promise<Loaded> {
    for (;;) {
      const known = await log.state(task)
      if (!known) return loadWithoutLog()
      const fresh = createFrameRing()
      let folded: TaskState = emptyState
      for await (const entry of readLog(log, task, known.begin ?? origin, known.cursor)) folded = fold(folded, entry, fresh)
      // Between the two questions the log may have been lost; one that has just been trimmed to nothing stays where it stands.
      const isThere = folded.cursor === known.cursor || (await log.state(task))?.cursor === known.cursor
      if (!isThere) continue
      if (known.isStale && (await lacksSomething(folded))) return loadWithoutLog()
      return { ring: fresh, state: folded, base: null, position: known.cursor, lostEpoch: known.isStale ? await loadEpoch() : null }
    }
  }

  function install(loading: Loaded): void {
    ;({ ring, state, position, lostEpoch } = loading)
    base.put(loading.base)
    pages = createLogPages({ log, task, kept })
    loads += 1
    look()
    heardAt = performance.now()
  }

  /**
   * A task that has ended stands behind everything that its log has told, and one that has not before what its log is going to tell. The epoch
   * is asked for first: if it is raised meanwhile, the position is too low and the log is read, never too high.
   */
  async function loadWithoutLog(): Promise<Loaded> {
    const epoch = await loadEpoch()
    const stored = await loadBase(0)
    const at = isTaskSettled(emptyState, stored) ? formatCursor(epoch + 1, 0) : epoch <= 1 ? origin : formatCursor(epoch, 0)
    return { ring: createFrameRing(), state: emptyState, base: stored, position: at, lostEpoch: Math.max(epoch, 1) }
  }

  /** Whether a log of another life of Redis lacks a turn, or the end of one: it may never tell of it. */
  async function lacksSomething(folded: TaskState): Promise<boolean> {
    const { turns } = await loadBase(lastTurnOf(folded))
    const first = folded.turns[0]?.number ?? 0
    const told = new Map(folded.turns.map(({ number, status }) => [number, status]))
    return turns.some(({ number, status }) => {
      const known = told.get(number)
      return number >= first && (!known || (hasEnded(status) && !hasEnded(known)))
    })
  }

  async function catchUp(): Promise<void> {
    const known = await log.state(task)
    heardAt = performance.now()
    if (!known) return (await isStillWithoutLog()) ? undefined : reload()
    if (known.begin && compareCursors(position, known.begin) < 0) return reload()
    const isAtStart = position === origin && known.isWhole
    let isFirst = known.cursor !== position
    if (isFirst) {
      for await (const entry of readLog(log, task, position, known.cursor)) {
        if (isFirst && entry.cursor !== position && !isAtStart) return reload()
        isFirst = false
        apply(entry)
      }
    }
    if (isFirst || (known.isStale && (await lacksSomething(state)))) return reload()
    lostEpoch = known.isStale ? (lostEpoch ?? (await loadEpoch())) : null
  }

  /** Nothing was lost if there was nothing before either, and no log came and went meanwhile: then the turns would stand elsewhere. */
  async function isStillWithoutLog(): Promise<boolean> {
    const held = base.get()
    if (hasLog() || !held) return false
    return isTaskSettled(state, held) || isDeepStrictEqual((await loadBase(0)).turns, held.turns)
  }

  /** In one step, so that nobody is shown the new log before being told of the gap. */
  async function reload(): Promise<void> {
    const loading = await load()
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
    state = foldEvent(state, event, entry.cursor)
    ring.push(encodeEntry(entry, event))
  }

  function fold(before: TaskState, entry: LogEntry, frames: FrameRing): TaskState {
    const event = decodeEntry(task, entry)
    if (!event) {
      onBadEntry()
      return { ...before, cursor: entry.cursor }
    }
    frames.push(encodeEntry(entry, event))
    frames.trim(null, 0)
    return foldEvent(before, event, entry.cursor)
  }

  function foldEvent(before: TaskState, event: Event, cursor: Cursor): TaskState {
    try {
      return applyEvent(before, event, cursor)
    } catch {
      // The log itself is wrong here, for every reader: pass the entry on and let each notice.
      onBadEntry()
      return { ...before, cursor }
    }
  }
}

type Loaded = { ring: FrameRing; state: TaskState; position: Cursor; base: SnapshotBase | null; lostEpoch: number | null }

function lastTurnOf(state: TaskState): number {
  return state.turns.at(-1)?.number ?? 0
}
