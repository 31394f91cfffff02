import { defaultLimits, type Message } from '@rivulet/protocol'
import { expect, test, vi } from 'vitest'
import type { Database } from '../../store/connection/database.ts'
import { TurnCompositions, type TurnCompositionsDeps } from './turn-compositions.ts'

const turn = { task: 'task', turn: 1, attempt: 1, firstIndex: 1 }

test('the turns used last are remembered, up to a number of bytes', () => {
  const compositions = open(2_500)
  const [one, two] = ['one', 'two'].map(id => compositions.open(id, 'claim', 1, longTurn))
  expect(compositions.open('one', 'claim', 1, longTurn)).toBe(one)
  compositions.open('three', 'claim', 1, longTurn)
  expect(compositions.open('one', 'claim', 1, longTurn)).toBe(one)
  expect(compositions.open('two', 'claim', 1, longTurn)).not.toBe(two)
})

test('a turn is forgotten under its own claim only, and a minute or two after its last call', () => {
  vi.useFakeTimers()
  try {
    const compositions = open(1_000_000)
    const first = compositions.open('one', 'claim', 1, turn)
    compositions.forget('one', 'another claim')
    expect(compositions.open('one', 'claim', 1, turn)).toBe(first)
    compositions.forget('one', 'claim')
    const second = compositions.open('one', 'claim', 1, turn)
    expect(second).not.toBe(first)
    vi.advanceTimersByTime(120_000)
    expect(vi.getTimerCount()).toBe(0)
    expect(compositions.open('one', 'claim', 1, turn)).not.toBe(second)
    vi.advanceTimersByTime(120_000)
  } finally {
    vi.useRealTimers()
  }
})

/** It kept a message of more than 1,000 bytes. */
const message: Message = {
  ...{ task: 'task', turn: 1, attempt: 1, index: 1, author: 'agent', status: 'complete', metadata: {} },
  ...{ content: { type: 'text', text: 'x'.repeat(1_000), format: 'plain' }, createdAt: '2026-01-01T00:00:00.000Z' },
}
const longTurn = { ...turn, kept: [message] }

/** Nothing is read or written here. */
function open(maxBytes: number): TurnCompositions {
  const unused = async () => Promise.reject(new Error('not expected'))
  const reader: TurnCompositionsDeps['reader'] = { state: unused, read: unused }
  return new TurnCompositions({ db: {} as Database, reader, writer: { appendAt: unused }, limits: defaultLimits, maxBytes })
}
