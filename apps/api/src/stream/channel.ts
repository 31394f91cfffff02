/**
 * A feed and everything in this process that watches it: viewers, and callers that wait for the end of a turn without events.
 *
 * Events that the feed gets in one tick leave in one write, framed once for all viewers that are up to date. A channel that nothing watches is idle; the hub drops it.
 */
import { type Cursor, compareCursors, type SnapshotReason } from '@rivulet/protocol'
import type { Tenant } from '../store/connection/tenant.ts'
import { createFeed, type Feed, type FeedDeps } from './feed.ts'
import { type SseResponse, share } from './sse-response.ts'
import { startViewer, type Viewer, type ViewerStart } from './viewer/viewer.ts'

/** A caller that waits for the end of one turn, without events. */
type TurnWait = { turnNumber: number; known: string | null; settle(how: WaitOutcome): void }

/** `questions`: the turn asks for something else than before. `left`: this process is stopping, or it can no longer follow the task. */
export type WaitOutcome = 'ended' | 'questions' | 'deleted' | 'left'

type ChannelDeps = {
  tenant: Tenant
  feed: Omit<FeedDeps, 'isAwaited' | 'onFrames' | 'onGap'>
  /** The bytes that the ring keeps for viewers whose sockets are full. */
  viewerBytes: number
  /** There is something to send: the hub calls `flush` in this tick. */
  onFrames: (channel: Channel) => void
  /** Frames were sent to viewers. */
  onSent: (feed: Feed) => void
  onSnapshot: (reason: SnapshotReason) => void
  /** So many viewers were sent a snapshot, all in the same tick. */
  onSnapshots: (feed: Feed, reason: SnapshotReason, viewers: number) => void
}

export type Channel = {
  readonly feed: Feed
  readonly tenant: Tenant
  add(response: SseResponse, start: { begin: ViewerStart; isFollowing: boolean }): Viewer
  forget(viewer: Viewer): void
  /** Resolves when the turn has ended, or when it asks for something else than `known`, or when the signal fires (`left`). */
  untilEnded(turnNumber: number, signal: AbortSignal, known: string | null): Promise<WaitOutcome>
  /** Sends what has come since the last time. */
  flush(): void
  /** The caller is about to watch. */
  touch(): void
  /** Whether it is watched; where it is not, since when. */
  idleSince(): number | null
  /** Settles the callers that wait. */
  settleAll(how: WaitOutcome): void
  /** The task was removed: its viewers are sent that, and end. */
  remove(): void
}

export function createChannel(deps: ChannelDeps): Channel {
  const { tenant, viewerBytes, onFrames, onSent, onSnapshot, onSnapshots } = deps
  const { onError } = deps.feed
  const viewers = new Set<Viewer>()
  const waits = new Set<TurnWait>()
  /** Snapshots of this tick. */
  const snapshots = new Map<SnapshotReason, number>()
  const isAwaited = (position: Cursor) => some(viewers, viewer => viewer.blockedAt() === position)
  const feed = createFeed({ ...deps.feed, isAwaited, onFrames: () => onFrames(channel), onGap: skipAll })
  let fedTo = feed.position()
  let touchedAt = performance.now()
  const channel: Channel = { feed, tenant, add, forget, untilEnded, flush, touch, idleSince, settleAll, remove }
  feed.loaded.then(() => {
    fedTo = feed.position()
  }, onError)
  return channel

  function add(response: SseResponse, { begin, isFollowing }: { begin: ViewerStart; isFollowing: boolean }): Viewer {
    const viewer = startViewer({ feed, response, begin, isFollowing, onSnapshot: noteSnapshot, onError })
    viewers.add(viewer)
    return viewer
  }

  function forget(viewer: Viewer): void {
    viewers.delete(viewer)
    touch()
  }

  function touch(): void {
    touchedAt = performance.now()
  }

  function idleSince(): number | null {
    return viewers.size > 0 || waits.size > 0 ? null : touchedAt
  }

  function untilEnded(turnNumber: number, signal: AbortSignal, known: string | null): Promise<WaitOutcome> {
    return new Promise(resolve => {
      const wait: TurnWait = { turnNumber, known, settle }
      waits.add(wait)
      signal.addEventListener('abort', leave)
      settleEnded()

      function settle(how: WaitOutcome): void {
        waits.delete(wait)
        signal.removeEventListener('abort', leave)
        touch()
        resolve(how)
      }

      function leave(): void {
        settle('left')
      }
    })
  }

  function settleEnded(): void {
    for (const wait of waits) {
      if (feed.hasEnded(wait.turnNumber)) wait.settle('ended')
      else if (wait.known !== null && wait.known !== feed.questionsOf(wait.turnNumber)) wait.settle('questions')
    }
  }

  function settleAll(how: WaitOutcome): void {
    for (const wait of waits) wait.settle(how)
  }

  function flush(): void {
    if (waits.size > 0) settleEnded()
    const from = fedTo
    const frames = feed.takeFresh()
    fedTo = feed.position()
    if (frames.length > 0) {
      const batch = { from, to: fedTo, shared: share(frames), isLast: feed.isSettled() }
      for (const viewer of viewers) viewer.pump(batch)
      if (viewers.size > 0) onSent(feed)
    } else if (feed.isSettled()) {
      for (const viewer of viewers) viewer.pump()
    }
    const ring = feed.ring()
    if (ring.isOverfull()) ring.trim(slowest(viewers), viewerBytes)
  }

  function skipAll(): void {
    fedTo = feed.position()
    for (const viewer of viewers) viewer.skip('gap')
  }

  /** Reported once a tick, because a gap in a task with thousands of viewers is one event for operators. */
  function noteSnapshot(reason: SnapshotReason): void {
    onSnapshot(reason)
    if (snapshots.size === 0) queueMicrotask(reportSnapshots)
    snapshots.set(reason, (snapshots.get(reason) ?? 0) + 1)
  }

  function reportSnapshots(): void {
    for (const [reason, count] of snapshots) onSnapshots(feed, reason, count)
    snapshots.clear()
  }

  function remove(): void {
    for (const viewer of viewers) viewer.remove()
    settleAll('deleted')
  }
}

function slowest(viewers: Iterable<Viewer>): Cursor | null {
  let lowest: Cursor | null = null
  for (const viewer of viewers) {
    const at = viewer.blockedAt()
    if (at && (!lowest || compareCursors(at, lowest) < 0)) lowest = at
  }
  return lowest
}

function some<T>(values: Iterable<T>, condition: (value: T) => boolean): boolean {
  for (const value of values) if (condition(value)) return true
  return false
}
