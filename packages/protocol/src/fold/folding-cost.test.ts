/** The cost of folding a delta does not depend on the length of its message. Tested without a clock. */
import { describe, expect, test, vi } from 'vitest'
import { stamp } from '../../test/logs.ts'
import { type Content, data, media, text } from '../entities/content.ts'
import { formatCursor } from '../events/cursor.ts'
import type { Delta } from '../events/delta.ts'
import { applyEvent, emptyState, messagesOf, type TaskState } from './task-fold.ts'

function opened(content: Content): TaskState {
  return applyEvent(emptyState, { type: 'message.started', ...stamp, index: 0, author: 'agent', content }, '1-1')
}

function appended(state: TaskState, n: number, delta: Delta, offset: number): TaskState {
  return applyEvent(state, { type: 'message.delta', ...stamp, index: 0, delta, offset }, formatCursor(1, n + 2))
}

function closed(state: TaskState): TaskState {
  return applyEvent(state, { type: 'message.finished', ...stamp, index: 0, status: 'complete' }, '2-1')
}

/** Folds this many deltas of ten characters each. */
function foldText(deltas: number): TaskState {
  const delta: Delta = { type: 'text', text: '0123456789' }
  let state = opened(text())
  for (let n = 0; n < deltas; n += 1) state = appended(state, n, delta, n * 10)
  return state
}

describe('text', () => {
  test('keeping a state costs a few hundred bytes, not another copy of its message', () => {
    const count = 5000
    const delta: Delta = { type: 'text', text: 'x'.repeat(100) }
    const kept: TaskState[] = [opened(text())]
    const before = process.memoryUsage().heapUsed
    for (let n = 0; n < count; n += 1) kept.push(appended(kept[n] ?? emptyState, n, delta, n * 100))
    const each = (process.memoryUsage().heapUsed - before) / count
    // The messages of all kept states together have 1.25 GB of text, 250,000 bytes each.
    expect(each).toBeLessThan(10_000)
    expect(kept[count / 2]?.messages.get(0)?.message.content).toEqual(text('x'.repeat(50 * count)))
  })

  test('a million deltas fold into one message', () => {
    const content = foldText(1_000_000).messages.get(0)?.content
    expect(content?.type === 'text' && content.text.length).toBe(10_000_000)
  })
})

describe('JSON text and bytes', () => {
  test('fragments are parsed once, at the close', () => {
    const json = JSON.stringify(Array.from({ length: 5000 }, (_, i) => i))
    let state = opened(data())
    const parse = vi.spyOn(JSON, 'parse')
    try {
      for (let n = 0; n < json.length; n += 1) state = appended(state, n, { type: 'data_json', text: json.charAt(n) }, n)
      expect(parse).not.toHaveBeenCalled()
      state = closed(state)
      expect(parse).toHaveBeenCalledTimes(1)
    } finally {
      parse.mockRestore()
    }
    expect(messagesOf(state)[0]?.content).toEqual(data(JSON.parse(json)))
  })

  test('earlier bytes are not decoded or encoded again with each delta', () => {
    const [decode, encode] = [vi.spyOn(globalThis, 'atob'), vi.spyOn(globalThis, 'btoa')]
    const count = 5000
    let state = opened(media('audio/wav'))
    try {
      for (let n = 0; n < count; n += 1) state = appended(state, n, { type: 'media', bytes: 'AQIDBA==' }, n * 4)
      const handled = [...decode.mock.calls, ...encode.mock.calls].reduce((sum, [given]) => sum + given.length, 0)
      expect(handled).toBeLessThan(count * 20)
    } finally {
      decode.mockRestore()
      encode.mockRestore()
    }
    expect(messagesOf(state)[0]?.content).toEqual(media('audio/wav', btoa('\x01\x02\x03\x04'.repeat(count))))
  })
})

test('a delta to one of ten thousand messages keeps all other message objects and the list of turns', () => {
  let state: TaskState = applyEvent(emptyState, { type: 'turn.started', ...stamp, firstIndex: 0 }, '1-1')
  for (let index = 0; index < 10_000; index += 1) {
    state = applyEvent(state, { type: 'message.started', ...stamp, index, author: 'agent', content: text() }, formatCursor(2, index))
  }
  const event = { type: 'message.delta', ...stamp, index: 9000, delta: { type: 'text', text: 'a' }, offset: 0 } as const
  const after = applyEvent(state, event, '3-1')
  const before = Array.from(state.messages)
  expect(Array.from(after.messages).filter((accumulator, i) => accumulator !== before[i])).toHaveLength(1)
  expect(after.turns).toBe(state.turns)
})
