import { delta, done, full, start, text, toolRequest, toolResponse } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { queued, task, turnOf } from '../test/task-log.ts'
import { type Span, spansOf } from './spans.ts'

const completed = { status: 'completed', stopReason: 'stop' } as const
const parallel = [
  ...[full(0, 'Let me see.'), full(1, toolRequest('a', 'read')), full(2, toolRequest('b', 'list'))],
  ...[start(3, toolResponse('a', 'read')), start(4, toolResponse('b', 'list'))],
  ...[full(4, toolResponse('b', 'list', 'no', true)), full(3, toolResponse('a', 'read', 'ok'))],
]

describe('spans of a log', () => {
  test('pair requests and results by call id, for parallel calls and errors, the same each time', () => {
    const log = turnOf({ updates: parallel, end: completed })
    expect(spansOf(log).map(briefly)).toEqual(['turn 1 ok', 'text ok < turn-1-1', 'read ok < turn-1-1', 'list error < turn-1-1'])
    expect(spansOf(log)).toEqual(spansOf(structuredClone(log)))
  })

  test('belong to the given trace and the given parent span', () => {
    const spans = spansOf(turnOf({ updates: parallel, end: completed }), { traceId: 'trace', parentId: 'request' })
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set(['trace']))
    expect(spans.map(({ parentId }) => parentId)).toEqual(['request', ...Array.from({ length: 3 }, () => spans[0]?.id)])
    expect(spansOf(turnOf({}))[0]).toMatchObject({ traceId: task, parentId: null })
  })

  test('are closed as incomplete where the log leaves them open; a result without a call gives none', () => {
    const open = turnOf({ updates: [full(0, toolRequest('a', 'read')), full(1, toolResponse('other', 'x')), delta(2, 'half')] })
    expect(spansOf(open).map(briefly)).toEqual(['turn 1 incomplete', 'read incomplete < turn-1-1', 'text incomplete < turn-1-1'])
    const again = [...open, ...turnOf({ attempt: 2, updates: [delta(0, 'b'), done(0)], end: completed })]
    expect(spansOf(again).map(briefly).slice(3)).toEqual(['turn 1 ok', 'text ok < turn-1-2'])
    const canceled = turnOf({ updates: [start(0, text('half'))], end: { status: 'canceled', stopReason: 'aborted' } })
    expect(spansOf(canceled).map(({ status }) => status)).toEqual(['aborted', 'aborted'])
  })

  test('end with their turn at the latest, even for calls without a result', () => {
    const log = [
      ...turnOf({ updates: [full(0, toolRequest('a', 'read'))], end: completed }),
      queued(2),
      ...turnOf({ turnNumber: 2, firstIndex: 1 }),
    ]
    const [turn, call] = spansOf(log.map((event, i) => ({ ...event, at: i })))
    expect(call).toMatchObject({ name: 'read', status: 'incomplete', endedAt: turn?.endedAt })
  })

  test('take their times from the events', () => {
    const log = turnOf({ updates: [delta(0, 'a'), done(0)], end: completed }).map((event, i) => ({ ...event, at: 1_000 + i }))
    expect(spansOf(log).map(({ startedAt, endedAt }) => [startedAt, endedAt])).toEqual([
      [1_000, 1_004],
      [1_001, 1_003],
    ])
  })
})

function briefly({ name, status, parentId }: Span): string {
  return `${name} ${status}${parentId ? ` < ${parentId}` : ''}`
}
