/** The writer of one turn against a scripted log: order, numbers, merging, backpressure, and the effect of each outcome. */
import type { Append, AppendResult } from '@rivulet/broker'
import {
  applyEvent,
  delta,
  done,
  type Event,
  emptyState,
  formatCursor,
  type Message,
  messagesOf,
  RivuletError,
  start,
  text,
} from '@rivulet/protocol'
import { describe, expect, test, vi } from 'vitest'
import { createTurnWriter, maxUnsentBytes } from './turn-writer.ts'

const turn = { task: '01890000-0000-7000-8000-000000000000', turn: 1, attempt: 1, firstIndex: 4 }

type Reply = AppendResult | Error | Promise<AppendResult>

/** Returns the next of `replies` for each append, then ok. */
function open(replies: Reply[] = [], reopenedAs: (number | null | Error)[] = [], backpressureMs?: number, deltas?: 'each' | 'off') {
  const appends: Append[] = []
  const onLost = vi.fn()
  const onFenced = vi.fn()
  const writer = createTurnWriter({
    turn,
    epoch: 2,
    appender: {
      append: async append => {
        appends.push(append)
        const reply = replies.shift() ?? 'ok'
        if (reply instanceof Error) throw reply
        return reply
      },
    },
    askReopen: async () => {
      const result = reopenedAs.shift() ?? null
      if (result instanceof Error) throw result
      return result
    },
    onFenced,
    onLost,
    backpressureMs,
    deltas,
  })
  return { writer, appends, onLost, onFenced, said: () => appends.map(eventsOf) }
}

describe('speaking', () => {
  test('the first word leaves at once; what is said while it is on its way leaves together, merged', async () => {
    const first = promise<AppendResult>()
    const { writer, appends, said } = open([first.promise])
    await writer.write(delta(0, 'a'))
    expect(appends).toHaveLength(1)
    for (const word of ['b', 'c', 'd']) await writer.write(delta(0, word))
    await writer.write(delta(1, 'x'))
    await writer.write(delta(0, 'e'))
    expect(appends).toHaveLength(1)
    first.resolve('ok')
    await writer.drain()
    expect(said().map(events => events.map(briefly))).toEqual([
      ['message.started 4', 'message.delta 4 0 a'],
      ['message.delta 4 1 bcd', 'message.started 5', 'message.delta 5 0 x', 'message.delta 4 4 e'],
    ])
    expect(appends.map(({ epoch, first }) => [epoch, first])).toEqual([
      [2, 1],
      [2, 3],
    ])
  })

  test('each: every delta is an event of its own, also those that wait', async () => {
    const first = promise<AppendResult>()
    const { writer, said } = open([first.promise], [], undefined, 'each')
    for (const word of ['a', 'b', 'c']) await writer.write(delta(0, word))
    first.resolve('ok')
    await writer.drain()
    expect(said().map(events => events.map(briefly))).toEqual([
      ['message.started 4', 'message.delta 4 0 a'],
      ['message.delta 4 1 b', 'message.delta 4 2 c'],
    ])
  })

  test('off: nothing is sent while a message is open, and all of it when it is closed', async () => {
    const { writer, said } = open([], [], undefined, 'off')
    for (const word of ['a', 'b', 'c']) await writer.write(delta(0, word))
    await writer.write(delta(1, 'x'))
    await writer.write(done(0))
    await writer.drain()
    expect(said()).toEqual([])
    await writer.write(done(1))
    await writer.drain()
    expect(said().map(events => events.map(briefly))).toEqual([
      [
        'message.started 4',
        'message.delta 4 0 abc',
        'message.started 5',
        'message.delta 5 0 x',
        'message.finished 4 complete',
        'message.finished 5 complete',
      ],
    ])
  })

  test('off: a message that is too large to be held back is sent while it is open, so that its agent is not blocked', async () => {
    const { writer, said } = open([], [], undefined, 'off')
    const piece = 'x'.repeat(10_000)
    for (let bytes = 0; bytes < 3 * maxUnsentBytes; bytes += piece.length) await writer.write(delta(0, piece))
    writer.end('complete')
    await writer.drain()
    expect(foldOf(said().flat())).toMatchObject([{ status: 'complete', content: { text: expect.stringMatching(/^x{3140000,}$/) } }])
  })

  test('what is said at any moment around the reply to the last append is sent, too', async () => {
    for (let ticks = 0; ticks < 12; ticks += 1) {
      const { writer, said } = open()
      writer.say(delta(0, 'a'))
      for (let i = 0; i < ticks; i += 1) await null
      writer.say(delta(0, 'b'))
      await writer.drain()
      expect(foldOf(said().flat()), `after ${ticks} ticks`).toMatchObject([{ content: text('ab') }])
    }
  })

  test('what was sent is frozen: after a lost reply the same entries go under the same numbers', async () => {
    const { writer, appends } = open([new Error('connection lost'), 'duplicate'])
    await writer.write(delta(0, 'a'))
    await writer.write(delta(0, 'b'))
    await writer.drain()
    expect(appends[1]).toEqual(appends[0])
    expect(appends[2]).toMatchObject({ first: 3 })
    expect(writer.position()).toEqual({ epoch: 2, appended: 3 })
  })

  test('an agent waits only while more than a megabyte is unsent', async () => {
    const first = promise<AppendResult>()
    const { writer } = open([first.promise])
    const chunk = 'x'.repeat(maxUnsentBytes / 2 - 1_000)
    for (let i = 0; i < 2; i += 1) await writer.write(delta(0, chunk))
    let isThrough = false
    const blocked = writer.write(delta(0, chunk)).then(() => {
      isThrough = true
    })
    await new Promise(resolve => setImmediate(resolve))
    expect(isThrough).toBe(false)
    first.resolve('ok')
    await blocked
    await writer.drain()
    expect(writer.messageAt(0)?.content).toEqual(text(chunk.repeat(3)))
  })

  test('merged deltas stay within 64 KiB', async () => {
    const first = promise<AppendResult>()
    const { writer, said } = open([first.promise])
    for (let i = 0; i < 100; i += 1) await writer.write(delta(0, '€'.repeat(1_000)))
    first.resolve('ok')
    await writer.drain()
    const deltas = said()
      .flat()
      .flatMap(event => (event.type === 'message.delta' && event.delta.type === 'text' ? [event.delta.text] : []))
    expect(deltas.join('')).toBe('€'.repeat(100_000))
    expect(deltas.length).toBeLessThan(100)
    for (const delta of deltas) expect(Buffer.byteLength(delta)).toBeLessThanOrEqual(64 * 1024)
  })
})

describe('the end', () => {
  test('closes what is open, lets nothing more be said, and is still sent', async () => {
    const { writer, said } = open()
    await writer.write(start(0, text('a')))
    writer.end('complete')
    await expect(writer.write(delta(0, 'late'))).rejects.toMatchObject({
      code: 'turn_over',
      message: expect.stringContaining('(ended)'),
    })
    await writer.drain()
    expect(said().flat().map(briefly)).toEqual(['message.started 4', 'message.finished 4 complete'])
  })

  test('counts once: a second one changes nothing', async () => {
    const { writer } = open()
    await writer.write(start(0, text('a')))
    writer.end('aborted')
    writer.end('failed', { code: 'agent_error', message: 'the handler minded' })
    expect(writer.messageAt(0)).toMatchObject({ status: 'aborted', stopReason: 'aborted' })
    expect(writer.messageAt(0)?.error).toBeUndefined()
  })

  test('a writer that is stopped wakes an agent that waits', async () => {
    const { writer } = open([new Promise(() => {})])
    const blocked = writer.write(delta(0, 'x'.repeat(maxUnsentBytes)))
    writer.stop(new Error('enough'))
    await expect(blocked).rejects.toThrow('enough')
    await expect(writer.drain()).rejects.toThrow('enough')
    expect(() => writer.say(delta(0, 'more'))).toThrow('enough')
  })
})

describe('a Redis that is out of memory', () => {
  const full = () => new Error("OOM command not allowed when used memory > 'maxmemory'.")

  test('is waited for: when it takes words again, each is said once', async () => {
    const { writer, appends, onLost } = open([full(), full()])
    await writer.write(delta(0, 'a'))
    await writer.drain()
    expect(appends).toHaveLength(3)
    expect(appends[2]).toEqual(appends[0])
    expect(onLost).not.toHaveBeenCalled()
  })

  test('for too long fails the turn, which is still ours to end', async () => {
    const { writer, onLost } = open(Array.from({ length: 100 }, full), [], 100)
    await writer.write(delta(0, 'a'))
    await expect(writer.drain()).rejects.toMatchObject({ code: 'stream_backpressure' })
    expect(onLost).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'stream_backpressure' }))
    expect(writer.isSuperseded()).toBe(false)
  })

  test('is not too long when something else was wrong in between: what counts is one stretch', async () => {
    const apart = Array.from({ length: 2 }, () => [full(), new Error('connection lost')]).flat()
    const { writer, onLost } = open(apart, [], 100)
    await writer.write(delta(0, 'a'))
    await writer.drain()
    expect(onLost).not.toHaveBeenCalled()
  })
})

describe('an answer of the log', () => {
  test.each(['gap', 'missing'] as const)(
    '%s: the turn moves to a new epoch, and says there what it has said, and what waited, once',
    async result => {
      const { writer, appends, said, onLost } = open(['ok', result], [5])
      await writer.write(start(0, text('a')))
      await writer.drain()
      await writer.write(delta(0, 'b'))
      await writer.write(done(0))
      await writer.write(delta(1, 'c'))
      await writer.write({ type: 'custom', name: 'note', data: 1 })
      await writer.drain()
      const moved = appends.filter(({ epoch }) => epoch === 5)
      expect(moved[0]?.first).toBe(1)
      expect(foldOf(moved.flatMap(eventsOf))).toEqual(writer.messages().map(comparable))
      expect(
        said()
          .flat()
          .filter(({ type }) => type === 'custom'),
      ).toHaveLength(1)
      expect(writer.position()).toEqual({ epoch: 5, appended: moved.flatMap(({ entries }) => entries).length })
      expect(onLost).not.toHaveBeenCalled()
    },
  )

  test.each(['fenced', 'closed'] as const)('%s: the turn is lost, and nothing more is sent', async result => {
    const { writer, appends, onLost } = open([result])
    await writer.write(delta(0, 'a'))
    await expect(writer.drain()).rejects.toThrow()
    expect(onLost).toHaveBeenCalledWith('superseded')
    expect(writer.isSuperseded()).toBe(true)
    await expect(writer.write(delta(0, 'b'))).rejects.toMatchObject({ code: 'turn_over' })
    expect(appends).toHaveLength(1)
  })

  test('full: the turn fails for that reason, but is still ours to end', async () => {
    const { writer, onLost } = open(['full'])
    await writer.write(delta(0, 'a'))
    await expect(writer.drain()).rejects.toMatchObject({ code: 'output_too_large' })
    expect(onLost).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'output_too_large' }))
    expect(writer.isSuperseded()).toBe(false)
  })

  test('a reopening that is refused, or cannot be asked for, loses the turn and nothing else', async () => {
    for (const rejection of [null, new RivuletError('unauthorized', 'no')]) {
      const { writer, onLost } = open(['gap'], [rejection])
      await writer.write(delta(0, 'a'))
      await expect(writer.drain()).rejects.toMatchObject({ code: 'turn_over' })
      expect(onLost).toHaveBeenCalledExactlyOnceWith('superseded')
    }
  })

  test('that it lost the log reaches a turn without new output when the log is checked; a whole log gets no entries', async () => {
    const { writer, appends, onLost } = open(['ok', 'duplicate', 'missing'], [5])
    await writer.write(start(0, text('a')))
    await writer.drain()
    writer.checkLog()
    await writer.drain()
    expect(appends.map(({ epoch, first, entries }) => [epoch, first, entries.length])).toEqual([
      [2, 1, 1],
      [2, 2, 0],
    ])
    writer.checkLog()
    await writer.drain()
    expect(foldOf(appends.filter(({ epoch }) => epoch === 5).flatMap(eventsOf))).toEqual(writer.messages().map(comparable))
    writer.end('complete')
    await writer.drain()
    const before = appends.length
    writer.checkLog()
    await writer.drain()
    expect(appends).toHaveLength(before)
    expect(onLost).not.toHaveBeenCalled()
  })

  test('at the end the whole turn can be said again under a new epoch', async () => {
    const { writer, appends } = open([], [9])
    await writer.write(start(0, text('a')))
    await writer.write(delta(0, 'b'))
    writer.end('complete')
    await writer.drain()
    await writer.reopen()
    const moved = appends.filter(({ epoch }) => epoch === 9)
    expect(foldOf(moved.flatMap(eventsOf))).toEqual(writer.messages().map(comparable))
    expect(writer.messages()).toMatchObject([{ status: 'complete', content: text('ab') }])
  })
})

function eventsOf({ entries }: Append): Event[] {
  return entries.map(({ json }) => JSON.parse(json))
}

function foldOf(events: Event[]): object[] {
  const state = events.reduce((before, event, i) => applyEvent(before, event, formatCursor(1, i + 1)), {
    ...emptyState,
    messagesFrom: turn.firstIndex,
  })
  return messagesOf(state).map(comparable)
}

/** Times are those of the saying. */
function comparable({ createdAt: _, finishedAt: __, ...message }: Message): object {
  return message
}

function briefly(event: Event): string {
  if (event.type === 'message.delta')
    return `${event.type} ${event.index} ${event.offset} ${event.delta.type === 'text' ? event.delta.text : ''}`
  if (event.type === 'message.finished') return `${event.type} ${event.index} ${event.status}`
  return 'index' in event ? `${event.type} ${event.index}` : event.type
}

function promise<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {}
  return { promise: new Promise<T>(settle => (resolve = settle)), resolve: value => resolve(value) }
}
