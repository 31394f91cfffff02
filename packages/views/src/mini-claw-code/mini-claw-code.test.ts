/** Streaming as mini-claw-code defines it: its events, its accumulator, its parser, and the events of its interface. */
import { delta, done, type Event, full, start, text, toolRequest, toolResponse, type Update } from '@rivulet/protocol'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { turnOf, updatesToEvents } from '../../test/task-log.ts'
import {
  type AgentEvent,
  createAgentEvents,
  createStreamEvents,
  parseSseLine,
  StreamAccumulator,
  type StreamEvent,
} from './mini-claw-code.ts'

const words = (text: string): StreamEvent => ({ type: 'TextDelta', text })
const callStart = (index: number, id: string, name: string): StreamEvent => ({ type: 'ToolCallStart', index, id, name })
const callDelta = (index: number, json: string): StreamEvent => ({ type: 'ToolCallDelta', index, arguments: json })
const end: StreamEvent = { type: 'Done' }
const line = (value: unknown) => `data: ${JSON.stringify(value)}`
const chunk = (content: object, finish_reason: string | null = null) => line({ choices: [{ delta: content, finish_reason }] })

describe('the accumulator', () => {
  test('collects text', () => {
    expect(collected(words('Hello'), words(' world'), end)).toEqual({ text: 'Hello world', tool_calls: [], stop_reason: 'Stop' })
  })

  test('collects a call, whose arguments are parsed at the end', () => {
    const turn = collected(callStart(0, 'call_1', 'read'), callDelta(0, '{"pa'), callDelta(0, 'th": "f.txt"}'), end)
    expect(turn).toEqual({ text: null, tool_calls: [{ id: 'call_1', name: 'read', arguments: { path: 'f.txt' } }], stop_reason: 'ToolUse' })
  })

  test('collects text and a call', () => {
    expect(collected(words('Let me see.'), callStart(0, 'a', 'read'), callDelta(0, '{}'))).toMatchObject({
      text: 'Let me see.',
      tool_calls: [{ name: 'read', arguments: {} }],
      stop_reason: 'ToolUse',
    })
  })

  test('without events gives no calls, and null instead of an empty text', () => {
    expect(new StreamAccumulator().finish()).toEqual({ text: null, tool_calls: [], stop_reason: 'Stop' })
    expect(collected(words(''), end).text).toBeNull()
  })

  test('keeps parallel calls apart, and in the order of their indexes', () => {
    const turn = collected(
      ...[callStart(1, 'b', 'write'), callStart(0, 'a', 'read')],
      ...[callDelta(0, '{"x"'), callDelta(1, '{"y"'), callDelta(0, ':1}'), callDelta(1, ':2}')],
    )
    expect(turn.tool_calls).toEqual([
      { id: 'a', name: 'read', arguments: { x: 1 } },
      { id: 'b', name: 'write', arguments: { y: 2 } },
    ])
  })

  test('drops a call without a name, and gives null for invalid JSON', () => {
    expect(collected(callDelta(3, '{}'), callStart(1, 'x', ''))).toMatchObject({ tool_calls: [], stop_reason: 'Stop' })
    expect(collected(callStart(0, 'a', 'f'), callDelta(0, '{"pa')).tool_calls).toEqual([{ id: 'a', name: 'f', arguments: null }])
  })

  test('accepts any index at the cost of one entry', () => {
    const far = Number.MAX_SAFE_INTEGER
    expect(collected(callStart(far, 'z', 'f'), callDelta(far, '{}'), callStart(0, 'a', 'g')).tool_calls.map(({ id }) => id)).toEqual([
      'a',
      'z',
    ])
  })

  test('throws after its end', () => {
    const accumulator = new StreamAccumulator()
    accumulator.finish()
    expect(() => accumulator.finish()).toThrow('finished')
    expect(() => accumulator.feed(end)).toThrow('finished')
  })
})

describe('a line of a stream', () => {
  test('with text', () => {
    expect(parseSseLine(chunk({ content: 'Hello' }))).toEqual([words('Hello')])
  })

  test('with the start of a call, with its arguments, with both', () => {
    const call = (fields: object) => chunk({ tool_calls: [{ index: 1, ...fields }] })
    expect(parseSseLine(call({ id: 'c', function: { name: 'read', arguments: '' } }))).toEqual([callStart(1, 'c', 'read')])
    expect(parseSseLine(call({ function: { arguments: '{"pa' } }))).toEqual([callDelta(1, '{"pa')])
    expect(parseSseLine(call({ id: 'c', function: { name: 'read', arguments: '{}' } }))).toEqual([
      callStart(1, 'c', 'read'),
      callDelta(1, '{}'),
    ])
    // Only an id begins a call.
    expect(parseSseLine(call({ id: 'c', function: {} }))).toEqual([callStart(1, 'c', '')])
    expect(parseSseLine(call({ function: { name: 'read' } }))).toEqual([])
  })

  test('that is the end', () => {
    expect(parseSseLine('data: [DONE]')).toEqual([end])
  })

  test.each(['', ': comment', 'event: ping', 'id: 123', 'data:{}'])('that is not data: %j', other => {
    expect(parseSseLine(other)).toBeNull()
  })

  test.each(['data: {oops', 'data: ', 'data: null', 'data: []', 'data: {"choices":7}'])('that is not a chunk: %s', other => {
    expect(parseSseLine(other)).toBeNull()
  })

  test('with only a finish reason', () => {
    expect(parseSseLine(chunk({}, 'stop'))).toEqual([])
    expect(parseSseLine(line({ choices: [] }))).toEqual([])
  })

  test('in which everything is missing or null', () => {
    const nothing = {
      content: null,
      tool_calls: [
        { id: null, function: { name: null, arguments: null } },
        { index: 2, function: null },
      ],
    }
    expect(parseSseLine(chunk(nothing))).toEqual([])
    expect(parseSseLine(line({ choices: [{ delta: { tool_calls: null } }] }))).toEqual([])
  })

  test('of a whole response', () => {
    const reply = [chunk({ content: 'Hello' }), '', chunk({ content: ' world' }), '', chunk({}, 'stop'), '', 'data: [DONE]']
    expect(collected(...reply.flatMap(each => parseSseLine(each) ?? []))).toEqual({
      text: 'Hello world',
      tool_calls: [],
      stop_reason: 'Stop',
    })
  })
})

describe('a task in this event model', () => {
  const fragment = (index: number, json: string) => delta(index, { type: 'tool_request', text: json })
  const reading: Update[] = [
    ...[delta(0, 'Let me '), delta(0, 'see.'), done(0), start(1, toolRequest('a', 'read')), start(2, toolRequest('b', 'list'))],
    ...[fragment(1, '{"path":'), fragment(2, '{}'), fragment(1, '"f"}'), done(2), done(1, { stopReason: 'tool_use' })],
    ...[full(3, toolResponse('a', 'read', 'contents')), full(4, toolResponse('b', 'list', []))],
    ...[start(5, text('It ')), delta(5, 'is.'), done(5, { stopReason: 'stop' })],
  ]

  test('gives the events of each response, which end with Done', () => {
    expect(eventsOf(turnOf({ updates: reading, end: completed }))).toEqual([
      ...[words('Let me '), words('see.'), callStart(0, 'a', 'read'), callStart(1, 'b', 'list')],
      ...[callDelta(0, '{"path":'), callDelta(1, '{}'), callDelta(0, '"f"}'), end],
      ...[words('It '), words('is.'), end],
    ])
  })

  test('accumulates to the messages of the log', () => {
    const [first, second] = responsesOf(eventsOf(updatesToEvents(...reading)))
    expect(first).toEqual({
      text: 'Let me see.',
      tool_calls: [
        { id: 'a', name: 'read', arguments: { path: 'f' } },
        { id: 'b', name: 'list', arguments: {} },
      ],
      stop_reason: 'ToolUse',
    })
    expect(second).toEqual({ text: 'It is.', tool_calls: [], stop_reason: 'Stop' })
  })

  test('emits a whole message whole, and does not repeat streamed text', () => {
    const updates = [delta(0, 'one'), full(0, 'one two'), full(1, toolRequest('a', 'f', { x: 1 })), delta(2, 'draft'), full(2, 'other')]
    expect(eventsOf(turnOf({ updates, end: completed }))).toEqual([
      ...[words('one'), words(' two'), callStart(0, 'a', 'f'), callDelta(0, '{"x":1}'), words('draft'), end],
    ])
  })

  test('emits the rest of a replaced call or nothing, because streamed arguments cannot be withdrawn', () => {
    const replaced = (args: object) => [
      start(0, toolRequest('a', 'f')),
      delta(0, { type: 'tool_request', text: '{"x":1' }),
      full(0, { ...toolRequest('a', 'f'), arguments: args as { x: number } }),
    ]
    expect(collected(...eventsOf(updatesToEvents(...replaced({ x: 1, y: 2 })))).tool_calls).toMatchObject([{ arguments: { x: 1, y: 2 } }])
    expect(eventsOf(updatesToEvents(...replaced({ y: 2 })))).toEqual([callStart(0, 'a', 'f'), callDelta(0, '{"x":1')])
  })

  test('gives Done once, however many messages an abort closes', () => {
    const events = eventsOf(turnOf({ updates: [delta(0, 'a'), delta(1, 'b')], end: { status: 'canceled', stopReason: 'aborted' } }))
    expect(events).toEqual([words('a'), words('b'), end])
  })

  test('gives an interface text, calls and the end, and nothing of the provider’s format', () => {
    expectTypeOf<AgentEvent['type']>().toEqualTypeOf<'TextDelta' | 'ToolCall' | 'Done' | 'Error'>()
    expect(turnOf({ updates: reading, end: completed }).flatMap(createAgentEvents())).toEqual([
      { type: 'TextDelta', text: 'Let me ' },
      { type: 'TextDelta', text: 'see.' },
      { type: 'ToolCall', name: 'list', summary: 'list {}' },
      { type: 'ToolCall', name: 'read', summary: 'read {"path":"f"}' },
      { type: 'TextDelta', text: 'It ' },
      { type: 'TextDelta', text: 'is.' },
      { type: 'Done', text: 'It is.' },
    ])
    expect(turnOf({ end: completed }).flatMap(createAgentEvents())).toEqual([{ type: 'Done', text: '' }])
    const failed = { status: 'failed', stopReason: 'error', error: { code: 'agent_error', message: 'no luck' } } as const
    expect(turnOf({ end: failed }).flatMap(createAgentEvents())).toEqual([{ type: 'Error', message: 'no luck' }])
  })
})

const completed = { status: 'completed', stopReason: 'stop' } as const

function collected(...events: StreamEvent[]) {
  const accumulator = new StreamAccumulator()
  for (const event of events) accumulator.feed(event)
  return accumulator.finish()
}

function eventsOf(log: Event[]): StreamEvent[] {
  return log.flatMap(createStreamEvents())
}

/** The responses, each up to its Done. */
function responsesOf(events: StreamEvent[]) {
  const ends = events.flatMap(({ type }, at) => (type === 'Done' ? [at + 1] : []))
  return ends.map((to, i) => collected(...events.slice(ends[i - 1] ?? 0, to)))
}
