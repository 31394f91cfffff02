/**
 * Events as bytes on the wire. Each is encoded once and the same bytes go to every viewer.
 *
 * Nothing a client or an agent says can break out of a frame: the id is two numbers, the event one of a closed set of names, and the data one
 * line of JSON.
 */
import { type ByteText, charsOf, encodeByteText, type LogEntry, messageIndexOf } from '@rivulet/broker'
import { type Cursor, type Event, parseEvent, type TokenEvent, type WireEvent } from '@rivulet/protocol'
import { largestInSlab, type Slab } from './slab.ts'

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
  /** Whether nothing but the frame is in its chunk. */
  readonly isChunk: boolean
  readonly #jsonFrom: number
  #event: StreamEvent | null

  /** @param head how long the frame is before its JSON, after which come a line feed and the line of its id */
  constructor(known: FrameKnown, { source, from, to }: Piece, head: number, isChunk: boolean) {
    this.cursor = known.cursor
    this.type = known.type
    this.index = known.index
    this.source = source
    this.from = from
    this.to = to
    this.isChunk = isChunk
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

  /** When the event of a log was written, by the clock of its writer. An event that was not parsed is a delta as we write it, in which this comes early. */
  get writtenAt(): number {
    if (this.#event && 'at' in this.#event) return this.#event.at
    return Number(/"at":(\d+)/.exec(this.source.toString('latin1', this.#jsonFrom, Math.min(this.to, this.#jsonFrom + 200)))?.[1] ?? 0)
  }

  /** The event in the bytes, which have to be an entry of a log. It is not kept. */
  decode(): Event {
    return parseEvent(JSON.parse(this.source.toString('utf8', this.#jsonFrom, this.to - idLine(this.cursor).length))) as Event
  }

  /** Where the cursor begins in the source. */
  get cursorFrom(): number {
    return this.to - frameEnd.length - this.cursor.length
  }

  /** If the copy parses its event, this frame does not keep it, because a ring counts only bytes. */
  copied(event = this.#event): Frame {
    return new Frame(this.#known(event), this, this.#jsonFrom - this.from, this.isChunk)
  }

  /** The same frame at another place, in a chunk of several. */
  copiedTo(source: Buffer, from: number): Frame {
    return new Frame(this.#known(this.#event), { source, from, to: from + this.to - this.from }, this.#jsonFrom - this.from, false)
  }

  #known(event: StreamEvent | null): FrameKnown {
    const { cursor, type, index } = this
    return { cursor, type, index, event }
  }
}

type FrameKnown = { cursor: Cursor; type: FrameType; index: number | null; event: StreamEvent | null }

/** The JSON stays as it is in the log, fields that we do not know included; what would break the frame is written anew. */
export function encodeEntry({ cursor, index, json }: LogEntry, event: Event, slab?: Slab): Frame {
  const line = /[\r\n]/.test(charsOf(json)) ? encodeByteText(JSON.stringify(event)) : json
  return encodeFrame(cursor, event.type, line, index === undefined ? messageIndexOf(event) : index, event, slab)
}

export function encodeWireEvent(cursor: Cursor, event: WireEvent | TokenEvent): Frame {
  return encodeFrame(cursor, event.type, encodeByteText(JSON.stringify(event)), null, event)
}

export function encodeFrame(
  cursor: Cursor,
  type: FrameType,
  json: ByteText,
  index: number | null = null,
  event: StreamEvent | null = null,
  slab?: Slab,
): Frame {
  const head = `event: ${type}\ndata: `
  const tail = idLine(cursor)
  const length = head.length + json.length + tail.length
  const before = chunkHead(length)
  const size = before.length + length + chunkEnd.length
  const own = slab && size <= largestInSlab ? slab : null
  const start = own?.take(size) ?? 0
  const source = own?.source ?? Buffer.allocUnsafe(size)
  source.write(before + head + charsOf(json) + tail + chunkEnd, start, 'latin1')
  const from = start + before.length
  return new Frame({ cursor, type, index, event }, { source, from, to: from + length }, head.length, true)
}

/** Stands before so many bytes in a chunked response; `chunkEnd` stands after them. */
export function chunkHead(length: number): string {
  return length.toString(16) + chunkEnd
}

export const chunkEnd = '\r\n'

export function pieceOf(source: Buffer): Piece {
  return { source, from: 0, to: source.length }
}

/** The id is the last line of a frame: some clients take an id as soon as its line is there, and a cut in the middle of a frame would lose its event. */
export function idLine(cursor: string): string {
  return `\nid: ${cursor}${frameEnd}`
}

/** One line break, so that the line is part of the next event: some clients pass on an event without data at every empty line. */
export const heartbeat = Buffer.from(': hb\n')

/** When to come back after a cut, jittered so that viewers do not return in step: 1 to 5 s. One line break, as above. */
export function encodeRetry(): Buffer {
  return Buffer.from(`retry: ${1_000 + Math.floor(Math.random() * 4_000)}\n`)
}

export const frameEnd = '\n\n'
