/** Checklist items of Agentex about accumulation: messages by index, auto-flush, full messages, completed indexes. */
import { describe, expect, test } from 'vitest'
import { composed, firstTurn, messagesFrom, typesOf } from '../../test/logs.ts'
import { data, reasoning, text, toolRequest, toolResponse } from '../entities/content.ts'
import { delta, done, full, start } from '../events/update.ts'
import { createTurnComposer } from './turn-composer.ts'

describe('a stream of updates', () => {
  test('holds many messages, each at its own index, and interleaved ones do not mix', () => {
    const { messages } = composed(delta(0, 'a'), delta(1, 'x'), delta(0, 'b'), delta(2, '1'), delta(1, 'y'), delta(0, 'c'))
    expect(messages.map(({ index, content }) => [index, content])).toEqual([
      [0, text('abc')],
      [1, text('xy')],
      [2, text('1')],
    ])
  })

  test('a done index has its complete content', () => {
    expect(composed(delta(0, 'a'), delta(0, 'b'), done(0)).messages).toMatchObject([{ content: text('ab'), status: 'complete' }])
  })

  test('done is optional: the end of the turn closes every open index, in index order, with an event', () => {
    const { composer, events } = composed(delta(0, 'a'), delta(1, 'b'), delta(2, 'c'), done(1), delta(0, 'd'))
    const flush = composer.closeAll('complete')
    expect(flush).toMatchObject([{ index: 0 }, { index: 2 }])
    expect(messagesFrom([...events, ...flush])).toMatchObject([
      { content: text('ad'), status: 'complete' },
      { content: text('b'), status: 'complete' },
      { content: text('c'), status: 'complete' },
    ])
  })

  test('each update becomes an event at once, not at the end', () => {
    const composer = createTurnComposer(firstTurn)
    expect(composer.compose(delta(0, 'a'))).toHaveLength(2)
    expect(composer.compose(delta(0, 'b'))).toMatchObject([{ type: 'message.delta', delta: { text: 'b' } }])
  })

  test('a chunk without content gives no event', () => {
    expect(composed(delta(0, 'a'), delta(0, '')).events).toEqual([expect.anything(), expect.anything()])
  })

  test('text, data, tool requests, tool responses and reasoning are all accumulated', () => {
    const { messages } = composed(
      delta(0, { type: 'reasoning_summary', index: 0, text: 'S' }),
      delta(0, { type: 'reasoning_content', index: 1, text: 'C' }),
      delta(0, { type: 'reasoning_summary', index: 0, text: 's' }),
      delta(1, 'te'),
      start(2, toolRequest('1', 'f')),
      delta(3, { type: 'data_json', text: '{"a"' }),
      delta(2, { type: 'tool_request', text: '{"q":' }),
      delta(1, 'xt'),
      delta(3, { type: 'data_json', text: ':1}' }),
      delta(2, { type: 'tool_request', text: '2}' }),
      start(4, toolResponse('1', 'f')),
      delta(4, { type: 'tool_response', text: '50 %' }),
      delta(4, { type: 'data', value: { found: 3 } }),
      ...[0, 1, 2, 3, 4].map(index => done(index)),
    )
    expect(messages.map(({ content }) => content)).toEqual([
      reasoning(['Ss'], ['', 'C']),
      text('text'),
      toolRequest('1', 'f', { q: 2 }),
      data({ a: 1 }),
      toolResponse('1', 'f', { found: 3 }),
    ])
  })
})

describe('starts', () => {
  test('are added, empty, where they are missing: a client that begins with one shows no chunk twice', () => {
    const { events } = composed(delta(0, 'first '), delta(0, 'second'))
    expect(events[0]).toMatchObject({ type: 'message.started', content: text('') })
    expect(messagesFrom(events)).toMatchObject([{ content: text('first second') }])
  })

  test('with content are the base of their deltas, format and metadata included', () => {
    const { messages } = composed(start(0, text('Dear ', 'markdown'), { style: 'warm' }), delta(0, 'Ann'), done(0))
    expect(messages).toMatchObject([{ content: text('Dear Ann', 'markdown'), metadata: { style: 'warm' } }])
  })

  test('without deltas keep their content', () => {
    for (const base of [text('a'), data({ a: 1 }), toolRequest('1', 'f', { a: 1 }), toolResponse('1', 'f', 'a'), reasoning(['a'])]) {
      expect(composed(start(0, base), done(0)).messages).toMatchObject([{ content: base, status: 'complete' }])
    }
  })

  test('fix the type: a delta of another type is an error; summary and content of reasoning may mix', () => {
    expect(() => composed(delta(0, 'a'), delta(0, { type: 'data_json', text: '1' }))).toThrow(
      expect.objectContaining({ code: 'delta_type_mismatch' }),
    )
    const mixed = composed(
      delta(0, { type: 'reasoning_summary', index: 0, text: 'a' }),
      delta(0, { type: 'reasoning_content', index: 0, text: 'b' }),
    )
    expect(mixed.messages[0]?.content).toEqual(reasoning(['a'], ['b']))
  })
})

describe('full messages', () => {
  test('replace the whole message at the index at once', () => {
    const { messages, events } = composed(delta(0, 'draft'), full(0, 'final'))
    expect(messages).toMatchObject([{ index: 0, content: text('final'), status: 'complete' }])
    expect(events.at(-1)).toMatchObject({ type: 'message.replaced', index: 0, content: text('final') })
  })

  test('complete the index: later updates are discarded, without an error or a change', () => {
    const { composer, events, messages } = composed(delta(0, 'draft'), full(0, 'final'), delta(0, '!'), done(0), full(0, 'more'))
    expect(composer.discarded()).toBe(3)
    expect(typesOf(events).at(-1)).toBe('message.replaced')
    expect(messages).toMatchObject([{ content: text('final') }])
  })

  test('make a reader discard later events of a faulty producer', () => {
    const { events } = composed(delta(0, 'draft'), full(0, 'final'))
    const [, late] = events
    expect(messagesFrom([...events, ...(late ? [late] : [])])).toEqual(messagesFrom(events))
  })

  test('need no deltas before them, and change no other index', () => {
    const { messages, composer } = composed(delta(0, 'a'), full(1, toolRequest('1', 'f', { a: 1 })), delta(0, 'b'))
    expect(messages).toMatchObject([
      { content: text('ab'), status: 'streaming' },
      { content: toolRequest('1', 'f', { a: 1 }), status: 'complete' },
    ])
    expect(composer.discarded()).toBe(0)
  })

  test('follow all deltas that were held back or split', () => {
    const composer = createTurnComposer(firstTurn, { limits: { deltaBytes: 4, turnBytes: 1000, jsonDepth: 8 } })
    const events = [delta(0, 'abcdefgh\ud83d'), full(0, 'final'), done(0)].flatMap(update => composer.compose(update))
    expect(typesOf(events)).toEqual(['message.started', 'message.delta', 'message.delta', 'message.replaced'])
    expect(composer.closeAll('complete')).toEqual([])
  })
})
