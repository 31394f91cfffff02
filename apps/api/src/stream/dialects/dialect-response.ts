/**
 * A response in a dialect: it stands between a viewer, which writes our frames, and the socket.
 *
 * Viewers, feeds and the hub know nothing of dialects, and a viewer of our own events pays nothing for them. An event is translated only when
 * the socket has room, so a slow client holds no more memory here than any other. A response that is not complete is destroyed instead of
 * ended, because clients of other protocols take a clean end of the body for the end of the task.
 */
import { type Frame, pieceOf } from '../sse-frame.ts'
import { type Shared, type SseResponse, share } from '../sse-response.ts'
import type { Dialect, DialectStream } from './dialect.ts'

type DialectResponse = SseResponse & {
  /** The socket has drained. Returns true when it has taken everything that was written, so that the viewer may continue. */
  drained(): boolean
}

/** An event that waits for the socket, or bytes without an event (`retry`), which pass as they are. */
type Waiting = Frame | Shared

/** @param onError receives what a dialect throws. Only its own viewer is cut, because the hub writes to all viewers of a task in one loop. */
export function respondIn(
  dialect: Dialect,
  stream: DialectStream,
  response: SseResponse,
  onError: (error: unknown) => void,
): DialectResponse {
  /** Frames for which the socket had no room, as the viewer wrote them, because an event may be many times as long in the dialect. */
  let waiting: readonly Waiting[] = []
  let isLeaving = false
  return { write, end, destroy: () => response.destroy(), drained }

  function write(bytes: Shared): boolean {
    // Full for good: the viewer stops, and a client that does not read the end is cut like any other that reads nothing.
    if (stream.hasEnded()) {
      response.end()
      return false
    }
    const { parsed } = bytes
    const pieces: readonly Waiting[] = parsed.length > 0 ? parsed : [bytes]
    if (waiting.length > 0) {
      waiting = [...waiting, ...pieces]
      return false
    }
    waiting = pieces
    return drained()
  }

  function drained(): boolean {
    try {
      return writeWaiting()
    } catch (error) {
      onError(error)
      waiting = []
      response.destroy()
      return false
    }
  }

  function writeWaiting(): boolean {
    let isFree = true
    let place = 0
    while (isFree && place < waiting.length && !stream.hasEnded()) {
      const first = place
      let text = ''
      for (; place < waiting.length && text.length < writeLength && !stream.hasEnded(); place += 1) text += textAt(place)
      if (stream.hasEnded()) text += dialect.ending
      if (text !== '') isFree = response.write(shareText(waiting.slice(first, place), text))
    }
    waiting = stream.hasEnded() ? [] : waiting.slice(place)
    if (stream.hasEnded()) response.end()
    else if (isLeaving && waiting.length === 0) response.destroy()
    return isFree && waiting.length === 0
  }

  function textAt(place: number): string {
    const piece = waiting[place]
    if (!piece || !('event' in piece)) return piece?.plain.toString() ?? ''
    const { cursor, event } = piece
    const chunks = stream.take(cursor, event)
    const last = stream.isPlace?.(event) === false ? -1 : chunks.length - 1
    return chunks.map((chunk, at) => dialect.encode(chunk, cursor, at === last)).join('')
  }

  function end(): void {
    isLeaving = true
    if (stream.hasEnded()) response.end()
    else if (waiting.length === 0) response.destroy()
  }
}

/** Length of translated text before the socket is asked whether it has room for more. */
const writeLength = 64 * 1024

/** The texts made of a snapshot. Viewers of one dialect share them, so that a viewer which does not read holds no copy of its own. */
const snapshotTexts = new WeakMap<Frame, Shared[]>()

function shareText([piece, ...others]: readonly Waiting[], text: string): Shared {
  const shared = share([pieceOf(Buffer.from(text))])
  if (!piece || !('event' in piece) || piece.event.type !== 'snapshot' || others.length > 0) return shared
  const known = snapshotTexts.get(piece) ?? []
  const same = known.find(({ chunked }) => chunked.equals(shared.chunked))
  if (!same) snapshotTexts.set(piece, [...known, shared])
  return same ?? shared
}
