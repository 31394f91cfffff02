/**
 * One open SSE response, as a reader of a feed: a cursor, not a queue.
 *
 * A viewer is replaying (catching up from the log), live (fed from the ring) or blocked (its socket is full). A blocked one holds nothing but
 * its cursor; when its socket drains it goes on from the ring, and where the ring has moved past it, from a snapshot. It never goes back: one
 * that has heard more elsewhere than the feed has here waits for the feed.
 */
import { type Cursor, compareCursors, origin, type SnapshotReason, type TokenEvent } from '@rivulet/protocol'
import { firstPage } from '../log/log-fold.ts'
import type { Feed } from './feed.ts'
import type { Part } from './log-pages.ts'
import { encodeRetry, encodeWireEvent, type Frame, heartbeat } from './sse-frame.ts'
import { type Shared, type SseResponse, share } from './sse-response.ts'

export type Viewer = {
  readonly task: string
  /** Sends what has come since its cursor. `batch` is that for those who are up to date, framed once. */
  pump(batch?: Batch): void
  /** It has missed something: a snapshot comes before anything else. */
  skip(reason: SnapshotReason): void
  beat(): void
  /** Where it stands while its socket is full; null when it is not. */
  blockedAt(): Cursor | null
  /** Ends the response so that the client comes back elsewhere. */
  leave(): void
  /** Ends the response because the task was removed: a client that comes back finds nothing. */
  remove(): void
  /** Something for it alone, where it stands. False when it cannot be told now: its socket is full, or a snapshot has to come first. */
  tell(event: TokenEvent): boolean
  drained(): void
  /** Cuts the connection if nothing has left it for this long, or if its client does not take its end; answers whether it did. */
  cutIfStalled(stallMs: number): boolean
  cut(): void
  unsentBytes(): number
}

/** The frames between two positions of a feed. */
export type Batch = { from: Cursor; to: Cursor; shared: Shared }

/** A cursor counts for the feed as it was when it was looked for. */
export type ViewerStart =
  | { kind: 'snapshot'; reason: 'join' }
  | { kind: 'snapshot'; reason: 'gap'; heard: Cursor }
  | { kind: 'after'; cursor: Cursor; loads: number }

export type ViewerDeps = {
  feed: Feed
  response: SseResponse
  begin: ViewerStart
  /** Stay when the task has ended. */
  isFollowing: boolean
  onSnapshot: (reason: SnapshotReason) => void
  onError: (error: unknown) => void
}

/** Everything up to the first await is one step: no event can come between the snapshot and what follows it. */
export function startViewer({ feed, response, begin, isFollowing, onSnapshot, onError }: ViewerDeps): Viewer {
  let cursor: Cursor = begin.kind === 'after' ? begin.cursor : feed.position()
  /** The last cursor that it was told, here or elsewhere. */
  let told: Cursor = begin.kind === 'snapshot' && begin.reason === 'gap' ? begin.heard : cursor
  let due: SnapshotReason | null = begin.kind === 'snapshot' ? begin.reason : begin.loads === feed.loads() ? null : 'gap'
  let isReplaying = false
  let waits = 0
  let isBlocked = false
  let isCaughtUp = false
  let hasEnded = false
  let wake: (() => void) | null = null
  let unsent = 0
  let movedAt = 0

  send([{ cursor, bytes: encodeRetry() }])
  if (due === null && !isInRing(cursor)) replay().catch(fail)
  else goOn()

  return {
    task: feed.task,
    pump,
    skip,
    beat,
    blockedAt: () => (isBlocked ? cursor : null),
    leave,
    remove,
    tell,
    drained,
    cutIfStalled,
    cut: response.destroy,
    unsentBytes: response.unsentBytes,
  }

  function pump(batch?: Batch): void {
    if (hasEnded || isBlocked || isReplaying || waits > 0) return
    if (batch && due === null && cursor === batch.from) {
      cursor = batch.to
      write(batch.shared)
    } else if (due !== null || compareCursors(cursor, feed.position()) < 0) {
      const missed = due === null ? feed.ring.after(cursor) : null
      if (!missed && !feed.isReady()) {
        waitForSnapshot()
        return
      }
      if (!missed) sendSnapshot()
      // A snapshot that others were sent before may be behind. If the socket has no room for what came since, that is sent when it drains.
      const rest = missed ?? (isBlocked ? null : feed.ring.after(cursor))
      if (rest) {
        send(rest)
        cursor = feed.position()
      }
    }
    if (compareCursors(cursor, feed.position()) < 0) return
    if (!isCaughtUp) {
      isCaughtUp = true
      send([encodeWireEvent(place(), { type: 'caught_up', task: feed.task })])
    }
    if (!isFollowing && cursor === feed.position() && feed.isSettled()) finish()
  }

  function sendSnapshot(): void {
    const reason = due ?? 'slow'
    due = null
    onSnapshot(reason)
    // Who joins has heard nothing, wherever the feed stands.
    const snapshot = feed.snapshot(reason, feed.placeOf(place()), reason === 'join' ? origin : place())
    told = snapshot.place
    cursor = snapshot.position
    write(snapshot.shared)
  }

  /** What it is told stands for this: not before what it was told last. */
  function place(): Cursor {
    return compareCursors(cursor, told) > 0 ? cursor : told
  }

  function waitForSnapshot(): void {
    due ??= 'slow'
    waitFor(feed.ready())
  }

  /** Who has heard more elsewhere is not taken back to what it knows: the feed looks first whether there is more. */
  function goOn(): void {
    if (due !== null && compareCursors(cursor, feed.position()) > 0) waitFor(feed.check())
    else pump()
  }

  function waitFor(work: Promise<void>): void {
    waits += 1
    work.then(() => {
      waits -= 1
      pump()
    }, fail)
  }

  function skip(reason: SnapshotReason): void {
    // Who has not been told anything yet has missed nothing.
    if (due !== 'join') due = reason
    goOn()
  }

  function finish(): void {
    send([encodeWireEvent(place(), { type: 'end', task: feed.task, status: feed.status() })])
    end()
  }

  function leave(): void {
    if (hasEnded) return
    if (!isBlocked) send([{ cursor, bytes: encodeRetry() }])
    end()
  }

  function remove(): void {
    if (hasEnded) return
    // Also where the socket is full: it is the last event, and small.
    send([encodeWireEvent(place(), { type: 'deleted', task: feed.task })])
    end()
  }

  function tell(event: TokenEvent): boolean {
    if (hasEnded || isBlocked || due !== null || waits > 0) return false
    send([encodeWireEvent(place(), event)])
    return true
  }

  function end(): void {
    hasEnded = true
    response.end()
    watchUnsent()
  }

  function beat(): void {
    if (!hasEnded && !isBlocked) write(heartbeatChunk)
  }

  function drained(): void {
    isBlocked = false
    wake?.()
    pump()
  }

  function cutIfStalled(stallMs: number): boolean {
    if (!isBlocked && !hasEnded) return false
    if (response.unsentBytes() !== unsent) watchUnsent()
    else if (performance.now() - movedAt >= stallMs) {
      response.destroy()
      return true
    }
    return false
  }

  function watchUnsent(): void {
    unsent = response.unsentBytes()
    movedAt = performance.now()
  }

  /** From the log, page by page, at the socket's pace, until the ring takes over. */
  async function replay(): Promise<void> {
    isReplaying = true
    let count = firstPage
    while (due === null && !hasEnded && !isInRing(cursor) && compareCursors(cursor, feed.position()) < 0) {
      const page = await feed.pages.after(cursor, count, feed.position())
      count = page.next
      if (due !== null || hasEnded) break
      if (!page.follows) due = 'gap'
      if (page.parts.length === 0) break
      sendParts(page.parts)
      if (isBlocked) {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    }
    isReplaying = false
    pump()
  }

  /** As many as the socket takes; the others are read again. */
  function sendParts(parts: readonly Part[]): void {
    for (const { to, shared } of parts) {
      cursor = to
      if (shared) write(shared)
      if (isBlocked) return
    }
  }

  function isInRing(position: Cursor): boolean {
    return position === feed.position() || feed.ring.holds(position)
  }

  function send(frames: readonly Frame[]): void {
    if (frames.length > 0) write(share(frames.map(({ bytes }) => bytes)))
  }

  function write(bytes: Shared): void {
    if (response.write(bytes) || isBlocked) return
    isBlocked = true
    watchUnsent()
  }

  function fail(error: unknown): void {
    onError(error)
    response.destroy()
  }
}

const heartbeatChunk = share([heartbeat])
