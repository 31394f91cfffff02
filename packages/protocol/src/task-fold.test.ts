/** What a reader makes of a log, also of one that no composer would write. */
import { describe, expect, test } from 'vitest'
import { type Entry, fold, joined, logOf, messagesFrom, seenOf, stamp, statesOf, task } from '../test/logs.ts'
import { data, text } from './content.ts'
import type { Message } from './entities.ts'
import type { Event } from './event.ts'
import { applyEvent, closingEvents, emptyState, isSettled, messageAt, messagesOf, nextIndexOf, restoreState } from './task-fold.ts'

const started = (index: number, content = text(), of: Partial<typeof stamp> = {}): Event => ({
  type: 'message.started',
  ...stamp,
  ...of,
  index,
  author: 'agent',
  content,
})
const said = (index: number, piece: string, offset: number): Event => ({
  type: 'message.delta',
  ...stamp,
  index,
  delta: { type: 'text', text: piece },
  offset,
})
const replaced = (index: number, piece: string): Event => ({ type: 'message.replaced', ...stamp, index, content: text(piece) })
const finished = (index: number): Event => ({ type: 'message.finished', ...stamp, index, status: 'complete' })
const queued = (turn: number): Event => ({ type: 'turn.queued', ...stamp, turn, attempt: 0, input: text(`input ${turn}`) })
const ended = (turn: number, status: 'completed' | 'failed' | 'canceled' = 'completed'): Event => ({
  type: 'turn.finished',
  ...stamp,
  turn,
  status,
  stopReason: 'stop',
})

function begun(turn: number, firstIndex: number, attempt = 1, asks = false): Event {
  const input: Message = {
    ...stamped(turn, attempt),
    index: firstIndex - 1,
    author: 'user',
    content: text(`input ${turn}`),
    metadata: {},
    status: 'complete',
  }
  return { type: 'turn.started', ...stamp, turn, attempt, firstIndex, ...(asks && { input }) }
}

function stamped(turn: number, attempt: number) {
  return { task, turn, attempt, createdAt: '2024-01-01T00:00:00.000Z' }
}

function textsOf(...events: Event[]): string[] {
  return messagesFrom(events).map(({ content }) => (content.type === 'text' ? content.text : content.type))
}

describe('messages', () => {
  test('grow by their deltas, each index for itself', () => {
    const events = [started(0), started(1), said(0, 'a', 0), said(1, 'x', 0), said(0, 'b', 1), finished(1), said(0, 'c', 2)]
    expect(textsOf(...events)).toEqual(['abc', 'x'])
  })

  test.each([started(0), said(0, 'late', 1), said(0, 'late', 99), replaced(0, 'late'), finished(0)])(
    '$type at a closed index is passed over and counted, and no error',
    late => {
      for (const closing of [finished(0), replaced(0, 'a')]) {
        const before = fold(logOf([started(0), said(0, 'a', 0), closing]))
        const after = applyEvent(before, late, '2-1')
        expect(messagesOf(after)).toEqual(messagesOf(before))
        expect([after.discarded, after.cursor]).toEqual([1, '2-1'])
      }
    },
  )

  test.each([
    ['a second start', [started(0), said(0, 'a', 0), started(0)]],
    [
      'a delta that does not fit',
      [started(0), said(0, 'a', 0), { type: 'message.delta', ...stamp, index: 0, delta: { type: 'media', bytes: '' }, offset: 9 }],
    ],
    ['a delta at an index never started', [started(0), said(0, 'a', 0), said(1, 'b', 0)]],
    ['an end of an index never started', [started(0), said(0, 'a', 0), finished(1)]],
    ['a start beyond a hole', [started(0), said(0, 'a', 0), started(2)]],
    ['a full message beyond a hole', [started(0), said(0, 'a', 0), replaced(2, 'b')]],
  ] as [string, Event[]][])('%s is passed over and counted, and every other message is as it was', (_, events) => {
    expect(textsOf(...events)).toEqual(['a'])
    expect(fold(logOf(events)).discarded).toBe(1)
  })

  test.each([0, 2, 4])('a delta that begins at %i, where 3 are there, is refused: something was lost', offset => {
    const before = fold(logOf([started(0), said(0, 'abc', 0)]))
    expect(() => applyEvent(before, said(0, 'd', offset), '1-3')).toThrow(expect.objectContaining({ code: 'offset_mismatch' }))
    expect(messagesOf(applyEvent(before, said(0, 'd', 3), '1-3'))).toMatchObject([{ content: text('abcd') }])
  })

  test('a full message stands alone, and closes what was open', () => {
    expect(messagesFrom([replaced(0, 'a')])).toMatchObject([{ content: text('a'), status: 'complete', author: 'agent' }])
    expect(messagesFrom([started(0), said(0, 'draft', 0), replaced(0, 'a')])).toMatchObject([{ content: text('a'), status: 'complete' }])
  })

  test('notices change nothing but the cursor', () => {
    const before = fold(logOf([started(0), said(0, 'a', 0)]))
    const after = applyEvent(before, { type: 'custom', ...stamp, name: 'n', data: 1, index: 0 }, '1-9')
    expect(after).toEqual({ ...before, cursor: '1-9' })
    expect(after.messages).toBe(before.messages)
  })
})

describe('cursors', () => {
  const log = logOf([started(0), said(0, 'a', 0), said(0, 'b', 1)])

  test('what was applied is not applied again; the state is the very same', () => {
    const state = fold(log)
    expect(fold(log, state)).toBe(state)
    expect(applyEvent(state, said(0, 'z', 2), '1-3')).toBe(state)
  })

  test('are compared as numbers', () => {
    const state = fold(log, { ...emptyState, cursor: '0-9' })
    const [nine, ten]: Entry[] = [
      { cursor: '9-9', event: said(0, 'c', 2) },
      { cursor: '9-10', event: said(0, 'd', 3) },
    ]
    expect(messagesOf(fold([nine, ten] as Entry[], state))).toMatchObject([{ content: text('abcd') }])
    expect(applyEvent(fold([{ cursor: '10-1', event: finished(0) }], state), said(0, 'x', 2), '9-99').cursor).toBe('10-1')
  })
})

describe('turns', () => {
  test('the input takes the index before the first, as a complete message by the user', () => {
    const state = fold(logOf([queued(1), begun(1, 1, 1, true), started(1), said(1, 'answer', 0)]))
    expect(messagesOf(state)).toMatchObject([
      { index: 0, author: 'user', status: 'complete', content: text('input 1') },
      { index: 1, author: 'agent', status: 'streaming' },
    ])
    expect(state.turns).toMatchObject([{ number: 1, status: 'running', attempt: 1, firstIndex: 1, input: text('input 1') }])
  })

  test('a new attempt replaces what the earlier one wrote, and nothing before it', () => {
    const first = [begun(1, 0), started(0), said(0, 'kept', 0), finished(0), ended(1)]
    const second = [begun(2, 2, 1, true), started(2), said(2, 'wrong', 0), started(3), started(4)]
    const again = [begun(2, 2, 2, true), started(2), said(2, 'right', 0)]
    const state = fold(logOf([...first, ...second, ...again]))
    expect(textsOf(...first, ...second, ...again)).toEqual(['kept', 'input 2', 'right'])
    expect(state.turns).toMatchObject([{ number: 1 }, { number: 2, attempt: 2 }])
  })

  test('a turn keeps the time of its first start', () => {
    const state = fold(logOf([begun(1, 0), { ...begun(1, 0, 2), at: stamp.at + 5000 }]))
    expect(state.turns).toMatchObject([{ startedAt: '2023-11-14T22:13:20.000Z', attempt: 2 }])
  })

  test('a turn that never starts adds no message', () => {
    const state = fold(logOf([queued(1), ended(1, 'canceled')]))
    expect(messagesOf(state)).toEqual([])
    expect(state).toMatchObject({ status: 'canceled', turns: [{ number: 1, status: 'canceled', finishedAt: expect.any(String) }] })
  })

  test('queued a second time is queued once', () => {
    const events = [queued(1), begun(1, 1, 1, true)]
    expect(fold(logOf([...events, queued(1)])).turns).toEqual(fold(logOf(events)).turns)
  })

  test('waiting for a person and going on', () => {
    const waiting: Event = { type: 'turn.waiting', ...stamp, request: 'May I?' }
    const resumed: Event = { type: 'turn.resumed', ...stamp, response: true }
    const states = statesOf(logOf([begun(1, 0), waiting, resumed]))
    expect(states.map(({ status }) => status)).toEqual(['queued', 'running', 'waiting', 'running'])
    expect(states.at(2)?.turns).toMatchObject([{ status: 'waiting' }])
  })
})

describe('the status of a task', () => {
  const statusAfter = (...events: Event[]) => fold(logOf(events)).status

  test('follows its work, and starts again with new input', () => {
    const life = [queued(1), begun(1, 1, 1, true), ended(1), queued(2), begun(2, 2, 1, true), ended(2, 'failed')]
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

  test('is queued when one turn ends and the next waits, and running while one runs', () => {
    expect(statusAfter(queued(1), queued(2), begun(1, 1, 1, true))).toBe('running')
    expect(statusAfter(queued(1), begun(1, 1, 1, true), queued(2))).toBe('running')
    expect(statusAfter(queued(1), begun(1, 1, 1, true), queued(2), ended(1))).toBe('queued')
  })

  test('stays running when a queued turn ends before the one that runs', () => {
    expect(statusAfter(queued(1), begun(1, 1, 1, true), queued(2), ended(2, 'failed'))).toBe('running')
  })

  test('is settled when every turn has ended, and not before there is one', () => {
    expect(isSettled(emptyState)).toBe(false)
    expect(isSettled(fold(logOf([queued(1), queued(2), ended(1)])))).toBe(false)
    expect(isSettled(fold(logOf([queued(1), queued(2), ended(1), ended(2)])))).toBe(true)
  })
})

describe('beginning in the middle', () => {
  test('a fold that begins with a turn begins at its first index', () => {
    const state = fold(logOf([begun(5, 40, 1, true), started(40), said(40, 'a', 0)]))
    expect([state.messagesFrom, nextIndexOf(state)]).toEqual([39, 41])
    expect(messageAt(state, 40)?.content).toEqual(text('a'))
    expect(messageAt(state, 0)).toBeUndefined()
  })

  test('what is about a message before the beginning is passed over', () => {
    const state = fold(logOf([begun(5, 40), started(40), started(3), said(3, 'a', 0), replaced(39, 'b')]))
    expect([messagesOf(state).length, state.discarded]).toEqual([1, 3])
  })

  test('a turn that begins beyond what is known begins anew rather than with a hole', () => {
    const state = fold(logOf([begun(1, 0), started(0), begun(3, 9)]))
    expect([state.messagesFrom, messagesOf(state)]).toEqual([9, []])
    expect(messagesOf(fold([{ cursor: '2-1', event: started(9) }], state))).toMatchObject([{ index: 9 }])
  })

  test('a snapshot without messages still says where the next one goes', () => {
    const state = restoreState('4-2', { status: 'running', turns: [], messages: [], messagesFrom: 7 })
    expect(messagesOf(applyEvent(state, started(7), '4-3'))).toMatchObject([{ index: 7 }])
  })

  test('at every place of a log, within JSON and base64 too, a snapshot goes on like the fold', () => {
    const events: Event[] = [
      begun(1, 0),
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

test('what ends the open messages of a stopped turn comes in index order and folds to what it says', () => {
  const state = fold(logOf([begun(1, 0), started(0), started(1), finished(0), started(2)]))
  const closings = closingEvents(state, { ...stamp, status: 'aborted' })
  expect(closings).toMatchObject([1, 2].map(index => ({ index, status: 'aborted', stopReason: 'aborted' })))
  expect(messagesOf(fold(logOf(closings, 2), state)).map(({ status }) => status)).toEqual(['complete', 'aborted', 'aborted'])
})
