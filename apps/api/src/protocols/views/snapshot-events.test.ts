import { type Message, reasoning, type Snapshot, type Turn, text, toolRequest, toolResponse } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { snapshotEvents } from './snapshot-events.ts'

const task = '0198c0de-0000-7000-8000-000000000001'
const at = '2026-01-01T00:00:00.000Z'
const nothing = { begun: new Set<number>(), finished: new Set<number>() }

const ended = { status: 'completed', stopReason: 'stop', startedAt: at, finishedAt: at } as const
const running = { status: 'running', startedAt: at } as const

test('each turn starts with its input, has its messages, and finishes if it has ended', () => {
  const turns = [turn(1, ended), turn(2, running), turn(3, { status: 'queued' })]
  const messages = [
    message(0, 1, { author: 'user' }),
    message(1, 1),
    message(2, 2, { author: 'user' }),
    message(3, 2, { status: 'streaming' }),
  ]
  expect(typesOf(snapshot({ turns, messages }))).toEqual([
    ...['1 turn.started', '1 message.started', '1 message.delta', '1 message.finished', '1 turn.finished'],
    ...['2 turn.started', '2 message.started', '2 message.delta', '3 turn.queued'],
  ])
  const started = snapshotEvents(snapshot({ turns, messages }), nothing).flatMap(event => (event.type === 'turn.started' ? [event] : []))
  expect(started.map(({ firstIndex, input }) => [firstIndex, input?.index])).toEqual([
    [1, 0],
    [3, 2],
  ])
})

test('a turn without a message begins where the next message comes', () => {
  const turns = [turn(1, { ...ended, status: 'failed' }), turn(2, running)]
  const events = snapshotEvents(snapshot({ turns, messagesFrom: 7 }), nothing)
  expect(events).toMatchObject([{ type: 'turn.started', turn: 2, firstIndex: 7 }])
})

test('ended turns whose messages are left out are left out, but not the end of a turn that the client has begun', () => {
  const turns = [turn(1, ended), turn(2, ended), turn(3, running)]
  const messages = [message(9, 3)]
  expect(typesOf(snapshot({ turns, messages }))).toEqual(['3 turn.started', '3 message.started', '3 message.delta', '3 message.finished'])
  const known = { begun: new Set([1, 2]), finished: new Set([1]) }
  expect(typesOf(snapshot({ turns, messages }), known).slice(0, 2)).toEqual(['2 turn.started', '2 turn.finished'])
})

test('a turn that ended before it started was queued, and has ended', () => {
  expect(typesOf(snapshot({ turns: [turn(1, { status: 'canceled', finishedAt: at })] }))).toEqual(['1 turn.queued', '1 turn.finished'])
})

test.each([
  [text(''), 0],
  [text('a', 'markdown'), 1],
  [reasoning(['a', 'b'], ['c']), 3],
  [toolRequest('c', 'f', { a: 1 }), 0],
  [{ ...toolRequest('c', 'f'), raw: '{"a"' }, 1],
  [toolResponse('c', 'f', 'a'), 1],
  [toolResponse('c', 'f', { a: 1 }), 0],
])('a message starts empty and grows to %o', (content, deltas) => {
  const events = snapshotEvents(
    snapshot({ turns: [turn(1, running)], messages: [message(0, 1, { content, status: 'streaming' })] }),
    nothing,
  )
  expect(events.filter(({ type }) => type === 'message.delta')).toHaveLength(deltas)
})

function typesOf(given: Snapshot, known = nothing): string[] {
  return snapshotEvents(given, known).map(({ type, turn: number }) => `${number} ${type}`)
}

function snapshot(fields: Partial<Snapshot>): Snapshot {
  const about = { id: task, agent: 'a', status: 'running', params: null, metadata: {}, createdAt: at, updatedAt: at } as const
  return {
    type: 'snapshot',
    reason: 'join',
    task: about,
    turns: [],
    messages: [],
    messagesFrom: fields.messages?.[0]?.index ?? 0,
    ...fields,
  }
}

function turn(number: number, fields: Partial<Turn>): Turn {
  return { id: task, task, number, status: 'running', attempt: 1, queuedAt: at, ...fields }
}

function message(index: number, number: number, fields: Partial<Message> = {}): Message {
  const stamp = { task, index, turn: number, attempt: 1, createdAt: at, metadata: {} }
  return { ...stamp, author: 'agent', content: text('a'), status: 'complete', ...fields }
}
