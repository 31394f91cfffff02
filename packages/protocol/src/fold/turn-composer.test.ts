/** The table of cases at one index, seen from the writer: the events that come out, and what a reader folds from them. */
import { describe, expect, test } from 'vitest'
import { composed, firstTurn, messagesFrom, task, typesOf } from '../../test/logs.ts'
import { data, media, reasoning, text, toolRequest, toolResponse } from '../entities/content.ts'
import type { EventOf } from '../events/event.ts'
import { custom, delta, done, full, start, type Update } from '../events/update.ts'
import { createTurnComposer } from './turn-composer.ts'

const strict = { strict: true }

describe('starting', () => {
  test('`start` with content, then deltas: the content is the base, and its format and other fields are kept', () => {
    const { messages, events } = composed(start(0, text('# ', 'markdown'), { a: 1 }), delta(0, 'Title'), done(0))
    expect(typesOf(events)).toEqual(['message.started', 'message.delta', 'message.finished'])
    expect(messages).toMatchObject([{ content: text('# Title', 'markdown'), metadata: { a: 1 }, author: 'agent', status: 'complete' }])
  })

  test('a delta without a start gives an empty start of its content type, then the delta once', () => {
    const { events, messages } = composed(delta(0, 'one '), delta(0, 'two'))
    expect(typesOf(events)).toEqual(['message.started', 'message.delta', 'message.delta'])
    expect(events[0]).toMatchObject({ content: text('') })
    expect(messages).toMatchObject([{ content: text('one two'), status: 'streaming' }])
  })

  test.each([
    [{ type: 'reasoning_summary', index: 1, text: 'a' }, reasoning()],
    [{ type: 'reasoning_content', index: 0, text: 'a' }, reasoning()],
    [{ type: 'data_json', text: '1' }, data()],
    [{ type: 'data', value: 1 }, data()],
    [{ type: 'tool_request', text: '{}' }, toolRequest('', '')],
    [{ type: 'tool_response', text: 'a' }, toolResponse('', '')],
    [{ type: 'media', bytes: 'AQ==' }, media('application/octet-stream')],
    [{ type: 'metadata', metadata: { a: 1 } }, text('')],
  ] as const)('a first delta of %j begins a message of %j', (first, content) => {
    const { events } = composed(delta(0, first))
    expect(events[0]).toMatchObject({ type: 'message.started', content })
    expect(events[1]).toMatchObject({ type: 'message.delta', delta: first, offset: 0 })
  })

  test('indexes count from the first index of the turn', () => {
    const composer = createTurnComposer({ ...firstTurn, firstIndex: 7 })
    expect([...composer.compose(delta(0, 'a')), ...composer.compose(full(1, 'b'))]).toMatchObject([
      { index: 7 },
      { index: 7 },
      { index: 8 },
    ])
    expect(composer.messageAt(1)?.index).toBe(8)
    expect(composer.messageAt(2)).toBeUndefined()
  })

  test.each([start(1, text()), delta(1, 'x'), full(1, 'x')])('$type at index 1 is rejected before index 0 exists', update => {
    const composer = createTurnComposer(firstTurn)
    expect(() => composer.compose(update)).toThrow(expect.objectContaining({ code: 'index_out_of_order' }))
    expect(composer.messages()).toEqual([])
    expect(composer.compose(delta(0, 'then'))).toHaveLength(2)
    expect(() => composer.compose(update)).not.toThrow()
  })

  test('a second start of an open message is discarded and counted, and rejected for a strict caller', () => {
    const { composer } = composed(start(0, text('a')))
    expect(composer.compose(start(0, text('b')))).toEqual([])
    expect(composer.discarded()).toBe(1)
    expect(() => composer.compose(start(0, text('b')), strict)).toThrow(expect.objectContaining({ code: 'index_out_of_order' }))
    expect(composer.messages()).toMatchObject([{ content: text('a') }])
  })
})

describe('deltas', () => {
  test('of the wrong type are rejected, and the message does not change', () => {
    const { composer } = composed(delta(0, 'a'))
    const before = composer.messages()
    expect(() => composer.compose(delta(0, { type: 'media', bytes: 'AQ==' }))).toThrow(
      expect.objectContaining({ code: 'delta_type_mismatch' }),
    )
    expect(composer.messages()).toEqual(before)
    expect(composer.compose(delta(0, 'b'))).toMatchObject([{ offset: 1 }])
  })

  test('that are empty give no event, and open no message', () => {
    const nothings: Update[] = [
      delta(0, ''),
      delta(0, { type: 'reasoning_summary', index: 9, text: '' }),
      delta(0, { type: 'tool_request', text: '' }),
      delta(0, { type: 'media', bytes: '' }),
    ]
    expect(composed(...nothings)).toMatchObject({ events: [], messages: [] })
    expect(composed(delta(7, ''))).toMatchObject({ events: [], messages: [] })
    expect(composed(start(0, reasoning()), ...nothings.slice(1, 2)).messages).toMatchObject([{ content: reasoning() }])
  })

  test('carry the offset at which they begin', () => {
    const { events } = composed(start(0, text('ab')), delta(0, '😀'), delta(0, 'c'))
    expect(offsets(events)).toEqual([2, 4])
    const sound = composed(delta(0, { type: 'media', bytes: 'AQI=' }), delta(0, { type: 'media', bytes: 'Aw==' }))
    expect(offsets(sound.events)).toEqual([0, 2])
    const parts = composed(
      delta(0, { type: 'reasoning_summary', index: 0, text: 'abc' }),
      delta(0, { type: 'reasoning_summary', index: 1, text: 'd' }),
      delta(0, { type: 'reasoning_summary', index: 0, text: 'e' }),
    )
    expect(offsets(parts.events)).toEqual([0, 0, 3])
  })

  test('that are long are split, each piece with its offset, and fold to the same content', () => {
    const composer = createTurnComposer(firstTurn, { limits: { deltaBytes: 4, turnBytes: 1000, jsonDepth: 8 } })
    const events = composer.compose(delta(0, 'ab漢字😀c'))
    expect(events.slice(1)).toMatchObject([
      { delta: { text: 'ab' }, offset: 0 },
      { delta: { text: '漢' }, offset: 2 },
      { delta: { text: '字' }, offset: 3 },
      { delta: { text: '😀' }, offset: 4 },
      { delta: { text: 'c' }, offset: 6 },
    ])
    expect(messagesFrom(events)).toMatchObject([{ content: text('ab漢字😀c') }])
  })

  test('of bytes are sent as canonical base64', () => {
    expect(composed(delta(0, { type: 'media', bytes: 'AR==' })).events[1]).toMatchObject({ delta: { bytes: 'AQ==' } })
  })

  test('without a start are rejected for a strict caller', () => {
    const composer = createTurnComposer(firstTurn)
    expect(() => composer.compose(delta(0, 'a'), strict)).toThrow(expect.objectContaining({ code: 'message_not_started' }))
    expect(composer.messages()).toEqual([])
  })
})

describe('characters', () => {
  test('half a surrogate pair is held back until the other half arrives', () => {
    const { events, messages } = composed(delta(0, 'a\ud83d'), delta(0, '\ude00b'))
    expect(events.slice(1)).toMatchObject([{ delta: { text: 'a' } }, { delta: { text: '😀b' }, offset: 1 }])
    expect(messages).toMatchObject([{ content: text('a😀b') }])
  })

  test('a lone half becomes U+FFFD at the close, or when another character follows', () => {
    expect(composed(delta(0, 'a\ud83d'), done(0)).messages).toMatchObject([{ content: text('a\ufffd'), status: 'complete' }])
    expect(composed(delta(0, '\ud83d'), delta(0, 'b')).messages).toMatchObject([{ content: text('\ufffdb') }])
    const { composer, events } = composed(delta(0, 'a\ud83d'))
    expect(messagesFrom([...events, ...composer.closeAll('aborted')])).toMatchObject([{ content: text('a\ufffd'), status: 'aborted' }])
  })

  test('a first delta that is only half a character opens its message, because the next index may come before the other half', () => {
    const { messages } = composed(delta(0, '\ud83d'), delta(1, 'x'), delta(0, '\ude00'))
    expect(messages).toMatchObject([{ content: text('😀') }, { content: text('x') }])
  })

  test('halves are held separately for each index and part', () => {
    const summary = (index: number, piece: string) => delta(0, { type: 'reasoning_summary', index, text: piece })
    const { messages } = composed(summary(0, '\ud83d'), summary(1, 'b'), delta(1, '\ude00'), summary(0, '\ude00'))
    expect(messages).toMatchObject([{ content: reasoning(['😀', 'b']) }, { content: text('\ufffd') }])
  })

  test('a full message or a value drops the half that it replaces', () => {
    expect(composed(delta(0, 'a\ud83d'), full(0, 'b')).messages).toMatchObject([{ content: text('b') }])
    const json = composed(delta(0, { type: 'data_json', text: '"\ud83d' }), delta(0, { type: 'data', value: 1 }), done(0))
    expect(json.messages).toMatchObject([{ content: data(1), status: 'complete' }])
    const progress = composed(delta(0, { type: 'tool_response', text: '\ud83d' }), delta(0, { type: 'data', value: {} }), done(0))
    expect(progress.messages).toMatchObject([{ content: toolResponse('', '', {}), status: 'complete' }])
  })

  test('NUL and lone halves are replaced wherever they are', () => {
    const { events, messages } = composed(
      start(0, toolRequest('call\0', 'na\ud83dme', { 'k\0': '\ude00' }), { 'm\0': '\0' }),
      delta(1, 'a\0b'),
      delta(2, { type: 'metadata', metadata: { 'm\0': '\0' } }),
      full(3, data('\0')),
      custom('n\0', ['\0']),
      done(0, { error: { code: 'x\0', message: '\ud83d' } }),
    )
    expect(JSON.stringify(events)).not.toMatch(/\\u0000|\\ud83d|\\ude00/)
    expect(messages[0]).toMatchObject({ content: toolRequest('call\ufffd', 'na\ufffdme', { 'k\ufffd': '\ufffd' }) })
  })

  test('unknown fields of a delta do not bypass that', () => {
    const sly = { type: 'delta', index: 0, delta: { type: 'metadata', text: '', metadata: { a: '\0', b: () => 1 } } } as unknown as Update
    expect(() => composed(sly)).toThrow(expect.objectContaining({ code: 'bad_event' }))
  })
})

describe('closing', () => {
  test('`full` at an open index replaces the whole message and closes it as complete', () => {
    const { events, messages } = composed(delta(0, 'draft'), full(0, toolRequest('1', 'f')), delta(1, 'next'))
    expect(typesOf(events).slice(0, 3)).toEqual(['message.started', 'message.delta', 'message.replaced'])
    expect(messages).toMatchObject([{ index: 0, content: toolRequest('1', 'f'), status: 'complete' }, { index: 1 }])
  })

  test('`full` at an index never started creates and closes it', () => {
    const { events, messages } = composed(full(0, 'all', { a: 1 }))
    expect(typesOf(events)).toEqual(['message.replaced'])
    expect(messages).toMatchObject([{ content: text('all'), metadata: { a: 1 }, status: 'complete', author: 'agent' }])
  })

  test('`full` follows the deltas before it, and no event follows it', () => {
    const { events } = composed(delta(0, 'a'), delta(0, 'b'), full(0, 'c'), delta(0, 'd'), done(0))
    expect(typesOf(events)).toEqual(['message.started', 'message.delta', 'message.delta', 'message.replaced'])
  })

  test('`full` keeps the metadata unless it has its own', () => {
    expect(composed(start(0, text(), { a: 1 }), full(0, 'b')).messages[0]?.metadata).toEqual({ a: 1 })
    expect(composed(start(0, text(), { a: 1 }), full(0, 'b', { b: 2 })).messages[0]?.metadata).toEqual({ b: 2 })
  })

  test('`full` with JSON text instead of a value is parsed, or rejected', () => {
    expect(composed(full(0, { ...data(), raw: '[1]' })).messages).toMatchObject([{ content: data([1]) }])
    expect(() => composed(full(0, { ...data(), raw: '[1' }))).toThrow(expect.objectContaining({ code: 'bad_event' }))
  })

  test.each([start(0, text('late')), delta(0, 'late'), full(0, 'late'), done(0)])(
    '$type at a closed index is discarded and counted',
    late => {
      for (const closing of [done(0), full(0, 'b')]) {
        const { composer, messages } = composed(delta(0, 'a'), closing)
        expect(composer.compose(late)).toEqual([])
        expect(composer.discarded()).toBe(1)
        expect(composer.messages()).toEqual(messages.map(message => expect.objectContaining({ content: message.content })))
        expect(() => composer.compose(late, strict)).toThrow(expect.objectContaining({ code: 'message_closed' }))
      }
    },
  )

  test('`done` at an index never started is discarded and counted, and rejected for a strict caller', () => {
    const { composer, events } = composed(done(0), done(5))
    expect([events, composer.discarded()]).toEqual([[], 2])
    expect(() => composer.compose(done(0), strict)).toThrow(expect.objectContaining({ code: 'message_not_started' }))
  })

  test('`start` and `done` without deltas: complete, with the base content', () => {
    expect(composed(start(0, text('base')), done(0)).messages).toMatchObject([{ content: text('base'), status: 'complete' }])
  })

  test('`done` carries stop reason, usage and error', () => {
    const how = { status: 'failed', stopReason: 'error', usage: { outputTokens: 2 }, error: { code: 'refused', message: 'no' } } as const
    expect(composed(delta(0, 'a'), done(0, how)).messages).toMatchObject([how])
  })

  test('invalid JSON text: the event in the log has the status failed, and the text stays in raw', () => {
    const { events, messages } = composed(start(0, toolRequest('1', 'f')), delta(0, { type: 'tool_request', text: '{"pa' }), done(0))
    expect(events.at(-1)).toMatchObject({ type: 'message.finished', status: 'failed', error: { code: 'invalid_json' } })
    expect(messages).toMatchObject([{ status: 'failed', content: { arguments: {}, raw: '{"pa' } }])
  })
})

describe('the end of a turn', () => {
  const three = [delta(0, 'a'), delta(1, 'b'), delta(2, { type: 'tool_request', text: '{"a' }), done(1)]

  test('the handler returns with open indexes: each is finished complete, in index order', () => {
    const { composer, events } = composed(delta(0, 'a'), delta(1, 'b'), delta(2, 'c'), done(1), delta(0, 'd'))
    const closings = composer.closeAll('complete')
    expect(closings).toMatchObject([
      { type: 'message.finished', index: 0, status: 'complete' },
      { type: 'message.finished', index: 2, status: 'complete' },
    ])
    expect(messagesFrom([...events, ...closings]).map(({ status }) => status)).toEqual(['complete', 'complete', 'complete'])
  })

  test('the handler returns in the middle of JSON text: that message is failed', () => {
    const { composer } = composed(...three)
    expect(composer.closeAll('complete')).toMatchObject([
      { index: 0, status: 'complete' },
      { index: 2, status: 'failed' },
    ])
  })

  test('the handler throws: open indexes finish failed with the reason, and keep their content', () => {
    const { composer, events } = composed(...three)
    const error = { code: 'agent_error', message: 'thrown' }
    const messages = messagesFrom([...events, ...composer.closeAll('failed', error)])
    expect(messages).toMatchObject([
      { status: 'failed', error, content: text('a') },
      { status: 'complete', content: text('b') },
      { status: 'failed', error, content: { raw: '{"a' } },
    ])
  })

  test('the turn is aborted: open indexes finish aborted with that stop reason, and keep their content', () => {
    const { composer, events } = composed(...three)
    const messages = messagesFrom([...events, ...composer.closeAll('aborted')])
    expect(messages).toMatchObject([
      { status: 'aborted', stopReason: 'aborted', content: text('a') },
      { status: 'complete', content: text('b') },
      { status: 'aborted', stopReason: 'aborted', content: { raw: '{"a' } },
    ])
    expect(messages[1]).not.toHaveProperty('stopReason')
  })

  test('closing twice closes once', () => {
    const { composer } = composed(delta(0, 'a'))
    expect(composer.closeAll('complete')).toHaveLength(1)
    expect(composer.closeAll('failed')).toEqual([])
  })
})

describe('limits', () => {
  const small = (turnBytes: number) => createTurnComposer(firstTurn, { limits: { deltaBytes: 4, turnBytes, jsonDepth: 2 } })

  test('an update over the output limit is rejected whole, and the fold does not have it', () => {
    const composer = small(10)
    const events = composer.compose(delta(0, '12345678'))
    expect(() => composer.compose(delta(0, '9abcdef'))).toThrow(expect.objectContaining({ code: 'output_too_large' }))
    expect(composer.compose(delta(0, '9a'))).toMatchObject([{ offset: 8 }])
    expect(messagesFrom(events)).toMatchObject([{ content: text('12345678') }])
  })

  test('the limit counts bases, full messages, values and custom events too', () => {
    for (const update of [
      start(0, text('x'.repeat(200))),
      full(0, 'x'.repeat(200)),
      delta(0, { type: 'data', value: 'x'.repeat(200) }),
      custom('n', 'x'.repeat(200)),
    ]) {
      const composer = small(200)
      expect(() => composer.compose(update)).toThrow(expect.objectContaining({ code: 'output_too_large' }))
      expect(composer.messages()).toEqual([])
    }
  })

  test('a turn at its limit can still be closed, even with half a character to write', () => {
    const composer = small(4)
    composer.compose(delta(0, 'a\ud83d'))
    expect(typesOf(composer.closeAll('failed'))).toEqual(['message.delta', 'message.finished'])
  })

  test('values nested too deep are rejected', () => {
    expect(() => small(1000).compose(full(0, data([[[]]])))).toThrow(expect.objectContaining({ code: 'bad_event' }))
    expect(small(1000).compose(full(0, data([[]])))).toHaveLength(1)
  })

  test.each([
    ['an unknown type', { type: 'begin', index: 0 }],
    ['no index', { type: 'delta', delta: { type: 'text', text: 'a' } }],
    ['a negative index', { type: 'done', index: -1 }],
    ['a fractional index', { type: 'done', index: 0.5 }],
    ['an unknown delta', { type: 'delta', index: 0, delta: { type: 'poem', text: 'a' } }],
    ['a null delta', { type: 'delta', index: 0, delta: null }],
    ['bytes that are not base64', { type: 'delta', index: 0, delta: { type: 'media', bytes: '*' } }],
    ['a status that does not close', { type: 'done', index: 0, status: 'streaming' }],
    ['null', null],
    ['undefined', undefined],
  ])('%s is not an update', (_, update) => {
    const composer = createTurnComposer(firstTurn)
    expect(() => composer.compose(update as Update)).toThrow(expect.objectContaining({ code: 'bad_event' }))
    expect(composer.messages()).toEqual([])
  })
})

describe('rewriting a lost log', () => {
  test('closed messages stay closed, open ones stay open, with all their content', () => {
    const { composer } = composed(
      start(0, text('a', 'code'), { m: 1 }),
      done(0, { stopReason: 'length', usage: { outputTokens: 1 } }),
      full(1, 'b'),
      delta(2, { type: 'tool_request', text: '{"a' }),
      done(2, { status: 'aborted' }),
      delta(3, { type: 'data_json', text: '{"b' }),
    )
    const rewritten = composer.rewrite()
    expect(typesOf(rewritten)).toEqual([
      ...['message.started', 'message.finished', 'message.started', 'message.finished', 'message.started', 'message.finished'],
      'message.started',
    ])
    expect(messagesFrom(rewritten)).toMatchObject([
      { content: text('a', 'code'), metadata: { m: 1 }, status: 'complete', stopReason: 'length', usage: { outputTokens: 1 } },
      { content: text('b'), status: 'complete' },
      { content: { raw: '{"a' }, status: 'aborted' },
      { content: { raw: '{"b' }, status: 'streaming' },
    ])
    expect(composer.compose(delta(3, { type: 'data_json', text: '":1}' }))).toMatchObject([{ offset: 3 }])
  })
})

test('every event has its task, turn, attempt and time', () => {
  let clock = 0
  const composer = createTurnComposer({ task, turn: 3, attempt: 2, firstIndex: 4 }, { now: () => (clock += 1) })
  const events = [...composer.compose(delta(0, 'a')), ...composer.compose(custom('n', 1, 0)), ...composer.closeAll('complete')]
  expect(events).toMatchObject([{ at: 1 }, { at: 2 }, { at: 3, index: 4 }, { at: 4 }].map(own => ({ task, turn: 3, attempt: 2, ...own })))
})

test('a custom event changes no message', () => {
  const { composer, events } = composed(delta(0, 'a'), custom('progress', { at: 0.5 }, 0))
  expect(events.at(-1)).toMatchObject({ type: 'custom', name: 'progress', data: { at: 0.5 }, index: 0 })
  expect(messagesFrom(events)).toEqual(messagesFrom(events.slice(0, -1)))
  expect(composer.discarded()).toBe(0)
})

function offsets(events: readonly { type: string }[]): number[] {
  return events.flatMap(event => (event.type === 'message.delta' ? [(event as EventOf<'message.delta'>).offset] : []))
}
