import { type LoggedEvent, messagesOf, type TaskEvent } from '@rivulet/client'
import { describe, expect, test } from 'vitest'
import { appendEvents, emptyLog, positionOf, stateAt } from './event-log.ts'
import { sampleEvents as events } from './sample-events.ts'

const textAt = (log: typeof emptyLog, cursor: string) =>
  messagesOf(stateAt(log, positionOf(log, cursor))).map(({ content }) => (content.type === 'text' ? content.text : content.type))

describe('the log', () => {
  test('is the task as of any event', () => {
    const log = appendEvents(emptyLog, events)
    expect(textAt(log, '1-1')).toEqual([])
    expect(textAt(log, '2-3')).toEqual(['one '])
    expect(textAt(log, '2-4')).toEqual(['one two'])
    expect(textAt(log, '3-1')).toEqual([])
    expect(textAt(log, '3-3')).toEqual(['other'])
    expect(stateAt(log, log.entries.length - 1).status).toBe('completed')
  })

  test('knows how long each event took to come, and how large it is', () => {
    const log = appendEvents(appendEvents(emptyLog, events.slice(0, 3)), events.slice(3))
    expect(log.entries.map(({ sinceMs }) => sinceMs).slice(0, 4)).toEqual([null, 10, 10, 10])
    expect(log.bytes).toBe(log.entries.reduce((sum, { size }) => sum + size, 0))
    expect(log.entries.map(({ number }) => number)).toEqual(events.map((_, place) => place))
  })

  test('forgets its beginning, and not what that meant', () => {
    const whole = appendEvents(emptyLog, events)
    const short = events.reduce((log, event) => appendEvents(log, [event], 4, 2), emptyLog)
    expect(short.entries.length).toBeLessThanOrEqual(4)
    expect(short.entries.at(-1)?.number).toBe(events.length - 1)
    expect(textAt(short, '3-3')).toEqual(textAt(whole, '3-3'))
  })

  test('goes on from a snapshot', () => {
    const state = stateAt(appendEvents(emptyLog, events), 3)
    const snapshot = {
      ...{ type: 'snapshot', reason: 'gap', cursor: '2-3', turns: [], messages: messagesOf(state), messagesFrom: 0 },
      task: { id: (events[0] as LoggedEvent).task, agent: 'a', status: 'running', params: null, metadata: {} },
    } as unknown as TaskEvent
    const log = appendEvents(emptyLog, [snapshot, ...events.slice(4, 5)])
    expect(textAt(log, '2-4')).toEqual(['one two'])
  })
})
