import type { Attempt, FoldedTurn, Message, Step } from '@rivulet/client'
import { expect, test } from 'vitest'
import type { Entry } from '../event-log.ts'
import { placeIn, ticksIn, zoomed } from './scale.ts'
import type { Span } from './span.ts'
import { cursorOf } from './span-event.ts'
import { rangeOf, spansOf } from './spans.ts'

const at = (ms: number) => new Date(ms).toISOString()
const turn = {
  number: 1,
  status: 'completed',
  attempt: 1,
  queuedAt: at(0),
  startedAt: at(100),
  finishedAt: at(1_000),
  cost: 0.02,
} as FoldedTurn
const message = (index: number, content: object, from: number, to: number | null, more: object = {}) =>
  ({
    ...{ index, turn: 1, attempt: 1, author: 'agent', status: to === null ? 'streaming' : 'complete', content, createdAt: at(from) },
    ...(to !== null && { finishedAt: at(to) }),
    ...more,
  }) as unknown as Message

const inShort = (spans: readonly Span[]) =>
  spans.map(({ kind, label, depth, from, to, outcome }) => [kind, label, depth, from, to, outcome])

test('a turn has its queue, the response of a model from where it was waited for, and a tool as one row', () => {
  const messages = [
    message(0, { type: 'text', text: 'a question' }, 100, 100, { author: 'user' }),
    message(1, { type: 'reasoning', summary: [], content: [] }, 300, 400),
    message(2, { type: 'tool_request', callId: 'c', name: 'look', arguments: { q: 1 } }, 400, 450, {
      usage: { inputTokens: 10, outputTokens: 2 },
      response: { model: 'm-1' },
    }),
    message(3, { type: 'tool_response', callId: 'c', name: 'look', content: 'nothing', isError: true }, 500, 700),
    message(4, { type: 'text', text: 'an answer' }, 800, 990),
  ]
  const turns = [{ ...turn, usage: { inputTokens: 10, outputTokens: 2 } } as FoldedTurn]
  const spans = spansOf({ turns, messages })
  expect(inShort(spans)).toEqual([
    ['turn', 'turn 1', 0, 0, 1_000, 'good'],
    ['queue', 'queue', 1, 0, 100, 'good'],
    ['model', 'm-1', 1, 100, 450, 'good'],
    ['tool', 'look', 1, 400, 700, 'bad'],
    ['message', 'text', 1, 800, 990, 'good'],
  ])
  const [whole, , model, tool] = spans
  expect(whole).toMatchObject({ cost: 0.02, input: [{ text: 'a question' }], output: [{ text: 'an answer' }] })
  expect(model).toMatchObject({ begins: 300, tokens: 12, cost: 0.02, model: 'm-1', input: [{ text: 'a question' }], message: 1 })
  expect(tool).toMatchObject({ begins: 500, input: [{ data: { q: 1 } }], output: [{ text: 'nothing' }], error: { code: 'tool_error' } })
})

test('a response does not have the cost of what the turn used beside it', () => {
  const usage = { inputTokens: 10, outputTokens: 2 }
  const messages = [message(0, { type: 'text', text: 'an answer' }, 200, 900, { usage })]
  const turns = [{ ...turn, usage: { inputTokens: 4_010, outputTokens: 2 } } as FoldedTurn]
  expect(spansOf({ turns, messages }).find(({ kind }) => kind === 'model')).toMatchObject({ tokens: 12, cost: null })
})

test('attempts have the back-off between them, with the messages and the tokens of each', () => {
  const attempts = [
    {
      ...{ attempt: 1, status: 'failed', startedAt: at(100), finishedAt: at(200), error: { code: 'agent_error', message: 'no luck' } },
      usage: { totalTokens: 500 },
      messages: [message(0, { type: 'text', text: 'first' }, 120, 190)],
    },
    { attempt: 2, status: 'running', startedAt: at(500) },
  ] as Attempt[]
  const used = { usage: { totalTokens: 1_990 }, usageTotal: { totalTokens: 2_490 } }
  const turns = [{ ...turn, ...used, status: 'running', attempt: 2, finishedAt: undefined } as unknown as FoldedTurn]
  const messages = [message(0, { type: 'text', text: 'second' }, 600, null, { attempt: 2 })]
  const steps = [{ turn: 1, name: 'plan', startedAt: at(510), finishedAt: at(550) }] as Step[]
  const spans = spansOf({ turns, messages, steps, attempts: new Map([[1, attempts]]) })
  expect(inShort(spans)).toEqual([
    ['turn', 'turn 1', 0, 0, null, 'open'],
    ['queue', 'queue', 1, 0, 100, 'good'],
    ['attempt', 'attempt 1', 1, 100, 200, 'bad'],
    ['message', 'text', 2, 120, 190, 'good'],
    ['back-off', 'back-off before attempt 2', 1, 200, 500, 'good'],
    ['attempt', 'attempt 2', 1, 500, null, 'open'],
    ['step', 'plan', 2, 510, 550, 'good'],
    ['message', 'text', 2, 600, null, 'open'],
  ])
  expect(spans.flatMap(({ kind, tokens }) => (['turn', 'attempt'].includes(kind) ? [tokens] : []))).toEqual([2_490, 500, 1_990])
  // The transcript has other messages at the indexes of an earlier attempt.
  expect(spans.flatMap(({ label, isEarlier }) => (isEarlier ? [label] : []))).toEqual(['attempt 1', 'text'])
  expect(rangeOf(spans, 900)).toEqual({ from: 0, to: 900 })
})

test('waits and children are as long as they are waited for, and a child that a tool called is that tool', () => {
  const wait = { task: 't', turn: 1, agent: 'a', kind: 'approval', status: 'answered', createdAt: at(200), expiresAt: at(9_000) }
  const waits = [
    { ...wait, id: 'w1', name: 'go', title: 'Go on?', answer: { action: 'decline', at: at(300) } },
    {
      ...wait,
      id: 'w2',
      name: 'helper',
      title: '',
      kind: 'task',
      child: 'x',
      callId: 'c',
      answer: { action: 'accept', content: 7, at: at(600) },
    },
  ]
  const messages = [message(1, { type: 'tool_request', callId: 'c', name: 'ask_helper', arguments: {} }, 150, 190)]
  const spans = spansOf({ turns: [{ ...turn, waits } as unknown as FoldedTurn], messages })
  expect(inShort(spans).slice(2)).toEqual([
    ['wait', 'Go on?', 1, 200, 300, 'stopped'],
    ['child', 'child helper', 1, 200, 600, 'good'],
  ])
  expect(spans.at(-1)).toMatchObject({ child: 'x', output: [{ data: 7 }] })
})

test('nothing has no spans', () => {
  expect(spansOf({ turns: [], messages: [] })).toEqual([])
  expect(rangeOf([], 5)).toEqual({ from: 0, to: 1 })
})

test('a span leads to the event that began it, while the log has it', () => {
  const event = (type: string, cursor: string, more: object = {}) =>
    ({ event: { type, cursor, turn: 1, attempt: 1, task: 't', at: 0, ...more } }) as Entry
  const entries = [event('turn.queued', '1-1'), event('turn.started', '1-2'), event('message.started', '1-3', { index: 4 })]
  const [whole] = spansOf({ turns: [turn], messages: [] }) as [Span]
  expect(cursorOf(whole, entries)).toBe('1-1')
  expect(cursorOf({ ...whole, kind: 'message', attempt: 1, message: 4 }, entries)).toBe('1-3')
  expect(cursorOf({ ...whole, kind: 'step' }, entries)).toBeNull()
  // The log has the events of the page's own task.
  expect(cursorOf({ ...whole, task: 'x' }, entries)).toBeNull()
})

test('the axis has round moments, and a zoom stays within the whole', () => {
  expect(ticksIn({ from: 1_000, to: 3_400 }, 1_000)).toEqual([1_000, 1_500, 2_000, 2_500, 3_000])
  expect(ticksIn({ from: 1_450, to: 1_700 }, 1_000)).toEqual([1_450, 1_500, 1_550, 1_600, 1_650, 1_700])
  expect(placeIn({ from: 0, to: 200 }, 50)).toBe(25)
  const whole = { from: 0, to: 100 }
  expect(zoomed(whole, whole, 0.5)).toEqual({ from: 25, to: 75 })
  expect(zoomed({ from: 25, to: 75 }, whole, 2)).toBeNull()
  expect(zoomed({ from: 0, to: 50 }, whole, 1.5)).toEqual({ from: 0, to: 62.5 })
})
