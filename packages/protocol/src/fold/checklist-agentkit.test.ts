/** Checklist items of the agentkit book and its `Delta`. Its part is our message at an index; its item is the messages of a turn. */
import { describe, expect, expectTypeOf, test } from 'vitest'
import { composed, fold, logOf, messagesFrom, typesOf } from '../../test/logs.ts'
import { everyDelta } from '../../test/samples.ts'
import { type Content, contentSchema, data, emptyContent, media, reasoning, text, toolRequest } from '../entities/content.ts'
import { type Message, messageSchema } from '../entities/entities.ts'
import { formatCursor } from '../events/cursor.ts'
import { type Delta, isTextDelta } from '../events/delta.ts'
import { parseEvent } from '../events/event.ts'
import { delta, done, full, start, type Update } from '../events/update.ts'
import { applyEvent, emptyState, messagesOf, restoreState } from './task-fold.ts'

const fragment = (index: number, json: string) => delta(index, { type: 'tool_request', text: json })

/** The text of a message after each update. */
function textAfterEach(...updates: Update[]): (string | undefined)[] {
  return updates.map((_, i) => {
    const content = composed(...updates.slice(0, i + 1)).messages[0]?.content
    return content?.type === 'text' ? content.text : undefined
  })
}

describe('deltas are transient, messages are stored', () => {
  test('a delta is another type than a content, and a message holds contents only', () => {
    expectTypeOf<Delta>().not.toExtend<Content>()
    expectTypeOf<Extract<Delta, { type: 'text' }>>().not.toExtend<Content>()
    const onlyDeltas = everyDelta.filter(({ type }) => type !== 'text')
    expect(onlyDeltas.filter(each => contentSchema.safeParse(each).success)).toEqual([])
  })

  test('four chunks become exactly one message of text', () => {
    const { messages } = composed(...['The', ' answer', ' is', ' 42.'].map(chunk => delta(0, chunk)), done(0))
    expect(messages).toMatchObject([{ index: 0, author: 'agent', content: text('The answer is 42.'), status: 'complete' }])
  })

  test('readers see every step of the text; only the closed message is complete', () => {
    const steps = [start(0, text()), delta(0, 'The '), delta(0, 'answer'), delta(0, ' is '), delta(0, '42.')]
    expect(textAfterEach(...steps)).toEqual(['', 'The ', 'The answer', 'The answer is ', 'The answer is 42.'])
    expect(composed(...steps).messages[0]?.status).toBe('streaming')
    expect(composed(...steps, done(0)).messages[0]?.status).toBe('complete')
  })

  test('after the turn only messages remain, and they load without replaying deltas', () => {
    const { messages } = composed(start(0, toolRequest('1', 'f')), fragment(0, '{"a"'), fragment(0, ':1}'), done(0))
    const stored: Message[] = JSON.parse(JSON.stringify(messages))
    expect(Object.keys(stored[0] ?? {}).filter(key => !(key in messageSchema.shape))).toEqual([])
    expect(JSON.stringify(stored)).not.toMatch(/delta|raw|offset/)
    expect(messagesOf(restoreState('9-9', { status: 'completed', turns: [], messages: stored }))).toEqual(messages)
  })

  test('an old reader ignores a new delta type, and stored messages do not change', () => {
    const { events } = composed(start(0, text()), delta(0, 'a'))
    const later = { ...events[1], delta: { type: 'strikethrough', from: 0, to: 1 } }
    expect(parseEvent(JSON.parse(JSON.stringify(later)))).toBeNull()
    expect(Object.keys(messageSchema.shape)).not.toContain('delta')
  })

  test('a log with deltas of a new type gives an old reader the same messages, in the format that is stored', () => {
    const { events, messages } = composed(start(0, text()), delta(0, 'a'), delta(0, 'b'), done(0))
    const newer: object[] = events.flatMap((event): object[] =>
      event.type === 'message.delta' ? [event, { ...event, delta: { type: 'strikethrough', from: 0, to: 1 } }] : [event],
    )
    const read = newer.flatMap(event => parseEvent(JSON.parse(JSON.stringify(event))) ?? [])
    const folded = read.reduce((state, event, place) => applyEvent(state, event, formatCursor(1, place + 1)), emptyState)
    expect(messagesOf(folded)).toEqual(messages)
    expect(messagesOf(folded).map(message => messageSchema.strict().parse(message))).toEqual(messages)
  })
})

describe('the six operations', () => {
  test('begin, append text, append bytes, replace, set metadata, commit: each has its event', () => {
    const operations: [Update, string][] = [
      [start(0, text()), 'message.started'],
      [delta(0, 'a'), 'message.delta'],
      [start(1, media('audio/wav')), 'message.started'],
      [delta(1, { type: 'media', bytes: 'AQ==' }), 'message.delta'],
      [start(2, data()), 'message.started'],
      [delta(2, { type: 'data', value: { a: 1 } }), 'message.delta'],
      [delta(2, { type: 'metadata', metadata: { m: 1 } }), 'message.delta'],
      [done(0), 'message.finished'],
      [full(1, media('audio/wav', 'AQ==')), 'message.replaced'],
    ]
    const { events } = composed(...operations.map(([update]) => update))
    expect(typesOf(events)).toEqual(operations.map(([, type]) => type))
  })

  test('bytes are appended in order of arrival', () => {
    const bytes = ['AQ==', 'Ag==', 'AwQ='].map(each => delta(0, { type: 'media', bytes: each }))
    expect(composed(start(0, media('image/png')), ...bytes).messages).toMatchObject([{ content: media('image/png', 'AQIDBA==') }])
  })

  test('a value replaces the earlier value and is not merged', () => {
    const { messages } = composed(start(0, data({ a: 1, b: { c: 2 } })), delta(0, { type: 'data', value: { b: {} } }))
    expect(messages[0]?.content).toEqual(data({ b: {} }))
  })

  test('metadata is replaced as a whole, the last write wins, and the content does not change', () => {
    const metadata = (map: Record<string, number>) => delta(0, { type: 'metadata', metadata: map })
    const { messages } = composed(delta(0, 'kept'), metadata({ a: 1 }), metadata({ b: 2 }))
    expect(messages).toMatchObject([{ content: text('kept') }])
    expect(messages[0]?.metadata).toEqual({ b: 2 })
  })

  test('every delta does one of four things: append text, append bytes, replace, set metadata', () => {
    const byBehaviour = everyDelta.map(each => (isTextDelta(each) ? 'append text' : each.type))
    expect(new Set(byBehaviour)).toEqual(new Set(['append text', 'media', 'data', 'metadata']))
  })

  test('every kind of content streams by one of them, so a new kind needs no new operation unless it streams in a new way', () => {
    const kinds = contentSchema.options.map(option => option.shape.type.value)
    const operationsOf = (kind: Content['type']) =>
      new Set(
        everyDelta
          .filter(each => each.type !== 'metadata' && accepts(kind, each))
          .map(each => (isTextDelta(each) ? 'append text' : each.type)),
      )
    const operations: Record<Content['type'], string[]> = {
      text: ['append text'],
      reasoning: ['append text'],
      tool_request: ['append text'],
      tool_response: ['data', 'append text'],
      data: ['append text', 'data'],
      media: ['media'],
    }
    expect(Object.fromEntries(kinds.map(kind => [kind, [...operationsOf(kind)]]))).toEqual(operations)

    function accepts(kind: Content['type'], each: Delta): boolean {
      const { composer } = composed(start(0, emptyContent(kind)))
      try {
        return composer.compose(delta(0, each)).length > 0
      } catch {
        return false
      }
    }
  })

  test('each applies only to matching content, and only while the message is open', () => {
    const bases = [text(), reasoning(), toolRequest('1', 'f'), media('image/png'), data()]
    const appends: Delta[] = [
      { type: 'text', text: 'a' },
      { type: 'reasoning_content', index: 0, text: 'a' },
      { type: 'tool_request', text: '{}' },
      { type: 'media', bytes: 'AQ==' },
      { type: 'data', value: 1 },
    ]
    for (const [i, base] of bases.entries()) {
      for (const [k, append] of appends.entries()) {
        const attempt = () => composed(start(0, base), delta(0, append))
        if (i === k) expect(attempt().messages[0]?.content).not.toEqual(base)
        else expect(attempt).toThrow(expect.objectContaining({ code: 'delta_type_mismatch' }))
      }
      const late = composed(start(0, base), done(0), delta(0, appends[i] ?? 'a'))
      expect(late.messages[0]?.content).toEqual(base)
      expect(late.composer.discarded()).toBe(1)
    }
  })

  test('begin, appends, commit; without the commit it is a valid message in progress', () => {
    const { messages } = composed(start(0, text()), delta(0, 'Hel'), delta(0, 'lo'))
    expect(messageSchema.parse(messages[0])).toMatchObject({ status: 'streaming', content: text('Hello') })
  })

  test('a full message carries the whole content, so a reader that missed the deltas has it all', () => {
    const { events } = composed(delta(0, 'draf'), delta(0, 't'), full(0, 'whole'))
    const missed = events.filter(event => event.type !== 'message.delta')
    expect(messagesFrom(missed)).toEqual(messagesFrom(events))
    expect(messagesFrom(events.slice(-1))).toMatchObject([{ content: text('whole'), status: 'complete' }])
  })
})

describe('several messages', () => {
  test('a text, then a tool call, come out in that order', () => {
    const { messages } = composed(
      ...[start(0, text()), delta(0, 'Let me look.'), done(0)],
      ...[start(1, toolRequest('call-7', 'read_file')), fragment(1, '{"path": '), fragment(1, '"src/main.rs"}'), done(1)],
    )
    expect(messages).toMatchObject([
      { content: text('Let me look.') },
      { content: toolRequest('call-7', 'read_file', { path: 'src/main.rs' }) },
    ])
  })

  test('interleaved deltas fold into their own messages, by index alone', () => {
    const { messages } = composed(
      start(0, toolRequest('call-1', 'read')),
      fragment(0, '{"path":'),
      start(1, toolRequest('call-2', 'list')),
      fragment(1, '{"dir":'),
      fragment(0, '"a"}'),
      fragment(1, '"b"}'),
      done(1),
      done(0),
    )
    expect(messages.map(({ content }) => content)).toEqual([
      toolRequest('call-1', 'read', { path: 'a' }),
      toolRequest('call-2', 'list', { dir: 'b' }),
    ])
  })

  test('reasoning comes before the answer and is distinguished by its type', () => {
    const { messages } = composed(delta(0, { type: 'reasoning_content', index: 0, text: 'Hm.' }), done(0), delta(1, '42.'), done(1))
    expect(messages.map(({ content }) => content)).toEqual([reasoning([], ['Hm.']), text('42.')])
  })
})

describe('tool calls', () => {
  test('id and name are there from the start, the arguments stream as text', () => {
    const open = composed(start(0, toolRequest('call-7', 'read_file')), fragment(0, '{"pa'))
    expect(open.events[0]).toMatchObject({ content: { callId: 'call-7', name: 'read_file' } })
    const closed = composed(start(0, toolRequest('call-7', 'read_file')), fragment(0, '{"path": "src/main.rs"}'), done(0))
    expect(closed.messages[0]?.content).toEqual(toolRequest('call-7', 'read_file', { path: 'src/main.rs' }))
  })

  test('six fragments or four give the same arguments', () => {
    const six = ['{"pa', 'th":', ' "s', 'rc/m', 'ain.', 'rs"}']
    const four = ['{"path": ', '"src/', 'main.rs', '"}']
    const content = (pieces: string[]) => composed(...pieces.map(piece => fragment(0, piece)), done(0)).messages[0]?.content
    expect(content(six)).toEqual(content(four))
    expect(content(six)).toMatchObject({ arguments: { path: 'src/main.rs' } })
  })

  test('incomplete arguments are never parsed, neither while the call is open nor when it ends there', () => {
    const half = [start(0, toolRequest('call-7', 'read_file')), fragment(0, '{"pa')]
    expect(composed(...half).messages).toMatchObject([{ status: 'streaming', content: { arguments: {}, raw: '{"pa' } }])
    expect(composed(...half, done(0)).messages).toMatchObject([{ status: 'failed', content: { arguments: {}, raw: '{"pa' } }])
  })
})

test('after each delta, the fold of the deltas equals the message of the writer', () => {
  const { events, composer } = composed(start(0, text('a')), delta(0, 'b'), delta(1, 'c'), done(0), full(1, 'd'))
  expect(messagesOf(fold(logOf(events)))).toEqual(composer.messages())
})
