/**
 * Events as bytes on the wire. Each is encoded once and the same bytes go to every viewer.
 *
 * Nothing a client or an agent says can break out of a frame: the id is two numbers, the event one of a closed set of names, and the data one
 * line of JSON.
 */
import type { LogEntry } from '@rivulet/broker'
import { type Cursor, type Event, parseEvent, type TokenEvent, type WireEvent } from '@rivulet/protocol'

export type StreamEvent = Event | WireEvent | TokenEvent
export type FrameType = StreamEvent['type']

/** Bytes to send: a frame, or a line without an event (a heartbeat, `retry`). A place in a buffer, because making a view takes longer than copying a delta. */
export type Piece = { readonly source: Buffer; readonly from: number; readonly to: number }

/**
 * A frame in a buffer: the chunk of HTTP that it was encoded as, or a chunk of several frames.
 *
 * Type, index and event stand beside the bytes, so that a reader of one message, of many tasks or in a dialect parses nothing again. The index is null for an
 * event that is not about one message. An entry of the log that was not parsed yet is parsed when its event is asked for.
 */
export class Frame implements Piece {
  readonly cursor: Cursor
  readonly type: FrameType
  readonly index: number | null
  readonly source: Buffer
  readonly from: number
  readonly to: number
  readonly #jsonFrom: number
  #event: StreamEvent | null

  /** @param head how long the frame is before its JSON, after which come two line feeds */
  constructor(known: FrameKnown, { source, from, to }: Piece, head: number) {
    this.cursor = known.cursor
    this.type = known.type
    this.index = known.index
    this.source = source
    this.from = from
    this.to = to
    this.#jsonFrom = from + head
    this.#event = known.event
  }

  get bytes(): Buffer {
    return this.source.subarray(this.from, this.to)
  }

  get event(): StreamEvent {
    this.#event ??= this.decode()
    return this.#event
  }

  /** The event in the bytes, which have to be an entry of a log. It is not kept. */
  decode(): Event {
    return parseEvent(JSON.parse(this.source.toString('utf8', this.#jsonFrom, this.to - frameEnd.length))) as Event
  }

  /** The same frame at another place. An event that one of the two parses later is not kept by the other, because the ring counts only bytes. */
  copiedTo(source: Buffer, from: number, event = this.#event): Frame {
    const { cursor, type, index } = this
    return new Frame({ cursor, type, index, event }, { source, from, to: from + this.to - this.from }, this.#jsonFrom - this.from)
  }

  withoutEvent(): Frame {
    return this.copiedTo(this.source, this.from, null)
  }
}

type FrameKnown = { cursor: Cursor; type: FrameType; index: number | null; event: StreamEvent | null }

/** The JSON stays as it is in the log, fields that we do not know included; what would break the frame is written anew. */
export function encodeEntry({ cursor, json }: LogEntry, event: Event): Frame {
  const index = 'index' in event ? (event.index ?? null) : null
  return encodeFrame(cursor, event.type, /[\r\n]/.test(json) ? JSON.stringify(event) : json, index, event)
}

export function encodeWireEvent(cursor: Cursor, event: WireEvent | TokenEvent): Frame {
  return encodeFrame(cursor, event.type, JSON.stringify(event), null, event)
}

export function encodeFrame(
  cursor: Cursor,
  type: FrameType,
  json: string,
  index: number | null = null,
  event: StreamEvent | null = null,
): Frame {
  const head = `${idField}${cursor}\nevent: ${type}\ndata: `
  const text = `${head}${json}${frameEnd}`
  const length = Buffer.byteLength(text)
  const before = chunkHead(length)
  const source = Buffer.from(`${before}${text}${chunkEnd}`)
  return new Frame({ cursor, type, index, event }, { source, from: before.length, to: before.length + length }, head.length)
}

/** Stands before so many bytes in a chunked response; `chunkEnd` stands after them. */
export function chunkHead(length: number): string {
  return length.toString(16) + chunkEnd
}

export const chunkEnd = '\r\n'

export function pieceOf(source: Buffer): Piece {
  return { source, from: 0, to: source.length }
}

/** What every frame begins with. */
export const idField = 'id: '

export const heartbeat = Buffer.from(': hb\n\n')

/** When to come back after a cut, jittered so that viewers do not return in step: 1 to 5 s. */
export function encodeRetry(): Buffer {
  return Buffer.from(`retry: ${1_000 + Math.floor(Math.random() * 4_000)}\n\n`)
}

export const frameEnd = '\n\n'
