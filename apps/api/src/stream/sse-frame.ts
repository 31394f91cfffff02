/**
 * Events as bytes on the wire. Each is encoded once and the same bytes go to every viewer.
 *
 * Nothing a client or an agent says can break out of a frame: the id is two numbers, the event one of a closed set of names, and the data one
 * line of JSON.
 */
import type { LogEntry } from '@rivulet/broker'
import type { Cursor, Event, EventType, TokenEvent, WireEvent } from '@rivulet/protocol'

export type Frame = { cursor: Cursor; bytes: Buffer }

/** The JSON stays as it is in the log, fields that we do not know included; what would break the frame is written anew. */
export function encodeEntry({ cursor, json }: LogEntry, event: Event): Frame {
  return encodeFrame(cursor, event.type, /[\r\n]/.test(json) ? JSON.stringify(event) : json)
}

export function encodeWireEvent(cursor: Cursor, event: WireEvent | TokenEvent): Frame {
  return encodeFrame(cursor, event.type, JSON.stringify(event))
}

export function encodeFrame(cursor: Cursor, type: EventType | (WireEvent | TokenEvent)['type'], json: string): Frame {
  return { cursor, bytes: Buffer.from(`id: ${cursor}\nevent: ${type}\ndata: ${json}\n\n`) }
}

export const heartbeat = Buffer.from(': hb\n\n')

/** When to come back after a cut, jittered so that viewers do not return in step: 1 to 5 s. */
export function encodeRetry(): Buffer {
  return Buffer.from(`retry: ${1_000 + Math.floor(Math.random() * 4_000)}\n\n`)
}

/** What bytes of ours say: events with their cursors, and as they are the lines that carry none (heartbeats, `retry`). */
export function decodeFrames(bytes: Buffer): (DecodedFrame | string)[] {
  const blocks = bytes.toString().split('\n\n').slice(0, -1)
  return blocks.map(block => {
    const match = /^id: (\d+-\d+)\nevent: [^\n]+\ndata: ([^\n]+)$/.exec(block)
    return match ? { cursor: match[1] as Cursor, event: JSON.parse(match[2] ?? '') as Event | WireEvent } : `${block}\n\n`
  })
}

/** Ours to begin with, so it is what its type says; fields that this version does not know may be there too. */
export type DecodedFrame = { cursor: Cursor; event: Event | WireEvent }
