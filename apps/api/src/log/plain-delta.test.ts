import { randomUUID } from 'node:crypto'
import { encodeEvent } from '@rivulet/broker'
import { type Event, parseEvent } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { indexOfDelta, isPlainDelta } from './plain-delta.ts'

const task = randomUUID()
/** Both functions recognise the same text. */
const indexOf = (json: string) => {
  const index = indexOfDelta(task, json)
  expect(isPlainDelta(task, json)).toBe(index !== null)
  return index
}
const stamp = { task, turn: 1, attempt: 0, at: 1_700_000_000_000 }

test('every text delta that a worker writes is recognised, whatever its text', () => {
  const texts = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom('"', '\\', '\n', '\u0000', '\ud800', 'a') }),
  )
  fc.assert(
    fc.property(texts, fc.nat(), fc.nat(), (text, index, offset) => {
      const event: Event = { type: 'message.delta', ...stamp, index, delta: { type: 'text', text }, offset }
      expect(indexOf(encodeEvent(event).json)).toBe(index)
    }),
    { numRuns: 1_000 },
  )
})

test('what is recognised is an event of the task, and one line, however its JSON was changed', () => {
  const json = encodeEvent({ type: 'message.delta', ...stamp, index: 3, delta: { type: 'text', text: 'a "word"\n' }, offset: 5 }).json
  const pieces = fc.constantFrom('"', '\\', '\n', '\r', '\u2028', '{', '}', ',', '0', '-', '.', 'e', '\\u12', '\u0000', task, 'x')
  let recognised = 0
  fc.assert(
    fc.property(fc.nat(json.length), fc.nat(4), pieces, (at, removed, piece) => {
      const changed = json.slice(0, at) + piece + json.slice(at + removed)
      const index = indexOf(changed)
      if (index === null) return
      recognised += 1
      expect(parseEvent(JSON.parse(changed))).toMatchObject({ type: 'message.delta', task, index })
      expect(changed).not.toMatch(/[\r\n]/)
    }),
    { numRuns: 3_000 },
  )
  expect(recognised).toBeGreaterThan(10)
})

test.each([
  ['another task', { task: randomUUID() }],
  ['another kind of delta', { delta: { type: 'reasoning_content', index: 0, text: 'a' } }],
  ['an unknown field', { model: 'm' }],
  ['a text that is too long for a pattern', { delta: { type: 'text', text: 'a'.repeat(70_000) } }],
])('%s is left to the parser', (_, fields) => {
  const event = { type: 'message.delta', ...stamp, index: 0, delta: { type: 'text', text: 'a' }, offset: 0, ...fields }
  expect(indexOf(JSON.stringify(event))).toBeNull()
})

test('a text that does not match is left in linear time', () => {
  const almost = `{"type":"message.delta","task":"${task}","turn":1,"attempt":1,"at":1,"index":0,"delta":{"type":"text","text":"${'\\n'.repeat(30_000)}`
  expect(indexOf(almost)).toBeNull()
})
