/** The stream of one message against random logs: what it passes folds to the message, and a client that is cut anywhere misses nothing. */
import { encodeByteText } from '@rivulet/broker'
import {
  applyEvent,
  type Cursor,
  compareCursors,
  type Event,
  emptyState,
  type MessageEnd,
  messageAt,
  origin,
  restoreState,
  type TaskState,
  type WireEvent,
} from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Entry, task } from '../../../../../test/support/logs/log-entries.ts'
import { randomLog } from '../../../../../test/support/logs/random-log.ts'
import { encodeEntry, encodeRetry, encodeWireEvent, pieceOf } from '../sse-frame.ts'
import { type Shared, type SseResponse, share } from '../sse-response.ts'
import { respondWithMessage } from './message-response.ts'
import { createMessageSpans } from './message-spans.ts'

type Passed = { cursor: Cursor; event: Event | WireEvent | MessageEnd }

test('from its first event on, and after any cut, the stream has exactly the events of its message, until the message is closed', () => {
  fc.assert(
    fc.property(randomLog, fc.nat(3), fc.integer({ min: 1, max: 7 }), (log, index, batch) => {
      const whole = hear(log, index, origin, batch)
      for (const [place, { cursor }] of whole.entries()) {
        const isOver = place >= whole.length - 2 && whole.at(-1)?.event.type === 'end'
        if (!isOver) expect(hear(log, index, cursor, batch)).toEqual(whole.slice(place + 1))
      }
      const end = whole.at(-1)
      if (end?.event.type !== 'end') return
      const at = foldLog(log.filter(({ cursor }) => compareCursors(cursor, end.cursor) <= 0))
      expect(messageIn(whole, index)).toEqual(messageAt(at, index)?.message)
      expect(end.event.status).toBe(messageAt(at, index)?.message.status)
    }),
    { numRuns: 500 },
  )
})

test('a span shows at each moment whether the message is there and closed, and a viewer that starts before it has all of it', () => {
  fc.assert(
    fc.property(randomLog, log => {
      const spans = createMessageSpans()
      let before: Cursor = origin
      for (const [place, { cursor, event }] of log.entries()) {
        spans.take(before, cursor, event)
        before = cursor
        const past = log.slice(0, place + 1)
        const state = foldLog(past)
        for (let index = 0; index < 8; index += 1) {
          const message = messageAt(state, index)?.message
          const span = spans.at(index)
          expect([index, span && span.closedAt === null]).toEqual([index, message && message.status === 'streaming'])
          if (span) expect(messageIn(hear(past, index, span.before, 1), index)).toEqual(message)
        }
      }
    }),
    { numRuns: 300 },
  )
})

test('a snapshot of the task becomes one of the message; it ends the stream if the message is closed, and if it has no room for it', () => {
  const time = '2026-01-01T00:00:00.000Z'
  const common = { task, turn: 1, attempt: 1, author: 'agent', metadata: {}, createdAt: time } as const
  const messages = [
    { ...common, index: 3, content: { type: 'text', text: 'done', format: 'plain' }, status: 'complete' },
    { ...common, index: 4, content: { type: 'text', text: 'so f', format: 'plain' }, status: 'streaming' },
  ] as const
  const entity = { id: task, agent: 'echo', status: 'running', params: null, metadata: {}, createdAt: time, updatedAt: time } as const
  const turn = { id: task, task, number: 1, status: 'running', attempt: 1, queuedAt: time } as const
  const snapshot: WireEvent = { type: 'snapshot', reason: 'slow', task: entity, turns: [turn], messages: [...messages], messagesFrom: 3 }
  const sentOf = (index: number) => {
    const { response, passed, isEnded } = createSocket()
    respondWithMessage(response, { task, index }).write(share([encodeWireEvent('2-9', snapshot)]))
    return { events: passed().map(({ event }) => event), isEnded: isEnded() }
  }
  const own = (index: number, turns: object[], found: object[]) => ({ ...snapshot, turns, messages: found, messagesFrom: index })
  expect(sentOf(3)).toEqual({ events: [own(3, [turn], [messages[0]]), { type: 'end', task, index: 3, status: 'complete' }], isEnded: true })
  expect(sentOf(4)).toEqual({ events: [own(4, [turn], [messages[1]])], isEnded: false })
  expect(sentOf(5)).toEqual({ events: [own(5, [], [])], isEnded: false })
  expect(sentOf(2)).toEqual({ events: [], isEnded: true })
})

test('a socket that is full stops the viewer, and events of other messages neither reach it nor are parsed', () => {
  const { response, passed, fill } = createSocket()
  const viewer = respondWithMessage(response, { task, index: 1 })
  expect(viewer.write(share([pieceOf(encodeRetry())]))).toBe(true)
  const other = share([encodeEntry({ cursor: '1-1', json: encodeByteText('never parsed') }, { ...delta, index: 0 })])
  expect([viewer.write(other), passed()]).toEqual([true, []])
  fill()
  expect([viewer.write(other), viewer.write(entry('1-2', { ...delta, index: 1 }))]).toEqual([true, false])
  expect(passed().map(({ cursor }) => cursor)).toEqual(['1-2'])
})

const delta = { type: 'message.delta', task, turn: 1, attempt: 1, at: 1, delta: { type: 'text', text: 'x' }, offset: 0 } as const

function entry(cursor: Cursor, event: Event): Shared {
  return share([encodeEntry({ cursor, json: encodeByteText(JSON.stringify(event)) }, event)])
}

/** A client of one message receives these events of a log after a cursor, with the entries in batches. */
function hear(log: Entry[], index: number, after: Cursor, batch: number): Passed[] {
  const { response, passed } = createSocket()
  const viewer = respondWithMessage(response, { task, index })
  const rest = log.filter(({ cursor }) => compareCursors(cursor, after) > 0)
  for (let from = 0; from < rest.length; from += batch) {
    const frames = rest
      .slice(from, from + batch)
      .map(({ cursor, event }) => encodeEntry({ cursor, json: encodeByteText(JSON.stringify(event)) }, event))
    viewer.write(share(frames))
  }
  return passed()
}

function createSocket() {
  let text = ''
  let isFull = false
  let isEnded = false
  const response: SseResponse = {
    write: ({ plain }) => {
      text += plain
      return !isFull
    },
    end: () => {
      isEnded = true
    },
    destroy: () => {},
  }
  return { response, passed, isEnded: () => isEnded, fill: () => (isFull = true) }

  function passed(): Passed[] {
    return Array.from(text.matchAll(/^event: \S+\ndata: (.*)\nid: (\S+)$/gm), ([, data, cursor]) => ({
      ...{ cursor: cursor as Cursor, event: JSON.parse(data ?? '') },
    }))
  }
}

function foldLog(log: readonly Entry[]): TaskState {
  return log.reduce((state, { cursor, event }) => applyEvent(state, event, cursor), emptyState)
}

/** The message that a client has after these events, by the rules of docs/http-reference.md. */
function messageIn(passed: readonly Passed[], index: number) {
  const nothing: TaskState = { ...emptyState, messagesFrom: index }
  const state = passed.reduce((before, { cursor, event }): TaskState => {
    if (event.type === 'turn.started') return { ...nothing, cursor }
    if (event.type === 'snapshot') return restoreState(cursor, { ...event, status: event.task.status })
    return event.type === 'end' || event.type === 'caught_up' || event.type === 'deleted' ? before : applyEvent(before, event, cursor)
  }, nothing)
  return messageAt(state, index)?.message
}
