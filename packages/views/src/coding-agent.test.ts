/** The event union of the book on coding agents, and the further events that its text requires. */
import { applyEvent, custom, delta, done, emptyState, formatCursor, full, start, text, toolRequest, toolResponse } from '@rivulet/protocol'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { queued, turnOf, updatesToEvents } from '../test/task-log.ts'
import { type AgentEvent, createAgentEvents, createRunEvents } from './coding-agent.ts'

const fragment = (index: number, json: string) => delta(index, { type: 'tool_request', text: json })
const progress = (index: number, words: string) => delta(index, { type: 'tool_response', text: words })
const input = { path: 'src/config.ts' }

/** A response that reads a file, and the execution of its call. */
const reading = [
  delta(0, 'Let me check the configuration file first.'),
  done(0),
  start(1, toolRequest('call-1', 'read')),
  fragment(1, '{"path":'),
  fragment(1, '"src/config.ts"}'),
  done(1, { stopReason: 'tool_use' }),
  start(2, toolResponse('call-1', 'read')),
  full(2, toolResponse('call-1', 'read', 'export default {}')),
]

const trace: AgentEvent[] = [
  { type: 'assistant_text_delta', text: 'Let me check the configuration file first.' },
  { type: 'tool_call_started', id: 'call-1', name: 'read' },
  { type: 'tool_call_arguments_delta', id: 'call-1', delta: '{"path":' },
  { type: 'tool_call_arguments_delta', id: 'call-1', delta: '"src/config.ts"}' },
  { type: 'tool_call_ready', id: 'call-1', name: 'read', input },
  { type: 'tool_execution_started', id: 'call-1', name: 'read' },
  { type: 'tool_execution_finished', id: 'call-1', isError: false },
  {
    type: 'turn_finished',
    message: {
      text: 'Let me check the configuration file first.',
      toolCalls: [{ id: 'call-1', name: 'read', input }],
      stopReason: 'toolUse',
    },
  },
]

describe('a turn that reads a file', () => {
  test('gives exactly the trace of the book', () => {
    expect(updatesToEvents(...reading).flatMap(createAgentEvents())).toEqual(trace)
    expect(trace.map(lineOf)).toEqual([
      'assistant_text_delta: Let me check the configuration file first.',
      'tool_call_started: read',
      'tool_call_arguments_delta: {"path":',
      'tool_call_arguments_delta: "src/config.ts"}',
      'tool_call_ready: read {"path":"src/config.ts"}',
      'tool_execution_started: read',
      'tool_execution_finished: read false',
      'turn_finished: stopReason=toolUse',
    ])
  })

  test('gives the same events from a log with turn events, and from the updates of a run', () => {
    const log = [queued(1), ...turnOf({ updates: [...reading, delta(3, 'Done.'), done(3, { stopReason: 'stop' })], end: completed })]
    const reply = [
      { type: 'assistant_text_delta', text: 'Done.' },
      { type: 'turn_finished', message: { text: 'Done.', toolCalls: [], stopReason: 'stop' } },
    ]
    expect(log.flatMap(createAgentEvents())).toEqual([...trace, ...reply])
    expect(reading.flatMap(createRunEvents())).toEqual(trace)
  })

  test('shows a call as soon as it is named, before any of its arguments', () => {
    expect(updatesToEvents(start(0, toolRequest('a', 'read'))).flatMap(createAgentEvents())).toEqual([
      { type: 'tool_call_started', id: 'a', name: 'read' },
    ])
  })

  test('can be joined anywhere: the fold of the earlier events and the later events give the whole', () => {
    const log = turnOf({ updates: [...reading, delta(3, 'Done.'), done(3, { stopReason: 'stop' })], end: completed })
    const kinds = (events: AgentEvent[]) => events.filter(({ type }) => type !== 'turn_finished')
    for (const cut of log.keys()) {
      const before = log.slice(0, cut)
      const state = before.reduce((folded, event, i) => applyEvent(folded, event, formatCursor(1, i + 1)), emptyState)
      const joined = [...before.flatMap(createAgentEvents()), ...log.slice(cut).flatMap(createAgentEvents(state))]
      expect(kinds(joined)).toEqual(kinds(log.flatMap(createAgentEvents())))
    }
  })
})

describe('beyond the union of the book', () => {
  test('a cancel gives aborted once, finishes each execution, and ends with a message of that stop reason', () => {
    const running = [...reading.slice(0, -1), progress(2, 'half'), start(3, toolResponse('call-2', 'read'))]
    const events = turnOf({ updates: running, end: { status: 'canceled', stopReason: 'aborted' } }).flatMap(createAgentEvents())
    expect(events.slice(-6)).toEqual([
      { type: 'tool_execution_update', id: 'call-1', text: 'half' },
      { type: 'tool_execution_started', id: 'call-2', name: 'read' },
      { type: 'tool_execution_finished', id: 'call-1', isError: true },
      { type: 'aborted' },
      { type: 'tool_execution_finished', id: 'call-2', isError: true },
      { type: 'turn_finished', message: expect.objectContaining({ stopReason: 'aborted' }) },
    ])
    const nothingSaid = turnOf({ end: { status: 'canceled', stopReason: 'aborted' } }).flatMap(createAgentEvents())
    expect(nothingSaid).toEqual([
      { type: 'aborted' },
      { type: 'turn_finished', message: { text: '', toolCalls: [], stopReason: 'aborted' } },
    ])
  })

  test('a retry finishes the executions of the dead worker, and drops its text', () => {
    const log = [
      ...turnOf({ updates: [delta(0, 'first'), done(0), start(1, toolResponse('call-1', 'read'))] }),
      ...turnOf({ attempt: 2, updates: [delta(0, 'second'), done(0, { stopReason: 'stop' })], end: completed }),
    ]
    expect(log.flatMap(createAgentEvents()).slice(2)).toEqual([
      { type: 'tool_execution_finished', id: 'call-1', isError: true },
      { type: 'retry', attempt: 2 },
      { type: 'assistant_text_delta', text: 'second' },
      { type: 'turn_finished', message: { text: 'second', toolCalls: [], stopReason: 'stop' } },
    ])
  })

  test('the queue lists the turns behind an unfinished turn, until they start or are canceled', () => {
    const log = [
      queued(1),
      ...turnOf({}),
      queued(2),
      queued(3),
      ...turnOf({ turnNumber: 3, end: { status: 'canceled', stopReason: 'aborted' } }).slice(-1),
      ...turnOf({ end: completed }).slice(-1),
      ...turnOf({ turnNumber: 2 }),
    ]
    expect(log.flatMap(createAgentEvents())).toEqual([
      { type: 'queue_updated', waiting: [2] },
      { type: 'queue_updated', waiting: [2, 3] },
      { type: 'queue_updated', waiting: [2] },
      { type: 'turn_finished', message: { text: '', toolCalls: [], stopReason: 'stop' } },
      { type: 'queue_updated', waiting: [] },
    ])
  })

  test('compactions and retries of a request are custom events; other custom events give nothing', () => {
    const updates = [custom('compaction', { dropped: 12 }), custom('model_retry', { retry: 1 }), custom('note', 1)]
    expect(updatesToEvents(...updates).flatMap(createAgentEvents())).toEqual([
      { type: 'compaction', data: { dropped: 12 } },
      { type: 'model_retry', data: { retry: 1 } },
    ])
  })
})

describe('consistency', () => {
  test('the deltas are the text, even of a message that arrived whole or started with text', () => {
    const updates = [start(0, text('one ')), delta(0, 'two '), full(0, 'one two three'), full(1, ' four'), done(1)]
    const events = turnOf({ updates, end: completed }).flatMap(createAgentEvents())
    const streamed = events.map(event => (event.type === 'assistant_text_delta' ? event.text : '')).join('')
    expect(streamed).toBe('one two three four')
    expect(events.at(-1)).toMatchObject({ type: 'turn_finished', message: { text: streamed, stopReason: 'stop' } })
  })

  test('the argument deltas are the input, even of a call that arrived whole or without arguments', () => {
    const whole = updatesToEvents(full(0, toolRequest('a', 'f', { x: 1 })), start(1, toolRequest('b', 'g')), done(1)).flatMap(
      createAgentEvents(),
    )
    expect(whole.map(({ type }) => type)).toEqual([
      ...['tool_call_started', 'tool_call_arguments_delta', 'tool_call_ready'],
      ...['tool_call_started', 'tool_call_arguments_delta', 'tool_call_ready'],
    ])
    for (const [id, expected] of [['a', { x: 1 }] as const, ['b', {}] as const]) {
      const json = whole.map(event => (event.type === 'tool_call_arguments_delta' && event.id === id ? event.delta : '')).join('')
      expect(JSON.parse(json)).toEqual(expected)
    }
  })

  test.each([
    ['begins with the streamed arguments gets the rest as a delta', '{"x":1,"y":2}', '{"x":1,"y":2}'],
    ['differs from the streamed arguments gets no delta, and only its input is right', '{"y":2}', '{"x":1'],
  ])('a call that is replaced by one that %s', (_, json, deltas) => {
    const replaced = full(0, toolRequest('a', 'f', JSON.parse(json)))
    const events = updatesToEvents(start(0, toolRequest('a', 'f')), fragment(0, '{"x":1'), replaced).flatMap(createAgentEvents())
    expect(events.map(event => (event.type === 'tool_call_arguments_delta' ? event.delta : '')).join('')).toBe(deltas)
    expect(events.at(-1)).toEqual({ type: 'tool_call_ready', id: 'a', name: 'f', input: JSON.parse(json) })
  })

  test('a call whose arguments were cut off is never ready', () => {
    const events = turnOf({ updates: [start(0, toolRequest('a', 'f')), fragment(0, '{"pa')], end: completed }).flatMap(createAgentEvents())
    expect(events.map(({ type }) => type)).toEqual(['tool_call_started', 'tool_call_arguments_delta', 'turn_finished'])
  })

  test('a failure ends with a message of the stop reason error', () => {
    const end = { status: 'failed', stopReason: 'error', error: { code: 'agent_error', message: 'no' } } as const
    const events = turnOf({ updates: [delta(0, 'half')], end }).flatMap(createAgentEvents())
    expect(events.at(-1)).toEqual({ type: 'turn_finished', message: { text: 'half', toolCalls: [], stopReason: 'error' } })
  })

  test('a text that is replaced by another one is the whole text so far, and texts that interleave come in order', () => {
    const updates = [start(0, text('a')), start(1, text('b')), delta(1, 'B'), delta(0, 'A'), done(0), full(1, text('other'))]
    const emitted = updatesToEvents(...updates).flatMap(createAgentEvents())
    expect(emitted).toEqual([
      { type: 'assistant_text_delta', text: 'a' },
      { type: 'assistant_text_delta', text: 'A' },
      { type: 'assistant_text_delta', text: 'bB' },
      { type: 'assistant_text_replaced', text: 'aAother' },
    ])
  })

  test('every event of a tool carries the id of its call', () => {
    expectTypeOf<Extract<AgentEvent, { type: `tool_${string}` }>>().toExtend<{ id: string }>()
    const side = [...[1, 2].map(i => start(i - 1, toolResponse(`call-${i}`, 'read'))), progress(1, 'b'), progress(0, 'a'), progress(1, 'c')]
    expect(
      updatesToEvents(...side)
        .flatMap(createAgentEvents())
        .slice(2),
    ).toEqual([
      { type: 'tool_execution_update', id: 'call-2', text: 'b' },
      { type: 'tool_execution_update', id: 'call-1', text: 'a' },
      { type: 'tool_execution_update', id: 'call-2', text: 'c' },
    ])
  })

  test('event names describe what happened, not an interface', () => {
    expectTypeOf<AgentEvent['type']>().toEqualTypeOf<
      | 'assistant_text_delta'
      | 'assistant_text_replaced'
      | 'tool_call_started'
      | 'tool_call_arguments_delta'
      | 'tool_call_ready'
      | 'tool_execution_started'
      | 'tool_execution_update'
      | 'tool_execution_finished'
      | 'turn_finished'
      | 'aborted'
      | 'retry'
      | 'compaction'
      | 'model_retry'
      | 'queue_updated'
    >()
    for (const event of updatesToEvents(...reading).flatMap(createAgentEvents())) expect(structuredClone(event)).toEqual(event)
  })
})

const completed = { status: 'completed', stopReason: 'stop' } as const

/** An event as the book prints it. */
function lineOf(event: AgentEvent, _at: number, all: AgentEvent[]): string {
  switch (event.type) {
    case 'assistant_text_delta':
      return `${event.type}: ${event.text}`
    case 'tool_call_arguments_delta':
      return `${event.type}: ${event.delta}`
    case 'tool_call_ready':
      return `${event.type}: ${event.name} ${JSON.stringify(event.input)}`
    case 'turn_finished':
      return `${event.type}: stopReason=${event.message.stopReason}`
    case 'tool_execution_finished': {
      const started = all.find(other => other.type === 'tool_execution_started' && other.id === event.id)
      return `${event.type}: ${started && 'name' in started ? started.name : ''} ${event.isError}`
    }
    default:
      return `${event.type}: ${'name' in event ? event.name : ''}`
  }
}
