/**
 * One open SSE response, as a reader of a feed: a cursor, not a queue.
 *
 * It has two states: its source (the log, the ring, or a snapshot that is due) and its socket (open, full, ended). A viewer with a full socket holds
 * nothing but its cursor; when its socket drains it goes on from its source, and where the ring has moved past it, from a snapshot. It never goes
 * back: a viewer whose client has more from elsewhere than the feed has here waits for the feed.
 */
import { type Cursor, compareCursors, origin, type SnapshotReason, type TaskId, type TokenEvent } from '@rivulet/protocol'
import { firstPage } from '../../log/log-fold.ts'
import type { Feed } from '../feed.ts'
import type { Part } from '../log-pages.ts'
import { encodeRetry, encodeWireEvent, type Piece, pieceOf } from '../sse-frame.ts'
import { type Shared, type SseResponse, share } from '../sse-response.ts'
import { SseWriter } from '../sse-writer.ts'
import { nextSource, type SourceChange, type ViewerSource } from './viewer-source.ts'

export type Viewer = {
  readonly task: TaskId
  /** Sends the frames since its cursor. `batch` has them, framed once for all viewers that are up to date. */
  pump(batch?: Batch): void
  /** It has missed something: a snapshot comes before anything else. */
  skip(reason: SnapshotReason): void
  /** Where it stands while its socket is full; null when it is not. */
  blockedAt(): Cursor | null
  /** Ends the response so that the client comes back elsewhere. */
  leave(): void
  /** Ends the response because the task was removed: a client that comes back finds nothing. */
  remove(): void
  /** Sends a token to it alone. False when it cannot get it now: its socket is full, or a snapshot has to come first. */
  sendToken(event: TokenEvent): boolean
  drained(): void
  cut(): void
}

/** The frames between two positions of a feed, the second of which is where it stands. `isLast` when nothing is left to come. */
type Batch = { from: Cursor; to: Cursor; shared: Shared; isLast: boolean }

/** A cursor counts for the feed as it was when it was looked for. */
export type ViewerStart =
  | { kind: 'snapshot'; reason: 'join' }
  | { kind: 'snapshot'; reason: 'gap'; clientCursor: Cursor }
  | { kind: 'after'; cursor: Cursor; loads: number }

type ViewerDeps = {
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
  /** The last cursor that its client received, here or from another API. */
  let clientCursor: Cursor = begin.kind === 'snapshot' && begin.reason === 'gap' ? begin.clientCursor : cursor
  let source: ViewerSource = firstSource()
  const writer = new SseWriter(response)
  let isCaughtUp = false
  let hasSnapshot = false

  send([pieceOf(encodeRetry())])
  goOn()

  return {
    task: feed.task,
    pump,
    skip,
    blockedAt: () => (writer.at === 'full' ? cursor : null),
    leave,
    remove,
    sendToken,
    drained,
    cut: () => writer.destroy(),
  }

  function firstSource(): ViewerSource {
    if (begin.kind === 'snapshot') return { at: 'snapshot', reason: begin.reason, waits: 0 }
    if (begin.loads !== feed.loads()) return { at: 'snapshot', reason: 'gap', waits: 0 }
    return isInRing(cursor) ? { at: 'ring' } : { at: 'log', count: firstPage }
  }

  /** The only change of its source. */
  function change(what: SourceChange): void {
    source = nextSource(source, what)
  }

  function pump(batch?: Batch): void {
    if (writer.at !== 'open' || source.at === 'log' || (source.at === 'snapshot' && source.waits > 0)) return
    if (batch && source.at === 'ring' && cursor === batch.from) {
      cursor = batch.to
      writer.write(batch.shared)
      // As nearly always: a delta for a viewer that stays.
      if (isCaughtUp && !batch.isLast) return
    } else if (source.at === 'snapshot' || compareCursors(cursor, feed.position()) < 0) {
      const missed = source.at === 'ring' ? feed.ring().after(cursor) : null
      const reason = source.at === 'snapshot' ? source.reason : 'slow'
      if (!missed && !feed.isReady()) {
        waitFor(reason, feed.ready())
        return
      }
      if (!missed && !sendSnapshot(reason)) return
      // A snapshot that others were sent before may be behind. If the socket has no room for what came since, that is sent when it drains.
      const rest = missed ?? (isOpen() ? feed.ring().after(cursor) : null)
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

  /** Returns false where it leaves instead. */
  function sendSnapshot(reason: SnapshotReason): boolean {
    const at = feed.placeOf(place())
    // Its own cursor was of no log, and the log that goes on now stands before what it got for that. Ids only grow on one connection, so it comes back.
    if (hasSnapshot && compareCursors(at, place()) < 0) {
      leave()
      return false
    }
    change({ kind: 'snapshot sent' })
    onSnapshot(reason)
    // A viewer that joins has received nothing, whatever the position of the feed.
    const snapshot = feed.snapshot(reason, at, reason === 'join' ? origin : place())
    hasSnapshot = true
    clientCursor = snapshot.place
    cursor = snapshot.position
    writer.write(snapshot.shared)
    return true
  }

  /** The cursor that its next frame stands for: not before the last one that it received. */
  function place(): Cursor {
    return compareCursors(cursor, clientCursor) > 0 ? cursor : clientCursor
  }

  /** A client that has more from elsewhere is not taken back to what the feed has: the feed looks first whether there is more. */
  function goOn(): void {
    if (source.at === 'log') replay().catch(fail)
    else if (source.at === 'snapshot' && compareCursors(cursor, feed.position()) > 0) waitFor(source.reason, feed.check())
    else pump()
  }

  function waitFor(reason: SnapshotReason, work: Promise<void>): void {
    change({ kind: 'awaiting', reason })
    work.then(() => {
      change({ kind: 'awaited' })
      pump()
    }, fail)
  }

  function skip(reason: SnapshotReason): void {
    change({ kind: 'missed', reason })
    goOn()
  }

  function finish(): void {
    send([encodeWireEvent(place(), { type: 'end', task: feed.task, status: feed.status() })])
    writer.end()
  }

  function leave(): void {
    writer.leave()
  }

  function remove(): void {
    // Also where the socket is full: it is the last event, and small.
    send([encodeWireEvent(place(), { type: 'deleted', task: feed.task })])
    writer.end()
  }

  function sendToken(event: TokenEvent): boolean {
    if (writer.at !== 'open' || source.at === 'snapshot') return false
    send([encodeWireEvent(place(), event)])
    return true
  }

  function drained(): void {
    writer.drained()
    change({ kind: 'drained' })
    goOn()
  }

  /** From the log, page by page, until the ring takes over. A socket that is full ends it, and one that has drained begins it again. */
  async function replay(): Promise<void> {
    while (source.at === 'log' && isOpen() && !isInRing(cursor) && compareCursors(cursor, feed.position()) < 0) {
      const own = source
      const page = await feed.pages().after(cursor, own.count, feed.position())
      if (source !== own || !isOpen()) return
      change({ kind: 'page read', next: page.follows ? page.next : null })
      if (page.parts.length === 0) {
        // The log has no entry up to the feed's position, because the feed stands on rows or the log lost its end.
        change({ kind: 'missed', reason: 'gap' })
        break
      }
      sendParts(page.parts)
    }
    if (!isOpen()) return
    change({ kind: 'log read' })
    pump()
  }

  /** As many as the socket takes; the others are read again. */
  function sendParts(parts: readonly Part[]): void {
    for (const { to, shared } of parts) {
      cursor = to
      if (shared) writer.write(shared)
      if (!isOpen()) return
    }
  }

  function isOpen(): boolean {
    return writer.at === 'open'
  }

  function isInRing(position: Cursor): boolean {
    return position === feed.position() || feed.ring().holds(position)
  }

  function send(frames: readonly Piece[]): void {
    if (frames.length > 0) writer.write(share(frames))
  }

  function fail(error: unknown): void {
    onError(error)
    writer.destroy()
  }
}
