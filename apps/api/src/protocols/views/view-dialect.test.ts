import { createTurnComposer, delta, type Event } from '@rivulet/protocol'
import { createStreamEvents } from '@rivulet/views/mini-claw-code'
import { expect, test } from 'vitest'
import { replay, snapshotOf, task } from '../../../../../test/support/logs/log-entries.ts'
import { viewDialect } from './view-dialect.ts'

const dialect = viewDialect('mini-claw-code', createStreamEvents)
type Opened = Awaited<ReturnType<typeof dialect.open>>

test('a turn is named before its chunks, and again for a new attempt', async () => {
  const stream = await dialect.open({ task })
  const first = attempt({ turnNumber: 1, attempt: 1, words: 'Wrong' })
  expect(textOf(stream, [...first, ...attempt({ turnNumber: 1, attempt: 2, words: 'Right' })])).toBe(
    [
      `event: turn\ndata: {"task":"${task}","turn":1,"attempt":1}\nid: 1-1`,
      'data: {"type":"TextDelta","text":"Wrong"}\nid: 1-3',
      `event: turn\ndata: {"task":"${task}","turn":1,"attempt":2}\nid: 1-4`,
      'data: {"type":"TextDelta","text":"Right"}\nid: 1-6',
      '',
    ].join('\n\n'),
  )
})

test('only the last chunk of an event has a bare cursor', async () => {
  const stream = await dialect.open({ task })
  const events = [...attempt({ turnNumber: 1, attempt: 1, words: 'So' }), finished(1)].map((event, at) => ({
    cursor: `1-${at + 1}` as const,
    event,
  }))
  const chunks = stream.take('1-4', snapshotOf(events, 'join'))
  const ids = chunks.map((chunk, at) => /^id: (.*)/m.exec(dialect.encode(chunk, '1-4', at === chunks.length - 1))?.[1])
  expect(ids).toEqual(['1-4+', '1-4+', '1-4'])
})

test('a gap in the second turn does not repeat the first', async () => {
  const events = [
    ...attempt({ turnNumber: 1, attempt: 1, words: 'one' }),
    ...closed(0),
    finished(1),
    ...attempt({ turnNumber: 2, attempt: 1, words: 'two' }),
  ]
  const log = events.map((event, at) => ({ cursor: `1-${at + 1}` as const, event }))
  const stream = await dialect.open({ task, received: replay(log.slice(0, 6)) })
  const chunks = stream.take('1-9', snapshotOf(log, 'slow'))
  expect(chunks.map(({ data }) => data)).toEqual([
    { task, turn: 2, attempt: 1 },
    { type: 'TextDelta', text: 'two' },
  ])
})

test('a fresh token and the end have names, and the end is the end', async () => {
  const stream = await dialect.open({ task })
  expect(stream.take('1-1', { type: 'caught_up', task })).toEqual([])
  const token = { type: 'token', task, token: 't', expiresAt: '2026-01-01T00:00:00.000Z' } as const
  expect(stream.take('1-1', token)).toEqual([{ name: 'token', data: token }])
  expect(stream.hasEnded()).toBe(false)
  const end = { type: 'end', task, status: 'completed' } as const
  expect(stream.take('1-1', end)).toEqual([{ name: 'end', data: end }])
  expect(stream.hasEnded()).toBe(true)
})

function textOf(stream: Opened, events: Event[]): string {
  return events
    .flatMap((event, at) => {
      const cursor = `1-${at + 1}` as const
      const chunks = stream.take(cursor, event)
      return chunks.map((chunk, place) => dialect.encode(chunk, cursor, place === chunks.length - 1))
    })
    .join('')
}

/** An attempt that has emitted a part of a text. */
function attempt({ turnNumber, attempt: number, words }: { turnNumber: number; attempt: number; words: string }): Event[] {
  const stamp = { task, turn: turnNumber, attempt: number, firstIndex: turnNumber - 1 }
  const composer = createTurnComposer(stamp, { now: () => 1 })
  return [{ type: 'turn.started', ...stamp, at: 1 }, ...composer.compose(delta(0, words))]
}

function closed(index: number): Event[] {
  return [{ type: 'message.finished', task, turn: 1, attempt: 1, at: 1, index, status: 'complete' }]
}

function finished(turnNumber: number): Event {
  return { type: 'turn.finished', task, turn: turnNumber, attempt: 1, at: 1, status: 'completed', stopReason: 'stop' }
}
