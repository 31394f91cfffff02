/**
 * Events as bytes on the wire. Each is encoded once and the same bytes go to every viewer.
 *
 * Nothing a client or an agent says can break out of a frame: the id is two numbers, the event one of a closed set of names, and the data one
 * line of JSON.
 */
import type { LogEntry } from '@rivulet/broker'
import type { Cursor, Event, EventType, TokenEvent, WireEvent } from '@rivulet/protocol'

/** `jsonFrom` is where its JSON begins in `bytes`; after the JSON come two line feeds. */
export type Frame = { cursor: Cursor; bytes: Buffer; jsonFrom: number }

/** A frame, or a line without an event: a heartbeat, `retry`. */
export type Piece = Frame | Pick<Frame, 'bytes'>

/** The JSON stays as it is in the log, fields that we do not know included; what would break the frame is written anew. */
export function encodeEntry({ cursor, json }: LogEntry, event: Event): Frame {
  return encodeFrame(cursor, event.type, /[\r\n]/.test(json) ? JSON.stringify(event) : json)
}

export function encodeWireEvent(cursor: Cursor, event: WireEvent | TokenEvent): Frame {
  return encodeFrame(cursor, event.type, JSON.stringify(event))
}

export function encodeFrame(cursor: Cursor, type: EventType | (WireEvent | TokenEvent)['type'], json: string): Frame {
  const head = `id: ${cursor}\nevent: ${type}\ndata: `
  return { cursor, bytes: Buffer.from(`${head}${json}${frameEnd}`), jsonFrom: head.length }
}

export const heartbeat = Buffer.from(': hb\n\n')

/** When to come back after a cut, jittered so that viewers do not return in step: 1 to 5 s. */
export function encodeRetry(): Buffer {
  return Buffer.from(`retry: ${1_000 + Math.floor(Math.random() * 4_000)}\n\n`)
}

export const frameEnd = '\n\n'
