import { describe, expect, test } from 'vitest'
import { firstTurn, stamp, task } from '../../test/logs.ts'
import { everyContent, everyDelta, sampleWait } from '../../test/samples.ts'
import { createTurnComposer } from '../fold/turn-composer.ts'
import { type Event, eventSchema, parseEvent, wireEventSchema } from './event.ts'

const input = createTurnComposer(firstTurn)
input.compose({ type: 'full', index: 0, content: { type: 'text', text: 'hi', format: 'plain' } })
const [message] = input.messages()

const events: Event[] = [
  { type: 'turn.queued', ...stamp, input: { type: 'text', text: 'hi', format: 'plain' } },
  { type: 'turn.started', ...stamp, firstIndex: 1, ...(message && { input: message }) },
  ...everyContent.map(content => ({ type: 'message.started', ...stamp, index: 0, author: 'agent', content, metadata: { a: 1 } }) as const),
  ...everyDelta.map(delta => ({ type: 'message.delta', ...stamp, index: 0, delta, offset: 0 }) as const),
  ...everyContent.map(content => ({ type: 'message.replaced', ...stamp, index: 0, content }) as const),
  {
    type: 'message.finished',
    ...stamp,
    index: 0,
    status: 'failed',
    stopReason: 'error',
    usage: { outputTokens: 1 },
    error: { code: 'x', message: 'y' },
  },
  { type: 'turn.waiting', ...stamp, wait: sampleWait },
  { type: 'turn.discarded', ...stamp, from: 1 },
  { type: 'turn.joined', ...stamp, into: 1, index: 4 },
  { type: 'turn.resumed', ...stamp, wait: sampleWait.id, status: 'answered', answer: { action: 'accept', at: sampleWait.createdAt } },
  { type: 'state.changed', ...stamp, version: 1, value: { a: 1 } },
  { type: 'state.changed', ...stamp, version: 2, patch: { a: null } },
  { type: 'child.started', ...stamp, child: sampleWait.task, name: 'scout', callId: 'call-1' },
  { type: 'child.finished', ...stamp, child: sampleWait.task, status: 'completed' },
  { type: 'turn.finished', ...stamp, status: 'completed', stopReason: 'stop' },
  { type: 'custom', ...stamp, name: 'progress', data: 0.5, index: 0 },
]

test('every event is the same after a trip through JSON', () => {
  for (const event of events) expect(parseEvent(JSON.parse(JSON.stringify(event)))).toEqual(event)
  expect(new Set(events.map(event => event.type)).size).toBe(eventSchema.options.length)
})

describe('a reader of version 1 and a writer of a later one', () => {
  test('unknown fields are ignored, nested ones too', () => {
    const later = { type: 'message.delta', ...stamp, index: 0, delta: { type: 'text', text: 'a', lang: 'en' }, offset: 0, model: 'x' }
    expect(parseEvent(later)).toEqual({ type: 'message.delta', ...stamp, index: 0, delta: { type: 'text', text: 'a' }, offset: 0 })
  })

  test.each([
    ['an event type', { type: 'message.liked', ...stamp, index: 0 }],
    ['a content type', { type: 'message.started', ...stamp, index: 0, author: 'agent', content: { type: 'poem', verses: [] } }],
    ['a delta type', { type: 'message.delta', ...stamp, index: 0, delta: { type: 'verse', text: 'a' }, offset: 0 }],
    ['a missing field', { type: 'message.delta', ...stamp, index: 0, delta: { type: 'text', text: 'a' } }],
    ['something else', 'message.delta'],
    ['nothing', null],
  ])('%s that the reader does not know is ignored without an error', (_, value) => {
    expect(parseEvent(value)).toBeNull()
  })
})

test('a turn.started whose firstIndex is not the index after its input is not an event', () => {
  const start = events.find(event => event.type === 'turn.started')
  expect(parseEvent(start)).not.toBeNull()
  for (const firstIndex of [0, 2, 9]) expect(parseEvent({ ...start, firstIndex })).toBeNull()
})

test('the fast check of plain deltas agrees with the schema', () => {
  const plain = { type: 'message.delta', ...stamp, index: 0, delta: { type: 'text', text: 'a' }, offset: 0 }
  const odd = [
    undefined,
    null,
    -1,
    -0,
    0,
    0.5,
    1,
    2 ** 53,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '1',
    '',
    {},
    [],
    'text',
    plain.task,
    plain.task.toUpperCase(),
  ]
  const changed = Object.keys(plain).flatMap(field => odd.map(value => ({ ...plain, [field]: value })))
  const deltas = [
    ...odd,
    ...odd.flatMap(value => [
      { type: value, text: 'a' },
      { type: 'text', text: value },
    ]),
  ]
  const values = [plain, { ...plain, more: 1 }, ...changed, ...deltas.map(delta => ({ ...plain, delta }))]
  for (const value of values) {
    const { success, data } = eventSchema.safeParse(value)
    expect([value, parseEvent(value)]).toEqual([value, success ? data : null])
  }
  expect(values.filter(value => parseEvent(value) === value).length).toBeGreaterThan(5)
})

test('events that are only sent in streams are not events of the log', () => {
  const wire = [
    { type: 'caught_up', task },
    { type: 'end', task, status: 'completed' },
  ]
  for (const event of wire) {
    expect(wireEventSchema.safeParse(event).success).toBe(true)
    expect(parseEvent(event)).toBeNull()
  }
})
