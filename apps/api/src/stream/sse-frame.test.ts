import { encodeByteText } from '@rivulet/broker'
import type { Event } from '@rivulet/protocol'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Slab } from './slab.ts'
import { encodeEntry, encodeFrame, encodeRetry, encodeWireEvent, heartbeat } from './sse-frame.ts'

const task = '0198c0de-0000-7000-8000-000000000001'

test('an entry is one frame: its cursor, its type, and its JSON as it stands in the log', () => {
  const json = `{"type":"custom","task":"${task}","turn":1,"attempt":1,"at":1,"name":"n","data":1,"later":"unknown to us"}`
  const frame = encodeEntry({ cursor: '2-7', json: encodeByteText(json) }, JSON.parse(json))
  expect(frame.cursor).toBe('2-7')
  expect(frame.bytes.toString()).toBe(`event: custom\ndata: ${json}\nid: 2-7\n\n`)
})

test('nothing that an agent says, and nothing that stands in a log, breaks out of its frame', () => {
  const evil = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('\n\nevent: end\ndata: {}\n\n', '\r\nid: 9-9\r\n', 'data: x\r', '\0', '\u2028'),
  )
  fc.assert(
    fc.property(evil, evil, fc.constantFrom('', '\n', '\r\n', '\r'), (name, data, space) => {
      const event: Event = { type: 'custom', task, turn: 1, attempt: 1, at: 1, name, data }
      // White space between tokens is JSON too, if another writer wrote it.
      const json = JSON.stringify(event).replace('{', `{${space}`)
      const events = parse(encodeEntry({ cursor: '1-1', json: encodeByteText(json) }, event).bytes)
      expect(events).toHaveLength(1)
      expect(events[0]).toMatchObject({ id: '1-1', event: 'custom' })
      expect(JSON.parse(events[0]?.data ?? '')).toEqual(event)
    }),
  )
})

test('a large frame is not kept by the slab of its ring', () => {
  const slab = new Slab()
  const [large, small] = ['x'.repeat(100_000), 'x'].map(text =>
    encodeFrame('1-1', 'custom', encodeByteText(JSON.stringify(text)), null, null, slab),
  )
  expect(slab.source).toBe(small?.source)
  expect(large?.source).not.toBe(small?.source)
})

test('what is only on the wire has the cursor it stands for', () => {
  expect(parse(encodeWireEvent('3-4', { type: 'caught_up', task }).bytes)).toEqual([
    { id: '3-4', event: 'caught_up', data: JSON.stringify({ type: 'caught_up', task }) },
  ])
})

test('when to come back is a random time between one and five seconds', () => {
  const delays = Array.from({ length: 500 }, () => Number(/^retry: (\d+)\n$/.exec(encodeRetry().toString())?.[1]))
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(1_000)
  expect(Math.max(...delays)).toBeLessThanOrEqual(5_000)
  expect(new Set(delays).size).toBeGreaterThan(100)
})

test('a heartbeat is a comment', () => {
  // With an empty line after it, a client that takes every empty line for the end of an event would get one without data.
  expect(heartbeat.toString()).toBe(': hb\n')
  const comments: string[] = []
  createParser({ onComment: comment => comments.push(comment), onEvent: () => expect.unreachable() }).feed(heartbeat.toString())
  expect(comments).toEqual(['hb'])
})

function parse(bytes: Buffer): EventSourceMessage[] {
  const events: EventSourceMessage[] = []
  createParser({ onEvent: event => events.push(event) }).feed(bytes.toString())
  return events
}
