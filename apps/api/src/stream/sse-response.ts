/**
 * One open SSE response, as bytes: its head, its chunks, its end.
 *
 * Chunks are written to the socket ready-made, past Node's response object: the same buffer, framed once, goes to every viewer, which costs less
 * than half of a `res.write` each. A client that speaks HTTP/1.0 gets the bare bytes until the connection closes.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Cursor } from '@rivulet/protocol'
import { decodeFrame, type Frame, type FrameType, heartbeat, type Piece, type StreamEvent } from './sse-frame.ts'

/** A frame in the bytes, and its JSON in it. It does not hold the bytes that the frame was encoded to, because those would stay in memory twice. */
type FramePlace = Omit<Frame, 'bytes'> & { from: number; to: number }

/** A frame in shared bytes. An entry of the log that was not parsed yet is parsed when its event is asked for, once for all viewers. */
export class SharedFrame {
  readonly cursor: Cursor
  readonly type: FrameType
  readonly index: number | null
  readonly bytes: Buffer
  readonly #jsonFrom: number
  #event: StreamEvent | null

  constructor({ cursor, type, index, event, jsonFrom }: FramePlace, bytes: Buffer) {
    this.cursor = cursor
    this.type = type
    this.index = index
    this.bytes = bytes
    this.#event = event
    this.#jsonFrom = jsonFrom
  }

  get event(): StreamEvent {
    this.#event ??= decodeFrame({ bytes: this.bytes, jsonFrom: this.#jsonFrom })
    return this.#event
  }
}

/** Bytes that go to many responses, framed once for those that are chunked, which are nearly all, and decoded at most once. */
export class Shared {
  readonly chunked: Buffer
  readonly #head: number
  readonly #places: readonly FramePlace[]
  #frames: readonly SharedFrame[] | null = null

  constructor(chunked: Buffer, head: number, places: readonly FramePlace[]) {
    this.chunked = chunked
    this.#head = head
    this.#places = places
  }

  get plain(): Buffer {
    return this.chunked.subarray(this.#head, -crlf.length)
  }

  /** The frames in the bytes; none where the bytes are a heartbeat or `retry`. */
  get frames(): readonly SharedFrame[] {
    this.#frames ??= this.#places.map(place => new SharedFrame(place, this.chunked.subarray(place.from, place.to)))
    return this.#frames
  }
}

export type SseResponse = {
  /** False when the socket is full: then wait for `onDrain`. */
  write(bytes: Shared): boolean
  /** What waits in this process for the socket. */
  unsentBytes(): number
  end(): void
  destroy(): void
}

export type SseEvents = { onDrain: () => void; onClose: () => void }

export async function openSse(response: ServerResponse, headers: Record<string, string>, events: SseEvents): Promise<SseResponse | null> {
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
  // The hub cuts a viewer that reads nothing; between two heartbeats a stream is silent.
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

/** Every delta passes here: one buffer, filled in place. */
export function share(pieces: readonly Piece[]): Shared {
  let length = 0
  for (const { bytes } of pieces) length += bytes.length
  const head = length.toString(16) + crlf
  const chunked = Buffer.allocUnsafe(head.length + length + crlf.length)
  let at = chunked.write(head, 'latin1')
  const places: FramePlace[] = []
  for (const piece of pieces) {
    const from = at
    at += piece.bytes.copy(chunked, at)
    if (!('jsonFrom' in piece)) continue
    const { cursor, type, index, event, jsonFrom } = piece
    places.push({ cursor, type, index, event, jsonFrom, from, to: at })
  }
  chunked.write(crlf, at, 'latin1')
  return new Shared(chunked, head.length, places)
}

const crlf = '\r\n'
export const heartbeatChunk = share([{ bytes: heartbeat }])
const lastChunk = Buffer.from('0\r\n\r\n')

/** A pipelined request has to wait for the responses before its own. */
function assigned(response: ServerResponse): Promise<Socket | null> {
  return new Promise(resolve => {
    response.once('socket', (socket: Socket) => resolve(socket))
    // A response that has no socket yet does not hear that the connection is gone.
    response.req.socket.once('close', () => resolve(null))
  })
}
