/**
 * One task's log in this process: read once, however many viewers watch it.
 *
 * A feed stands at a position and holds the newest frames before it. A push moves it on if it follows that position; otherwise the feed reads the log
 * from the position, that entry included. If the entry at the position is gone, something was lost: the feed is loaded anew, from the log or from the
 * rows of Postgres, and its viewers get a snapshot.
 */
import type { LogEntry, LogState, Push } from '@rivulet/broker'
import { type Cursor, compareCursors, type SnapshotReason, type TaskId, type TaskStatus } from '@rivulet/protocol'
import { foldBetween, isBeforeLog, readLog } from '../log/log-fold.ts'
import { frameEntry } from './entry-frame.ts'
import { createFeedLoader, type FeedLoaderDeps, type Loaded, lacksSomething } from './feed-loader.ts'
import { type FeedChange, type FeedState, nextFeedState } from './feed-state.ts'
import { FrameRing } from './frame-ring.ts'
import { createLogPages, type KeptParts, type LogPages } from './log-pages.ts'
import type { MessageSpan } from './messages/message-spans.ts'
import type { SnapshotBase } from './snapshot.ts'
import type { Frame } from './sse-frame.ts'
import { createTaskView, type SharedSnapshot } from './task-view.ts'

export type Feed = {
  readonly task: TaskId
  ring(): FrameRing
  /** Events that the ring no longer holds. */
  pages(): LogPages
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
  hasEnded(turnNumber: number): boolean
  /** The questions of a turn to a person or a client, as `questionsIn` has it. */
  questionsOf(turnNumber: number): string
  /** Resolves when `status` and `isSettled` can be asked. */
  known(): Promise<void>
  isKnown(): boolean
  /** Resolves when a snapshot can be made at once. */
  ready(): Promise<void>
  isReady(): boolean
  /** Where a message begins and ends in the log; undefined for one that the log does not have. */
  messageSpan(index: number): MessageSpan | undefined
  /**
   * The place of the snapshot for a client that has everything up to a cursor: the position; or, where that client has more of a log that is lost, a
   * place of the rows. Never before the cursor of the client, unless the log continues before that.
   */
  placeOf(clientCursor: Cursor): Cursor
  /**
   * The snapshot at a place. While a viewer still waits for its socket to take an earlier one at the position, viewers that come get the same
   * bytes, and what came since from the ring; not a viewer whose client has more than that. Needs `ready`.
   */
  snapshot(reason: SnapshotReason, place: Cursor, clientCursor: Cursor): SharedSnapshot
  take(push: Push): void
  /** Compares with the log, in case a push was lost. */
  check(): Promise<void>
  /** The frames that came since the last call. */
  takeFresh(): readonly Frame[]
  lastReceivedAt(): number
  /** When the newest entry was written, by the clock of its writer; 0 before there was one. */
  lastWrittenAt(): number
}

export type FeedDeps = FeedLoaderDeps & {
  snapshotBytes: number
  kept: KeptParts
  /** Resolves when pushes are received: only then is the log read, so that nothing falls between. */
  follow: () => Promise<void>
  /** Whether a viewer that stands at this position waits for its socket. */
  isAwaited: (position: Cursor) => boolean
  onFrames: () => void
  /** The feed had to be loaded anew: its viewers have missed something. */
  onGap: () => void
  onError: (error: unknown) => void
}

/** One life of the log: from a load to the next one. `number` counts the loads. */
type Life = { number: number; ring: FrameRing; pages: LogPages }

export function createFeed(deps: FeedDeps): Feed {
  const { task, log, loadBase, loadVersion, snapshotBytes, ringBytes, kept, follow, isAwaited, onFrames, onGap, onBadEntry, onError } = deps
  const loader = createFeedLoader(deps)
  let life: Life = { number: 0, ring: new FrameRing(ringBytes), pages: createLogPages({ log, task, kept }) }
  const view = createTaskView({ snapshotBytes, loadBase, bytesSince, ring: () => life.ring, onBadEntry })
  let state: FeedState = { at: 'rest', source: { ground: 'rows', endCursor: null } }
  /** The frames since the channel took them. */
  let fresh: Frame[] = []
  let receivedAt = performance.now()
  let hasReceived = false
  /** The fold of deltas that the ring no longer has. */
  let folding: Promise<void> | null = null

  const loaded = read(async () => {
    await follow()
    const loading = await loader.load()
    install(loading, loading.base)
  })
  return {
    task,
    // Not getters: V8 keeps an object with a getter of its own as a dictionary, in which every access is a search.
    ring: () => life.ring,
    pages: () => life.pages,
    loaded,
    position: view.position,
    loads: () => life.number,
    isAt: cursor => cursor === view.position(),
    isAtEnd,
    status: view.status,
    runningTurn: view.runningTurn,
    isSettled: view.isSettled,
    hasEnded: view.hasEnded,
    questionsOf: view.questionsOf,
    known,
    isKnown: view.isKnown,
    ready,
    isReady: view.isReady,
    messageSpan: view.messageSpan,
    placeOf,
    snapshot: view.snapshot,
    take,
    check,
    takeFresh,
    lastReceivedAt,
    lastWrittenAt: () => life.ring.newest?.writtenAt ?? 0,
  }

  /** The only change of its state. */
  function change(what: FeedChange): void {
    state = nextFeedState(state, what)
  }

  /** The log goes on at the position, so a cursor behind it was never sent: a snapshot with a later id would stand after the entries that follow it. */
  function placeOf(clientCursor: Cursor): Cursor {
    return state.source.ground === 'live' ? view.position() : view.placeOf(clientCursor)
  }

  function isAtEnd(cursor: Cursor): boolean {
    const { source } = state
    return view.isSettled() && (view.placeOf(cursor) === cursor || (source.ground !== 'live' && cursor === source.endCursor))
  }

  function take(push: Push): void {
    hasReceived = true
    if (state.at === 'reading') {
      state.pushed.push(push)
      return
    }
    if (state.source.ground === 'live' && push.previous === view.position()) {
      let isSame = !view.isSettled()
      for (const entry of push.entries) isSame = apply(entry) && isSame
      if (!isSame) view.settle()
      onFrames()
      return
    }
    const last = push.entries.at(-1)
    if (last && compareCursors(last.cursor, view.position()) <= 0) return
    read(catchUp).catch(onError)
  }

  function takeFresh(): readonly Frame[] {
    const frames = fresh
    fresh = []
    return frames
  }

  /** A push does not read the clock, because the hub asks only once a second. */
  function lastReceivedAt(): number {
    if (hasReceived) receivedAt = performance.now()
    hasReceived = false
    return receivedAt
  }

  async function known(): Promise<void> {
    await view.known()
    if (state.at === 'rest') view.settle()
  }

  async function ready(): Promise<void> {
    while (!view.isReady()) {
      if (view.isKnown()) await foldFromLog()
      else await known()
    }
    if (state.at === 'rest') view.settle()
  }

  /** One read for all viewers that wait for it. */
  function foldFromLog(): Promise<void> {
    folding ??= foldDeltas().finally(() => {
      folding = null
    })
    return folding
  }

  /** Pushes are taken meanwhile: they are in the ring. */
  async function foldDeltas(): Promise<void> {
    const [from, to, before] = [view.foldedTo(), view.position(), life]
    const folded = await foldBetween(log, task, view.state(), { from, to }, onBadEntry)
    if (life !== before) return
    if (folded) view.fold(folded, to)
    else await read(reload)
  }

  function bytesSince(position: Cursor): number | null {
    if (!isAwaited(position)) return null
    return life.ring.after(position)?.reduce((sum, { from, to }) => sum + to - from, 0) ?? null
  }

  async function check(): Promise<void> {
    // The reading that is in progress may have begun before the loss.
    if (state.at === 'reading') await state.done.catch(() => {})
    return read(catchUp)
  }

  /** One reading at a time; the feed takes the pushes that arrive meanwhile after it. */
  function read(work: () => Promise<void>): Promise<void> {
    if (state.at === 'reading') return state.done
    const pushed: Push[] = []
    const done = work().finally(() => {
      change({ kind: 'read' })
      view.settle()
      for (const push of pushed) take(push)
      onFrames()
    })
    change({ kind: 'reading', done, pushed })
    return done
  }

  function install(loading: Loaded, stored: SnapshotBase | null): void {
    life = { number: life.number + 1, ring: loading.ring, pages: createLogPages({ log, task, kept }) }
    fresh = []
    change({ kind: 'loaded', ground: loading.ground })
    view.replace(loading, stored)
    receivedAt = performance.now()
  }

  async function catchUp(): Promise<void> {
    const known = await log.state(task)
    receivedAt = performance.now()
    if (!known || known.isStale) return keep(known)
    const position = view.position()
    if (known.begin && compareCursors(position, known.begin) < 0) return reload()
    const isAtStart = isBeforeLog(position) && known.isWhole
    if (state.source.ground !== 'live' && !isAtStart) return reload()
    change({ kind: 'log continues' })
    if (known.cursor === position) return
    let isFirst = true
    for await (const page of readLog(log, task, position, known.cursor)) {
      if (isFirst && page[0] && page[0].cursor !== position && !isAtStart) return reload()
      isFirst = false
      for (const entry of page) apply(entry)
    }
    // The log may have lost its end after it was asked for its state.
    if (view.position() !== known.cursor) return reload()
  }

  /** Without a log that lives: the feed stays where it is if the rows, or what is left of the log, are what they were. */
  async function keep(left: LogState | null): Promise<void> {
    const { ground } = state.source
    if (ground !== 'rows' && left?.cursor !== view.position()) return reload()
    const { epoch, endCursor } = await loadVersion()
    const held = view.rows.get()
    const isSame = held?.epoch === epoch
    if (ground === 'rows') return isSame ? change({ kind: 'rows agree', endCursor }) : reload()
    const rows = isSame ? held : await loadBase(view.lastTurn())
    // Whole or not at all: entries that are applied one by one might look like an end.
    if (lacksSomething(view.outline(), rows) || !(isSame || (await loader.isStillLost(left)))) return reload()
    view.rows.put(rows)
    change({ kind: 'rows agree', endCursor })
  }

  /** In one step, so that no viewer is sent the new log before its snapshot. */
  async function reload(): Promise<void> {
    const loading = await loader.load()
    install(loading, loading.base ?? (await loadBase(loading.state.turns.at(-1)?.number ?? 0)))
    onGap()
  }

  /** Returns false if a turn may begin or end by the entry; a text delta does neither. */
  function apply(entry: LogEntry): boolean {
    if (compareCursors(entry.cursor, view.position()) <= 0) return true
    const { ring } = life
    const framed = frameEntry(task, entry, ring.slab)
    if (framed?.event === null) view.pass(entry.cursor)
    else view.advance(entry.cursor, framed?.event ?? null)
    if (framed) {
      ring.push(framed.frame)
      fresh.push(framed.frame)
    }
    return framed?.event === null
  }
}
