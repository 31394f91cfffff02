import { messagesOf } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { type Entry, snapshotOf, turnLog } from '../../test/sample-task.ts'
import { hear, nowhere, type Place, placeAfter, withoutEnded } from './stream-place.ts'

const log = turnLog(1, [['one ', 'two ', 'three'], ['four']])
const frameOf = ({ cursor, event }: { cursor: string; event: object }) => ({ id: cursor, data: JSON.stringify(event) })

function hearAll(place: Place, entries: readonly { cursor: string; event: object }[]): Place {
  return entries.reduce((before, entry) => hear(before, frameOf(entry)).place, place)
}

function textsOf({ state }: Place): string[] {
  return messagesOf(state).map(({ content }) => (content.type === 'text' ? content.text : ''))
}

describe('a reader', () => {
  test('folds what it hears, and is handed each event with its cursor', () => {
    const place = hearAll(nowhere, log)
    expect(textsOf(place)).toEqual(['one two three', 'four'])
    expect(place.cursor).toBe(log.at(-1)?.cursor)
    expect(hear(nowhere, frameOf(log[0] as Entry)).event).toEqual({ ...log[0]?.event, cursor: log[0]?.cursor })
  })

  test('drops what it has heard before', () => {
    const place = hearAll(nowhere, log.slice(0, 6))
    for (const entry of log.slice(0, 6)) expect(hear(place, frameOf(entry))).toEqual({ place, event: null })
  })

  test('passes over what this version does not know, and remembers having heard it', () => {
    const place = hearAll(nowhere, log.slice(0, 4))
    const { event, place: after } = hear(place, { id: '11-5', data: '{"type":"turn.moved"}' })
    expect(event).toBeNull()
    expect(after).toEqual({ ...place, cursor: '11-5' })
  })

  test('begins anew with a snapshot, also one that stands further back, and goes on in the middle of a message', () => {
    const place = hearAll(nowhere, log)
    const earlier = snapshotOf(log.slice(0, 5), 'gap')
    const restored = hear(place, frameOf(earlier)).place
    expect(restored.cursor).toBe(log[4]?.cursor)
    expect(textsOf(restored)).toEqual(['one two '])
    expect(textsOf(hearAll(restored, log))).toEqual(['one two three', 'four'])
  })

  test('keeps the objects of messages that a snapshot does not change', () => {
    const place = hearAll(nowhere, log.slice(0, 9))
    const restored = hear(place, frameOf(snapshotOf(log, 'slow'))).place
    const [before, after] = [messagesOf(place.state), messagesOf(restored.state)]
    expect(after[0]).toBe(before[0])
    expect(after[1]).not.toBe(before[1])
    expect(after[1]?.status).toBe('complete')
  })

  test('the end and having caught up do not take it back', () => {
    const place = hearAll(nowhere, log)
    const { place: after, event } = hear(place, frameOf({ cursor: '1-1', event: { type: 'caught_up', task: log[0]?.event.task } }))
    expect(event?.type).toBe('caught_up')
    expect(after.cursor).toBe(place.cursor)
  })
})

describe('a loss is noticed', () => {
  const lost = expect.objectContaining({ code: 'offset_mismatch' })
  const without = (...places: number[]) => log.filter((_, place) => !places.includes(place))

  test.each([
    ['a delta', without(4)],
    ['the first delta', without(3)],
    ['the beginning of a message', without(2)],
    ['the beginning of the second message', without(7)],
    ['the last delta of a message', without(5)],
    ['the end of a message', without(9)],
    ['the very first event', without(0)],
    ['everything, told backwards', log.toReversed()],
  ])('%s', (_, entries) => {
    expect(() => hearAll(nowhere, entries)).toThrow(lost)
  })

  test('of a part of a frame', () => {
    expect(() => hear(nowhere, { id: '1-1', data: '{"type":"turn.qu' })).toThrow(lost)
    expect(() => hear(nowhere, { data: '{}' })).toThrow(lost)
  })

  test.each(['message.delta', 'snapshot', 'end'])('of a %s that cannot be read', type => {
    expect(() => hear(hearAll(nowhere, log.slice(0, 5)), { id: '11-6', data: JSON.stringify({ type, task: 5 }) })).toThrow(lost)
  })

  test.each(['end', 'caught_up'])('at the %s, of what the server says it has told', type => {
    const told = frameOf({ cursor: log.at(-1)?.cursor ?? '0-0', event: { type, task: log[0]?.event.task, status: 'completed' } })
    expect(() => hear(hearAll(nowhere, log.slice(0, -1)), told)).toThrow(lost)
    expect(() => hear(nowhere, told)).toThrow(lost)
    expect(hear(hearAll(nowhere, log), told).event?.type).toBe(type)
  })

  test('of what was said in the new epoch of another attempt', () => {
    const again = turnLog(1, [['one']], { attempt: 2 })
    expect(textsOf(hearAll(hearAll(nowhere, log.slice(0, 5)), again))).toEqual(['one'])
    expect(() => hearAll(hearAll(nowhere, log.slice(0, 5)), again.slice(1))).toThrow(lost)
  })

  test('also by a reader that began in the middle, in messages that started since', () => {
    const place = placeAfter(log[3]?.cursor ?? '0-0')
    expect(textsOf(hearAll(place, log.slice(4)))).toEqual(['four'])
    const longer = turnLog(1, [['a'], ['b', 'c', 'd']])
    const middle = placeAfter(longer[3]?.cursor ?? '0-0')
    expect(() =>
      hearAll(
        middle,
        longer.slice(4).filter((_, at) => at !== 3),
      ),
    ).toThrow(lost)
  })
})

describe('a reader that needs no past', () => {
  test('holds no turn that has ended but the last, and goes on with the next', () => {
    const conversation = [1, 2, 3].flatMap(number => turnLog(number, [[`answer ${number}`]], { firstIndex: number - 1 }))
    let place = nowhere
    for (const entry of conversation) {
      place = hear(place, frameOf(entry)).place
      if (entry.event.type === 'turn.finished') place = withoutEnded(place)
      expect(messagesOf(place.state).length).toBeLessThan(2)
      expect(place.state.turns.length).toBeLessThan(3)
    }
    expect(place.state).toMatchObject({ status: 'completed', messagesFrom: 3, turns: [{ number: 3 }] })
  })

  test('holds on to what is being said when a turn that waits ends before it', () => {
    const [queued] = turnLog(2, [])
    const before = hearAll(nowhere, [...log.slice(0, 5), { cursor: '11-6', event: queued?.event ?? {} }])
    const expired = { ...turnLog(2, [], { ending: { status: 'failed' } }).at(-1)?.event, attempt: 0 }
    const place = withoutEnded(hear(before, frameOf({ cursor: '11-7', event: expired })).place)
    expect(textsOf(place)).toEqual(['one two '])
    expect(place.state.status).toBe('running')
  })
})
