import type { Content, FoldedTurn, Message, Wait } from '@rivulet/client'
import { describe, expect, test } from 'vitest'
import { supersededBy } from './earlier/superseded.ts'
import { rowsOf } from './rows.ts'

const task = '01890000-0000-7000-8000-000000000001'

function message(index: number, content: Content, fields: Partial<Message> = {}): Message {
  const createdAt = '2026-01-01T00:00:00.000Z'
  return { task, index, turn: 1, attempt: 1, author: 'agent', content, metadata: {}, status: 'complete', createdAt, ...fields }
}

const text = (value: string): Content => ({ type: 'text', text: value, format: 'plain' })
const request = (callId: string): Content => ({ type: 'tool_request', callId, name: 'add', arguments: {} })
const response = (callId: string): Content => ({ type: 'tool_response', callId, name: 'add', content: 3, isError: false })
const turn = (number: number, fields: Partial<FoldedTurn> = {}): FoldedTurn => ({ number, status: 'running', attempt: 1, ...fields })

const whole = { isFromStart: true, isToEnd: true }
const shape = (rows: ReturnType<typeof rowsOf>) => rows.map(({ kind, key }) => `${kind} ${key}`)

describe('rows', () => {
  test('a call and its answer are one row, also when calls answer out of order', () => {
    const messages = [message(0, request('a')), message(1, request('b')), message(2, response('b')), message(3, response('a'))]
    const rows = rowsOf(messages, [turn(1)], whole)
    expect(shape(rows)).toEqual(['turn turn 1', 'tool 0', 'tool 1'])
    expect(rows.flatMap(row => (row.kind === 'tool' ? [row.response?.index] : []))).toEqual([3, 2])
  })

  test('a call of another turn is another call, and an answer without its call stands for itself', () => {
    const messages = [message(0, request('a')), message(1, response('a'), { turn: 2 })]
    expect(shape(rowsOf(messages, [turn(1, { status: 'completed' }), turn(2)], whole))).toEqual([
      ...['turn turn 1', 'tool 0', 'outcome outcome 1', 'turn turn 2', 'tool 1'],
    ])
  })

  test('turns that wait come last, and only at the end', () => {
    const messages = [message(0, text('hi'), { author: 'user' }), message(1, text('hello'))]
    const turns = [turn(1), turn(2, { status: 'queued', attempt: 0 }), turn(3, { status: 'queued', attempt: 0 })]
    expect(shape(rowsOf(messages, turns, whole)).slice(-2)).toEqual(['pending pending 2', 'pending pending 3'])
    expect(shape(rowsOf(messages, turns, { ...whole, isToEnd: false }))).toEqual(['turn turn 1', 'message 0', 'message 1'])
  })

  test('what earlier attempts said stands between the question and the answer', () => {
    const messages = [message(0, text('hi'), { author: 'user' }), message(1, text('hello'), { attempt: 2 })]
    const superseded = [{ turnNumber: 1, attempt: 1, messages: [message(1, text('hel'))] }]
    const answered = shape(rowsOf(messages, [turn(1, { attempt: 2 })], { ...whole, superseded }))
    expect(answered).toEqual(['turn turn 1', 'message 0', 'superseded superseded 1 1', 'attempts attempts 1', 'message 1'])
    const waiting = shape(rowsOf(messages.slice(0, 1), [turn(1, { attempt: 2 })], { ...whole, superseded }))
    expect(waiting).toEqual(['turn turn 1', 'message 0', 'superseded superseded 1 1', 'attempts attempts 1'])
  })

  test('a turn that never started shows its input, in its place', () => {
    const messages = [message(0, text('one'), { author: 'user' }), message(1, text('three'), { author: 'user', turn: 3 })]
    const never = (number: number) => turn(number, { status: 'canceled', attempt: 0, input: text('two') })
    const turns = [turn(1, { status: 'canceled', startedAt: '2026-01-01T00:00:00.000Z' }), never(2), turn(3), never(4)]
    expect(shape(rowsOf(messages, turns, whole))).toEqual([
      ...['turn turn 1', 'message 0', 'outcome outcome 1', 'unstarted unstarted 2', 'turn turn 3', 'message 1', 'unstarted unstarted 4'],
    ])
    expect(shape(rowsOf(messages.slice(1), turns, { isFromStart: false, isToEnd: false }))).toEqual(['turn turn 3', 'message 1'])
  })

  test('a turn that ended without a word still has an end', () => {
    expect(shape(rowsOf([], [turn(1, { status: 'canceled' })], whole))).toEqual(['outcome outcome 1'])
  })
})

describe('what another attempt makes void', () => {
  const before = [message(0, text('question'), { author: 'user' }), message(1, text('half')), message(2, text('an answer'))]

  test('is what the attempt before it said, without the question', () => {
    const gone = supersededBy(before, [turn(1, { attempt: 2 })], before.slice(0, 1))
    expect(gone).toEqual([{ turnNumber: 1, attempt: 1, messages: before.slice(1) }])
  })

  test('is nothing while the same attempt goes on, and nothing of earlier turns', () => {
    expect(supersededBy(before, [turn(1)], [...before])).toEqual([])
    const later = [...before, message(3, text('x'), { turn: 2 })]
    expect(supersededBy(later, [turn(1), turn(2, { attempt: 2 })], before)).toEqual([
      { turnNumber: 2, attempt: 1, messages: later.slice(3) },
    ])
  })

  test('a wait stands where it was asked: below its call, between messages, and last while it is open', () => {
    const at = (second: number) => ({ createdAt: `2026-01-01T00:00:0${second}.000Z` })
    const wait = (id: string, second: number, fields: Partial<Wait> = {}): Wait => ({
      ...{ id, task, turn: 1, agent: 'a', name: id, kind: 'approval', title: id, actions: ['accept'], metadata: {}, status: 'answered' },
      ...{ ...at(second), expiresAt: at(9).createdAt, ...fields },
    })
    const waits = [wait('call', 2, { callId: 'c' }), wait('plain', 4), wait('open', 1, { status: 'open' })]
    const messages = [message(0, request('c'), at(1)), message(1, response('c'), at(3)), message(2, text('then'), at(5))]
    const rows = ['tool 0', 'wait wait call', 'wait wait plain', 'message 2', 'wait wait open']
    expect(shape(rowsOf(messages, [turn(1, { status: 'waiting', waits })], whole)).slice(1)).toEqual(rows)
    const later = { isFromStart: false, isToEnd: false }
    expect(shape(rowsOf(messages.slice(2), [turn(1, { waits })], later)).slice(1)).toEqual(['message 2'])
    expect(shape(rowsOf([], [turn(1, { status: 'waiting', waits: [wait('open', 1, { status: 'open' })] })], whole))).toEqual([
      'wait wait open',
    ])
  })
})
