/**
 * One open SSE response, as bytes: its head, its chunks, its end.
 *
 * Chunks are written to the socket ready-made, past Node's response object: the same buffer, framed once, goes to every viewer, which costs less
 * than half of a `res.write` each. A client that speaks HTTP/1.0 gets the bare bytes until the connection closes.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { chunkEnd, chunkHead, Frame, heartbeat, type Piece, pieceOf } from './sse-frame.ts'

/** Bytes that go to many responses, framed once for those that are chunked, which are nearly all. `chunked` and `parsed` are made when a reader asks for them. */
export class Shared {
  /** The frames in the bytes; none for a heartbeat, `retry`, or the text of a dialect. A reader of events takes `parsed`, because these may be those of a ring. */
  readonly frames: readonly Frame[]
  readonly #bytes: Piece
  #chunked: Buffer | null = null
  #parsed: readonly Frame[] | null = null

  /** @param bytes in a buffer in which the head of their chunk stands before them, and its end after them */
  constructor(bytes: Piece, frames: readonly Frame[]) {
    this.#bytes = bytes
    this.frames = frames
  }

  get chunked(): Buffer {
    if (!this.#chunked) {
      const { source, from, to } = this.#bytes
      this.#chunked = source.subarray(from - chunkHead(to - from).length, to + chunkEnd.length)
    }
    return this.#chunked
  }

  get plain(): Buffer {
    const { source, from, to } = this.#bytes
    return source.subarray(from, to)
  }

  /** The frames, for readers of their events: each is parsed once for all of them, and kept only here. */
  get parsed(): readonly Frame[] {
    this.#parsed ??= this.frames.map(frame => frame.copied())
    return this.#parsed
  }
}

/** The interface that a viewer writes to: the writer of a socket, or a writer before that one. */
export type SseResponse = {
  /** False when it is full: then wait until it has drained. */
  write(bytes: Shared): boolean
  end(): void
  destroy(): void
}

export type SseSocket = SseResponse & {
  /** The bytes that wait in this process for the socket. */
  unsentBytes(): number
}

export type SseEvents = { onDrain: () => void; onClose: () => void }

export async function openSse(response: ServerResponse, headers: Record<string, string>, events: SseEvents): Promise<SseSocket | null> {
  response.writeHead(200, {
    ...headers,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  response.flushHeaders()
  const socket = response.socket ?? (await assigned(response))
  if (!socket || socket.destroyed) return null
  const isChunked = response.chunkedEncoding
  let hasEnded = false
  socket.setNoDelay(true)
  socket.setKeepAlive(true, 30_000)
  // The writer cuts a client that reads nothing; between two heartbeats a stream is silent.
  socket.setTimeout(0)
  socket.on('drain', events.onDrain)
  socket.once('close', close)
  return {
    write: bytes => socket.write(isChunked ? bytes.chunked : bytes.plain),
    unsentBytes: () => socket.writableLength,
    end,
    destroy: () => socket.destroy(),
  }

  function end(): void {
    if (hasEnded) return
    hasEnded = true
    if (isChunked) socket?.write(lastChunk)
    socket?.end()
  }

  function close(): void {
    socket?.off('drain', events.onDrain)
    events.onClose()
  }
}

/** Every delta passes here. A single frame is already encoded as a chunk, so its bytes are sent as they are; several are copied to one buffer. */
export function share(pieces: readonly Piece[]): Shared {
  const [only] = pieces
  if (pieces.length === 1 && only instanceof Frame && only.isChunk) return new Shared(only, [only])
  let length = 0
  for (const { from, to } of pieces) length += to - from
  const bytes = emptyChunk(length)
  let at = bytes.from
  const frames: Frame[] = []
  for (const piece of pieces) {
    if (piece instanceof Frame) frames.push(piece.copiedTo(bytes.source, at))
    at += piece.source.copy(bytes.source, at, piece.from, piece.to)
  }
  return new Shared(bytes, frames)
}

/** Room for so many bytes, with the head of their chunk before it, and its end after it. */
export function emptyChunk(length: number): Piece {
  const head = chunkHead(length)
  const [from, to] = [head.length, head.length + length]
  const source = Buffer.allocUnsafe(to + chunkEnd.length)
  source.write(head, 'latin1')
  source.write(chunkEnd, to, 'latin1')
  return { source, from, to }
}

export const heartbeatChunk = share([pieceOf(heartbeat)])
const lastChunk = Buffer.from('0\r\n\r\n')

/** A pipelined request has to wait for the responses before its own. */
function assigned(response: ServerResponse): Promise<Socket | null> {
  return new Promise(resolve => {
    response.once('socket', (socket: Socket) => resolve(socket))
    // A response that has no socket yet does not hear that the connection is gone.
    response.req.socket.once('close', () => resolve(null))
  })
}
