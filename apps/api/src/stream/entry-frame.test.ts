import { encodeByteText, encodeEvent } from '@rivulet/broker'
import type { Event } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { frameEntry } from './entry-frame.ts'

const task = '0198c0de-0000-7000-8000-000000000001'
const stamp = { task, turn: 1, attempt: 1, at: 1 }
const delta: Event = { type: 'message.delta', ...stamp, index: 3, delta: { type: 'text', text: 'word' }, offset: 0 }
const finished: Event = { type: 'message.finished', ...stamp, index: 3, status: 'complete' }

function framed(event: Event, index?: number | null) {
  const known = frameEntry(task, { cursor: '2-7', index, json: encodeByteText(encodeEvent(event).json) })
  return known && { index: known.frame.index, isParsed: known.event !== null }
}

test('a text delta gets the index that the log keeps beside it, and is not parsed', () => {
  // An index that differs from that of the JSON shows which of the two is read.
  expect(framed(delta, 4)).toEqual({ index: 4, isParsed: false })
  expect(framed(finished, 4)).toEqual({ index: 4, isParsed: true })
})

test('an entry of a writer that left the index out is parsed for it', () => {
  expect(framed(delta)).toEqual({ index: 3, isParsed: true })
  expect(framed(finished)).toEqual({ index: 3, isParsed: true })
})
