/** Checklist items of mini-claw-code's accumulator that concern folding. Its own events are a view of the log. */
import { describe, expect, test } from 'vitest'
import { composed } from '../../test/logs.ts'
import { text, toolRequest } from '../entities/content.ts'
import { delta, done, start } from '../events/update.ts'

const fragment = (index: number, json: string) => delta(index, { type: 'tool_request', text: json })

describe('accumulating', () => {
  test('text alone', () => {
    expect(composed(delta(0, 'Hello'), delta(0, ', '), delta(0, 'world'), done(0)).messages).toMatchObject([
      { content: text('Hello, world') },
    ])
  })

  test('a tool call: start sets id and name at its index, fragments are appended there', () => {
    const open = composed(start(0, toolRequest('call_1', 'read')), fragment(0, '{"path"'), fragment(0, ':"a"}'))
    expect(open.messages).toMatchObject([{ content: { callId: 'call_1', name: 'read', raw: '{"path":"a"}' } }])
  })

  test('text and calls in one turn', () => {
    const { messages } = composed(delta(0, 'Looking.'), start(1, toolRequest('call_1', 'read')), fragment(1, '{}'), done(0), done(1))
    expect(messages.map(({ content }) => content)).toEqual([text('Looking.'), toolRequest('call_1', 'read', {})])
  })

  test('parallel calls, interleaved, come out in index order', () => {
    const { messages } = composed(
      start(0, toolRequest('call_1', 'read')),
      start(1, toolRequest('call_2', 'write')),
      fragment(1, '{"b":'),
      fragment(0, '{"a":'),
      fragment(1, '2}'),
      fragment(0, '1}'),
      done(1),
      done(0),
    )
    expect(messages.map(({ content }) => content)).toEqual([
      toolRequest('call_1', 'read', { a: 1 }),
      toolRequest('call_2', 'write', { b: 2 }),
    ])
  })

  test('a turn without updates has no message', () => {
    expect(composed(delta(0, '')).messages).toEqual([])
  })
})

describe('the end', () => {
  test('changes no text', () => {
    const open = composed(delta(0, 'a'))
    const closed = composed(delta(0, 'a'), done(0))
    expect(closed.messages[0]?.content).toEqual(open.messages[0]?.content)
  })

  test('comes once: later updates are discarded', () => {
    const { composer, messages } = composed(delta(0, 'a'), done(0), done(0), delta(0, 'b'))
    expect([composer.discarded(), messages[0]?.content]).toEqual([2, text('a')])
  })

  test('parses arguments that were a raw string until then; invalid JSON does not throw', () => {
    const open = composed(start(0, toolRequest('1', 'f')), fragment(0, '{"a":1'))
    expect(open.messages[0]?.content).toMatchObject({ arguments: {}, raw: '{"a":1' })
    expect(composed(fragment(0, '{"a":1}'), done(0)).messages[0]?.content).toEqual(toolRequest('', '', { a: 1 }))
    expect(composed(fragment(0, '{"a":1'), done(0)).messages[0]).toMatchObject({ status: 'failed', content: { arguments: {} } })
  })

  test('of empty arguments is an empty object', () => {
    expect(composed(start(0, toolRequest('1', 'f')), done(0)).messages[0]?.content).toEqual(toolRequest('1', 'f', {}))
    expect(composed(start(0, toolRequest('1', 'f')), fragment(0, ' '), done(0)).messages[0]?.content).toEqual(toolRequest('1', 'f', {}))
  })

  test('is not reached when the text happens to parse, because a prefix may parse', () => {
    const open = composed(start(0, toolRequest('1', 'f')), fragment(0, '{}'))
    expect(open.messages[0]).toMatchObject({ status: 'streaming', content: { raw: '{}' } })
    expect(composed(fragment(0, '1'), fragment(0, '2'), done(0)).messages[0]?.content).toMatchObject({ arguments: 12 })
  })
})
