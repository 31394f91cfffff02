/** The fold of logs, including logs that no composer would write. */
import { describe, expect, test } from 'vitest'
import { type Entry, fold, joined, logOf, messagesFrom, seenOf, stamp, statesOf, task } from '../../test/logs.ts'
import { sampleWait } from '../../test/samples.ts'
import { data, text } from '../entities/content.ts'
import type { Message } from '../entities/entities.ts'
import type { Event } from '../events/event.ts'
import { applyEvent, closingEvents, emptyState, isSettled, messageAt, messagesOf, nextIndexOf, restoreState } from './task-fold.ts'

const started = (index: number, content = text(), of: Partial<typeof stamp> = {}): Event => ({
  type: 'message.started',
  ...stamp,
  ...of,
  index,
  author: 'agent',
  content,
})
const appended = (index: number, piece: string, offset: number): Event => ({
  type: 'message.delta',
  ...stamp,
  index,
  delta: { type: 'text', text: piece },
  offset,
})
const replaced = (index: number, piece: string): Event => ({ type: 'message.replaced', ...stamp, index, content: text(piece) })
const finished = (index: number): Event => ({ type: 'message.finished', ...stamp, index, status: 'complete' })
const queued = (turnNumber: number): Event => ({
  type: 'turn.queued',
  ...stamp,
  turn: turnNumber,
  attempt: 0,
  input: text(`input ${turnNumber}`),
})
const ended = (turnNumber: number, status: 'completed' | 'failed' | 'canceled' = 'completed'): Event => ({
  type: 'turn.finished',
  ...stamp,
  turn: turnNumber,
  status,
  stopReason: 'stop',
})

function turnStarted(turnNumber: number, firstIndex: number, attempt = 1, withInput = false): Event {
  const input: Message = {
    ...stamped(turnNumber, attempt),
    index: firstIndex - 1,
    author: 'user',
    content: text(`input ${turnNumber}`),
    metadata: {},
    status: 'complete',
  }
  return { type: 'turn.started', ...stamp, turn: turnNumber, attempt, firstIndex, ...(withInput && { input }) }
}

function stamped(turnNumber: number, attempt: number) {
  return { task, turn: turnNumber, attempt, createdAt: '2024-01-01T00:00:00.000Z' }
}

function textsOf(...events: Event[]): string[] {
  return messagesFrom(events).map(({ content }) => (content.type === 'text' ? content.text : content.type))
}

describe('messages', () => {
  test('grow by the deltas of their own index', () => {
    const events = [started(0), started(1), appended(0, 'a', 0), appended(1, 'x', 0), appended(0, 'b', 1), finished(1), appended(0, 'c', 2)]
    expect(textsOf(...events)).toEqual(['abc', 'x'])
  })

  test.each([started(0), appended(0, 'late', 1), appended(0, 'late', 99), replaced(0, 'late'), finished(0)])(
    '$type at a closed index is ignored and counted, without an error',
    late => {
      for (const closing of [finished(0), replaced(0, 'a')]) {
        const before = fold(logOf([started(0), appended(0, 'a', 0), closing]))
        const after = applyEvent(before, late, '2-1')
        expect(messagesOf(after)).toEqual(messagesOf(before))
        expect([after.discarded, after.cursor]).toEqual([1, '2-1'])
      }
    },
  )

  test.each([
    ['a second start', [started(0), appended(0, 'a', 0), started(0)]],
    [
      'a delta that does not fit',
      [started(0), appended(0, 'a', 0), { type: 'message.delta', ...stamp, index: 0, delta: { type: 'media', bytes: '' }, offset: 9 }],
    ],
    ['a delta at an index never started', [started(0), appended(0, 'a', 0), appended(1, 'b', 0)]],
    ['a close of an index never started', [started(0), appended(0, 'a', 0), finished(1)]],
    ['a start beyond a skipped index', [started(0), appended(0, 'a', 0), started(2)]],
    ['a full message beyond a skipped index', [started(0), appended(0, 'a', 0), replaced(2, 'b')]],
  ] as [string, Event[]][])('%s is ignored and counted, and no message changes', (_, events) => {
    expect(textsOf(...events)).toEqual(['a'])
    expect(fold(logOf(events)).discarded).toBe(1)
  })

  test.each([0, 2, 4])('a delta at offset %i of a message of length 3 throws, because an event was lost', offset => {
    const before = fold(logOf([started(0), appended(0, 'abc', 0)]))
    expect(() => applyEvent(before, appended(0, 'd', offset), '1-3')).toThrow(expect.objectContaining({ code: 'offset_mismatch' }))
    expect(messagesOf(applyEvent(before, appended(0, 'd', 3), '1-3'))).toMatchObject([{ content: text('abcd') }])
  })

  test('a full message needs no start, and closes an open message', () => {
    expect(messagesFrom([replaced(0, 'a')])).toMatchObject([{ content: text('a'), status: 'complete', author: 'agent' }])
    expect(messagesFrom([started(0), appended(0, 'draft', 0), replaced(0, 'a')])).toMatchObject([
      { content: text('a'), status: 'complete' },
    ])
  })

  test('custom events change only the cursor', () => {
    const before = fold(logOf([started(0), appended(0, 'a', 0)]))
    const after = applyEvent(before, { type: 'custom', ...stamp, name: 'n', data: 1, index: 0 }, '1-9')
    expect(after).toEqual({ ...before, cursor: '1-9' })
    expect(after.messages).toBe(before.messages)
  })
})

describe('cursors', () => {
  const log = logOf([started(0), appended(0, 'a', 0), appended(0, 'b', 1)])

  test('an event that was already applied returns the same state object', () => {
    const state = fold(log)
    expect(fold(log, state)).toBe(state)
    expect(applyEvent(state, appended(0, 'z', 2), '1-3')).toBe(state)
  })

  test('are compared as numbers', () => {
    const state = fold(log, { ...emptyState, cursor: '0-9' })
    const [nine, ten]: Entry[] = [
      { cursor: '9-9', event: appended(0, 'c', 2) },
      { cursor: '9-10', event: appended(0, 'd', 3) },
    ]
    expect(messagesOf(fold([nine, ten] as Entry[], state))).toMatchObject([{ content: text('abcd') }])
    expect(applyEvent(fold([{ cursor: '10-1', event: finished(0) }], state), appended(0, 'x', 2), '9-99').cursor).toBe('10-1')
  })
})

describe('turns', () => {
  test('the input is a complete message by the user, at the index before firstIndex', () => {
    const state = fold(logOf([queued(1), turnStarted(1, 1, 1, true), started(1), appended(1, 'answer', 0)]))
    expect(messagesOf(state)).toMatchObject([
      { index: 0, author: 'user', status: 'complete', content: text('input 1') },
      { index: 1, author: 'agent', status: 'streaming' },
    ])
    expect(state.turns).toMatchObject([{ number: 1, status: 'running', attempt: 1, firstIndex: 1, input: text('input 1') }])
  })

  test('a new attempt replaces the messages of the earlier attempt, and none before them', () => {
    const first = [turnStarted(1, 0), started(0), appended(0, 'kept', 0), finished(0), ended(1)]
    const second = [turnStarted(2, 2, 1, true), started(2), appended(2, 'wrong', 0), started(3), started(4)]
    const again = [turnStarted(2, 2, 2, true), started(2), appended(2, 'right', 0)]
    const state = fold(logOf([...first, ...second, ...again]))
    expect(textsOf(...first, ...second, ...again)).toEqual(['kept', 'input 2', 'right'])
    expect(state.turns).toMatchObject([{ number: 1 }, { number: 2, attempt: 2 }])
  })

  test('a turn keeps the time of its first start', () => {
    const state = fold(logOf([turnStarted(1, 0), { ...turnStarted(1, 0, 2), at: stamp.at + 5000 }]))
    expect(state.turns).toMatchObject([{ startedAt: '2023-11-14T22:13:20.000Z', attempt: 2 }])
  })

  test('a turn that never starts adds no message', () => {
    const state = fold(logOf([queued(1), ended(1, 'canceled')]))
    expect(messagesOf(state)).toEqual([])
    expect(state).toMatchObject({ status: 'canceled', turns: [{ number: 1, status: 'canceled', finishedAt: expect.any(String) }] })
  })

  test('a second turn.queued of the same turn changes nothing', () => {
    const events = [queued(1), turnStarted(1, 1, 1, true)]
    expect(fold(logOf([...events, queued(1)])).turns).toEqual(fold(logOf(events)).turns)
  })

  test('a turn can wait for a person and resume', () => {
    const answer = { action: 'accept', by: 'ada', at: sampleWait.createdAt } as const
    const waiting: Event = { type: 'turn.waiting', ...stamp, wait: sampleWait }
    const resumed: Event = { type: 'turn.resumed', ...stamp, wait: sampleWait.id, status: 'answered', answer }
    const states = statesOf(logOf([turnStarted(1, 0), waiting, resumed]))
    expect(states.map(({ status }) => status)).toEqual(['queued', 'running', 'waiting', 'running'])
    expect(states.at(2)?.turns).toMatchObject([{ status: 'waiting', waits: [sampleWait] }])
    expect(states.at(3)?.turns).toMatchObject([{ status: 'running', waits: [{ id: sampleWait.id, status: 'answered', answer }] }])
  })

  test('a turn that asked twice goes on when both waits are closed, and each is closed once', () => {
    const second = { ...sampleWait, id: sampleWait.id.replace('0192', '0193'), name: 'second' }
    const waits = (...events: Event[]) => fold(logOf([turnStarted(1, 0), ...events])).turns[0]
    const open = (wait: typeof sampleWait): Event => ({ type: 'turn.waiting', ...stamp, wait })
    const close = (wait: typeof sampleWait, status: 'expired' | 'canceled' = 'expired'): Event => ({
      ...{ type: 'turn.resumed', ...stamp, wait: wait.id, status },
    })
    const asked = [open(sampleWait), open(second), open(sampleWait)]
    expect(waits(...asked)?.waits).toEqual([sampleWait, second])
    expect(waits(...asked, close(second))).toMatchObject({ status: 'waiting', waits: [{ status: 'open' }, { status: 'expired' }] })
    expect(waits(...asked, close(second), close(sampleWait), close(second, 'canceled'))).toMatchObject({
      ...{ status: 'running', waits: [{ status: 'expired' }, { status: 'expired' }] },
    })
    expect(waits(...asked, ended(1), open(second))?.status).toBe('completed')
  })
})

describe('the status of a task', () => {
  const statusAfter = (...events: Event[]) => fold(logOf(events)).status

  test('follows its turns, and starts again with new input', () => {
    const life = [queued(1), turnStarted(1, 1, 1, true), ended(1), queued(2), turnStarted(2, 2, 1, true), ended(2, 'failed')]
    expect(statesOf(logOf(life)).map(({ status }) => status)).toEqual([
      'queued',
      'queued',
      'running',
      'completed',
      'queued',
      'running',
      'failed',
    ])
  })

  test('is queued when one turn ends and the next is queued, and running while a turn runs', () => {
    expect(statusAfter(queued(1), queued(2), turnStarted(1, 1, 1, true))).toBe('running')
    expect(statusAfter(queued(1), turnStarted(1, 1, 1, true), queued(2))).toBe('running')
    expect(statusAfter(queued(1), turnStarted(1, 1, 1, true), queued(2), ended(1))).toBe('queued')
  })

  test('stays running when a queued turn ends before the running one', () => {
    expect(statusAfter(queued(1), turnStarted(1, 1, 1, true), queued(2), ended(2, 'failed'))).toBe('running')
  })

  test('is settled when there is a turn and every turn has ended', () => {
    expect(isSettled(emptyState)).toBe(false)
    expect(isSettled(fold(logOf([queued(1), queued(2), ended(1)])))).toBe(false)
    expect(isSettled(fold(logOf([queued(1), queued(2), ended(1), ended(2)])))).toBe(true)
  })
})

describe('starting in the middle of a log', () => {
  test('a fold that starts with a turn starts at its first index', () => {
    const state = fold(logOf([turnStarted(5, 40, 1, true), started(40), appended(40, 'a', 0)]))
    expect([state.messagesFrom, nextIndexOf(state)]).toEqual([39, 41])
    expect(messageAt(state, 40)?.content).toEqual(text('a'))
    expect(messageAt(state, 0)).toBeUndefined()
  })

  test('an event about an earlier message is ignored', () => {
    const state = fold(logOf([turnStarted(5, 40), started(40), started(3), appended(3, 'a', 0), replaced(39, 'b')]))
    expect([messagesOf(state).length, state.discarded]).toEqual([1, 3])
  })

  test('a turn that begins after a gap in the messages restarts the list instead of leaving a gap', () => {
    const state = fold(logOf([turnStarted(1, 0), started(0), turnStarted(3, 9)]))
    expect([state.messagesFrom, messagesOf(state)]).toEqual([9, []])
    expect(messagesOf(fold([{ cursor: '2-1', event: started(9) }], state))).toMatchObject([{ index: 9 }])
  })

  test('a snapshot without messages still gives the index of the next message', () => {
    const state = restoreState('4-2', { status: 'running', turns: [], messages: [], messagesFrom: 7 })
    expect(messagesOf(applyEvent(state, started(7), '4-3'))).toMatchObject([{ index: 7 }])
  })

  test('what a snapshot leaves out of a turn is no longer missing when the log tells it', () => {
    const turns = [{ number: 2, status: 'queued' as const, attempt: 0, omitted: ['input', 'params'] }]
    const before = restoreState('1-1', { status: 'queued', turns, messages: [], messagesFrom: 4 })
    const after = applyEvent(before, turnStarted(2, 5, 1, true), '2-1')
    expect(after.turns).toMatchObject([{ number: 2, status: 'running', input: text('input 2'), omitted: ['params'] }])
    const end = applyEvent(
      { ...before, turns: [{ number: 2, status: 'queued', attempt: 0, omitted: ['input'] }] },
      turnStarted(2, 5, 1, true),
      '2-1',
    )
    expect(end.turns[0]).not.toHaveProperty('omitted')
  })

  test('at every place of a log, within JSON and base64 too, a snapshot goes on like the fold', () => {
    const events: Event[] = [
      turnStarted(1, 0),
      started(0),
      { ...started(1), content: data() } as Event,
      { ...started(2), content: { type: 'media', mimeType: 'image/png' } } as Event,
    ]
    const json = '{"name":"Ann","tags":["a😀"]}'
    for (let i = 0; i < json.length; i += 1) {
      events.push({ type: 'message.delta', ...stamp, index: 1, delta: { type: 'data_json', text: json.charAt(i) }, offset: i })
      events.push({ type: 'message.delta', ...stamp, index: 2, delta: { type: 'media', bytes: btoa(String.fromCharCode(i)) }, offset: i })
    }
    events.push(finished(0), finished(1), finished(2), ended(1))
    const log = logOf(events)
    const states = statesOf(log)
    for (const [i, state] of states.entries()) expect(seenOf(fold(log.slice(i), joined(state)))).toBe(seenOf(fold(log)))
    expect(messagesOf(fold(log))[1]?.content).toEqual(data({ name: 'Ann', tags: ['a😀'] }))
  })
})

test('closingEvents closes the open messages of a stopped turn, in index order', () => {
  const state = fold(logOf([turnStarted(1, 0), started(0), started(1), finished(0), started(2)]))
  const closings = closingEvents(state, { ...stamp, status: 'aborted' })
  expect(closings).toMatchObject([1, 2].map(index => ({ index, status: 'aborted', stopReason: 'aborted' })))
  expect(messagesOf(fold(logOf(closings, 2), state)).map(({ status }) => status)).toEqual(['complete', 'aborted', 'aborted'])
})
