/**
 * Events as bytes on the wire. Each is encoded once and the same bytes go to every viewer.
 *
 * Nothing a client or an agent says can break out of a frame: the id is two numbers, the event one of a closed set of names, and the data one
 * line of JSON.
 */
import type { LogEntry } from '@rivulet/broker'
import { type Cursor, type Event, parseEvent, type TokenEvent, type WireEvent } from '@rivulet/protocol'

/**
 * `jsonFrom` is where its JSON begins in `bytes`; after the JSON come two line feeds. Type, index and event stand beside the bytes, so that a reader of
 * one message, of many tasks or in a dialect parses nothing again. The index is null for an event that is not about one message, the event for an entry of
 * the log that was not parsed, or whose event is not kept.
 */
export type Frame = { cursor: Cursor; type: FrameType; index: number | null; event: StreamEvent | null; bytes: Buffer; jsonFrom: number }

export type StreamEvent = Event | WireEvent | TokenEvent
export type FrameType = StreamEvent['type']

/** A frame, or a line without an event: a heartbeat, `retry`. */
export type Piece = Frame | Pick<Frame, 'bytes'>

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
  return { cursor, type, index, event, bytes: Buffer.from(`${head}${json}${frameEnd}`), jsonFrom: head.length }
}

/** The event in the bytes of a frame that was made of an entry of a log. */
export function decodeFrame({ bytes, jsonFrom }: Pick<Frame, 'bytes' | 'jsonFrom'>): Event {
  return parseEvent(JSON.parse(bytes.toString('utf8', jsonFrom, bytes.length - frameEnd.length))) as Event
}

/** What every frame begins with. */
export const idField = 'id: '

export const heartbeat = Buffer.from(': hb\n\n')

/** When to come back after a cut, jittered so that viewers do not return in step: 1 to 5 s. */
export function encodeRetry(): Buffer {
  return Buffer.from(`retry: ${1_000 + Math.floor(Math.random() * 4_000)}\n\n`)
}

export const frameEnd = '\n\n'
