/** Chat completions over real sockets, including servers that misbehave. */
import { type Message, text, toolRequest } from '@rivulet/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { collect, folded, lines } from '../../../test/collect.ts'
import { callChunk, chunk, inPieces, type ProviderResponse, sse, withProvider } from '../../../test/provider-server.ts'
import { AgentError } from '../../agent-error.ts'
import { user } from '../../model/conversation.ts'
import type { ProviderOptions } from '../provider-options.ts'
import { openaiModel } from './openai-model.ts'

const quick = { retry: { baseDelayMs: 1, maxDelayMs: 20 } }
const asking = { messages: [user('hi')] }
const usageChunk = {
  choices: [],
  usage: { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13, prompt_tokens_details: { cached_tokens: 0 } },
}

describe('a response', () => {
  test('of text is one message, emitted delta by delta', async () => {
    const { updates, result } = await ask(
      sse(...['The', ' answer', ' is', ' 42.'].map(content => chunk({ content })), chunk({}, 'stop'), '[DONE]'),
    )
    expect(updates.filter(({ type }) => type === 'delta')).toHaveLength(4)
    expect(lines(updates)).toEqual(['0 start text', '0 text The answer is 42.', '0 done stop'])
    expect(result).toMatchObject({ text: 'The answer is 42.', toolCalls: [], stopReason: 'stop', rawStopReason: 'stop' })
  })

  test('of text and calls keeps their order, and interleaved calls apart', async () => {
    const body = sse(
      chunk({ content: 'Let me look.' }),
      callChunk({ index: 0, id: 'a', function: { name: 'read', arguments: '' } }),
      callChunk({ index: 0, function: { arguments: '{"path":' } }),
      callChunk({ index: 1, id: 'b', function: { name: 'list', arguments: '{' } }),
      callChunk({ index: 0, function: { arguments: '"x"}' } }),
      callChunk({ index: 1, function: { arguments: '}' } }),
      chunk({}, 'tool_calls'),
      usageChunk,
      '[DONE]',
    )
    const { updates, result } = await ask(body)
    expect(lines(updates)).toEqual([
      '0 start text',
      '0 text Let me look.',
      '0 done',
      '1 start tool_request a read',
      '1 tool_request {"path":',
      '2 start tool_request b list',
      '1 tool_request "x"}',
      '2 tool_request {}',
      '1 done',
      '2 done tool_use',
    ])
    expect(result?.toolCalls).toEqual([toolRequest('a', 'read', { path: 'x' }), toolRequest('b', 'list', {})])
    expect(result?.messages.at(-1)).toMatchObject({ stopReason: 'tool_use', usage: { inputTokens: 10, outputTokens: 3 } })
  })

  test('keeps a call without arguments before the text that follows it', async () => {
    const { updates } = await ask(
      sse(callChunk({ index: 0, id: 'a', function: { name: 'f' } }), chunk({ content: 'So.' }), chunk({}, 'tool_calls')),
    )
    expect(lines(updates)).toEqual(['0 start tool_request a f', '1 start text', '1 text So.', '0 done', '1 done tool_use'])
  })

  test('begins with the reasoning, and uses one of two copies of it', async () => {
    const body = sse(
      chunk({ reasoning: 'Hm', reasoning_content: 'Hm' }),
      chunk({ reasoning_text: '.', content: '' }),
      chunk({ content: 'Yes.' }),
      chunk({}, 'stop'),
    )
    const { updates } = await ask(body)
    expect(lines(updates)).toEqual(['0 start reasoning', '0 reasoning_content Hm.', '0 done', '1 start text', '1 text Yes.', '1 done stop'])
  })

  test('keeps encrypted reasoning with its call', async () => {
    const detail = { type: 'reasoning.encrypted', id: 'a', data: 'secret' }
    const body = sse(
      chunk({ reasoning_details: [detail, { type: 'reasoning.text', text: 'x' }] }),
      callChunk({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }),
      chunk({}, 'tool_calls'),
    )
    const { result } = await ask(body)
    expect(result?.messages[0]?.metadata).toEqual({ openai: { reasoningDetails: [detail] } })
  })

  test('that is a refusal is a text with the metadata refusal', async () => {
    const { result } = await ask(sse(chunk({ refusal: 'I will ' }), chunk({ refusal: 'not.' }), chunk({}, 'content_filter')))
    expect(result).toMatchObject({ text: 'I will not.', stopReason: 'content_filter' })
    expect(result?.messages[0]?.metadata).toEqual({ refusal: true })
  })

  test('with an image, audio and sources keeps all of them, each source once', async () => {
    const cite = (url: string) => ({ type: 'url_citation', url_citation: { url, title: 'T' } })
    const body = sse(
      chunk({ content: 'See', annotations: [cite('https://a')] }),
      chunk({ annotations: [cite('https://a'), cite('https://b')] }),
      chunk({ images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAEC' } }] }),
      chunk({ audio: { id: 'x', data: 'AAE=' } }),
      chunk({ audio: { data: 'Ag==' } }),
      chunk({}, 'stop'),
    )
    const { updates, result } = await ask(body)
    expect(result?.messages.map(({ content }) => content)).toEqual([
      text('See', 'markdown'),
      { type: 'media', mimeType: 'image/png', data: 'AAEC' },
      { type: 'media', mimeType: 'audio/pcm', data: 'AAEC' },
    ])
    expect(result?.messages[0]?.metadata).toEqual({ citations: [cite('https://a').url_citation, cite('https://b').url_citation] })
    expect(result?.messages[2]?.metadata).toEqual({ openai: { audioId: 'x' } })
    expect(updates.at(-1)).toMatchObject({ type: 'done', index: 2, stopReason: 'stop' })
  })

  test('with a list of parts is its texts, and keeps parts of an unknown type unchanged', async () => {
    const unknown = { type: 'reference', reference_ids: [3] }
    const { result } = await ask(sse(chunk({ content: [{ type: 'text', text: 'So' }, unknown, 'me'] }), chunk({}, 'stop')))
    expect(result?.messages.map(({ content }) => content)).toEqual([
      text('So', 'markdown'),
      { type: 'data', data: { provider: 'openai', block: unknown, deltas: [] } },
      text('me', 'markdown'),
    ])
  })

  test('with a source after its text is closed emits a custom update', async () => {
    const call = callChunk({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } })
    const late = chunk({ annotations: [{ url_citation: { url: 'https://late' } }] })
    const { updates } = await ask(sse(chunk({ content: 'See' }), call, late, chunk({}, 'tool_calls')))
    expect(updates).toContainEqual({ type: 'custom', name: 'citations', data: [{ url: 'https://late' }], index: 0 })
  })

  test('without content is an empty text that carries stop reason and usage', async () => {
    const { updates, result } = await ask(sse(chunk({}, 'content_filter'), usageChunk, '[DONE]'))
    expect(lines(updates)).toEqual(['0 start text', '0 done content_filter'])
    expect(result).toMatchObject({ text: '', stopReason: 'content_filter', usage: { inputTokens: 10 } })
  })

  test('that reaches its length limit before any output is an error', async () => {
    expect((await ask(sse(chunk({}, 'length'), '[DONE]'))).error).toMatchObject({ message: expect.stringContaining('length limit') })
  })

  test.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['content_filter', 'content_filter'],
    ['tool_calls', 'stop'],
    ['something_new', 'other'],
  ])('that stops with %s after a text has the stop reason %s', async (raw, unified) => {
    expect((await ask(sse(chunk({ content: 'x' }), chunk({}, raw), '[DONE]'))).result).toMatchObject({
      stopReason: unified,
      rawStopReason: raw,
    })
  })

  test('with the finish reason stop and a call has the stop reason tool_use', async () => {
    const body = sse(callChunk({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }), chunk({}, 'stop'), '[DONE]')
    expect((await ask(body)).result).toMatchObject({ stopReason: 'tool_use', rawStopReason: 'stop' })
  })

  test('with several choices uses the first of them, and warns once', async () => {
    const several = {
      choices: [
        { index: 1, delta: { content: 'no' } },
        { index: 0, delta: { content: 'yes' } },
      ],
    }
    const { updates, result } = await ask(sse(several, several, chunk({}, 'stop')))
    expect(result?.text).toBe('yesyes')
    expect(updates.filter(({ type }) => type === 'custom')).toEqual([
      { type: 'custom', name: 'model_warning', data: { reason: expect.stringContaining('several choices') } },
    ])
  })
})

describe('usage', () => {
  test('is the latest report of each field; a report without a field does not clear it, and zero is a number', async () => {
    const body = sse(
      chunk({ content: 'x' }, null, { usage: { prompt_tokens: 5, completion_tokens: 9 } }),
      chunk({ content: 'y' }, null, { usage: null }),
      { choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage: { completion_tokens: 0, prompt_tokens: null } }] },
      '[DONE]',
    )
    expect((await ask(body)).result?.usage).toEqual({ inputTokens: 5, outputTokens: 0 })
  })

  test('of a chunk without choices, after the stop reason, is read', async () => {
    const { result, updates } = await ask(sse(chunk({ content: 'x' }), chunk({}, 'stop'), usageChunk, '[DONE]'))
    const usage = { inputTokens: 10, outputTokens: 3, totalTokens: 13, cacheReadTokens: 0 }
    expect(result?.usage).toEqual(usage)
    expect(updates.at(-1)).toMatchObject({ usage })
  })
})

describe('a malformed response', () => {
  test('loses only its malformed parts: invalid JSON, nulls, unknown names, wrong types', async () => {
    const body = [
      ': ping\n\nevent: ping\ndata: {}\n\n',
      sse('{oops', 'null', '[]', '7', { choices: null }, { choices: [] }, { choices: [{}] }),
      sse({ choices: [{ delta: { content: null, tool_calls: null }, finish_reason: null }] }),
      sse({ choices: [{ delta: { content: 7, tool_calls: [null, 5, { function: null }, { index: -1, id: 4 }] } }] }),
      sse(chunk({ content: 'ok' }), chunk({}, 'stop')),
    ].join('')
    const { updates } = await ask(body)
    expect(lines(updates)).toEqual(['0 start text', '0 text ok', '0 done stop'])
  })

  test.each([
    ['an unnamed frame', sse({ error: { message: 'overloaded', code: 'oops' } })],
    ['a named one', 'event: error\ndata: overloaded\n\n'],
    ['one with JSON', 'event: error\ndata: {"error":{"message":"overloaded"}}\n\n'],
    ['a finish reason', sse({ choices: [{ index: 0, delta: {}, finish_reason: 'error' }], error: { message: 'overloaded' } })],
  ])('with an error in the stream, sent as %s, fails and keeps the partial output', async (_, error) => {
    const { updates, error: thrown } = await ask(sse(chunk({ content: 'Half' })) + error + sse(chunk({ content: ' more' }), '[DONE]'))
    expect(lines(updates)).toEqual(['0 start text', '0 text Half', '0 done failed error'])
    expect(thrown).toBeInstanceOf(AgentError)
    expect(thrown).toMatchObject({ message: expect.stringContaining('overloaded'), partial: { text: 'Half', stopReason: 'error' } })
    expect(folded(updates)[0]).toMatchObject({ status: 'failed', error: { code: 'agent_error' }, content: { text: 'Half' } })
  })

  test('with an error after the stop reason fails too', async () => {
    const { error } = await ask(sse(chunk({ content: 'All' }), chunk({}, 'stop'), { error: { message: 'billing' } }))
    expect(error).toMatchObject({ message: 'The model failed: billing', partial: { text: 'All' } })
  })

  test('whose body ends before the model has finished fails and keeps the partial output', async () => {
    const { error, updates } = await ask(sse(chunk({ content: 'Half' })))
    expect(error).toMatchObject({ message: expect.stringContaining('before the model had finished'), partial: { text: 'Half' } })
    expect(lines(updates)).toEqual(['0 start text', '0 text Half', '0 done failed error'])
  })

  test('whose connection is cut fails and keeps the partial output', async () => {
    const { error } = await ask({ chunks: [sse(chunk({ content: 'Half' }))], ending: 'hang up' })
    expect(error).toMatchObject({ message: expect.stringContaining('connection to the model provider failed'), partial: { text: 'Half' } })
  })

  test('is complete once the stop reason is known, however the connection ends', async () => {
    for (const ending of ['end', 'hang up'] as const) {
      const { result } = await ask({ chunks: [sse(chunk({ content: 'All' }), chunk({}, 'stop'))], ending })
      expect(result).toMatchObject({ text: 'All', stopReason: 'stop' })
    }
  })

  test('may lack the end of its last line, and may end with [DONE] instead of a stop reason', async () => {
    expect((await ask(`${sse(chunk({ content: 'All' }))}data: [DONE]`)).result).toMatchObject({ text: 'All', stopReason: 'stop' })
  })

  test('whose body stays open after the end is closed, and nothing after the end is read', async () => {
    const chunks = [sse(chunk({ content: 'All' }), chunk({}, 'stop'), '[DONE]', chunk({ content: ' lies' }))]
    await withProvider([{ chunks, ending: 'stay open' }], async server => {
      const { result } = await collect(openaiModel({ baseUrl: server.url, model: 'm' }).stream(asking))
      expect(result?.text).toBe('All')
      await until(() => server.openResponses() === 0)
    })
  })

  test('whose body stays open after the stop reason, without an end, is closed too', async () => {
    await withProvider([{ chunks: [sse(chunk({ content: 'All' }), chunk({}, 'stop'))], ending: 'stay open' }], async server => {
      const { result } = await collect(openaiModel({ baseUrl: server.url, model: 'm', idleTimeoutMs: 50 }).stream(asking))
      expect(result).toMatchObject({ text: 'All', stopReason: 'stop' })
      await until(() => server.openResponses() === 0)
    })
  })

  test('that is silent for idleTimeoutMs fails, and its request is ended', async () => {
    await withProvider([{ chunks: [sse(chunk({ content: 'Half' }))], ending: 'stay open' }], async server => {
      const { error } = await collect(openaiModel({ baseUrl: server.url, model: 'm', idleTimeoutMs: 50 }).stream(asking))
      expect(error).toMatchObject({ message: expect.stringContaining('sent nothing for 50 ms'), partial: { text: 'Half' } })
      await until(() => server.openResponses() === 0)
    })
  })

  test.each([
    ['application/json', '{"error":{"message":"no such model"}}', 'no such model'],
    ['text/html', '<h1>Sign in</h1>', 'Sign in'],
  ])('with a success status in %s is an error', async (type, body, reason) => {
    const { error } = await ask({ headers: { 'content-type': type }, chunks: [body] })
    expect(error).toMatchObject({ message: expect.stringContaining(reason) })
  })

  test('with an endless line, too many calls or too many blocks fails', async () => {
    const limits = { eventChars: 1000, calls: 2, blocks: 3 }
    const endless = Array.from({ length: 10 }, () => 'x'.repeat(300))
    expect((await ask({ chunks: endless }, { limits })).error).toMatchObject({ message: expect.stringContaining('1000 characters') })
    const calls = [0, 1, 2].map(index => callChunk({ index, id: `c${index}`, function: { name: 'f', arguments: '{}' } }))
    expect((await ask(sse(...calls), { limits })).error).toMatchObject({ message: expect.stringContaining('2 tool calls') })
    const blocks = [{ content: 'a' }, { reasoning: 'b' }, { content: 'c' }, { reasoning: 'd' }].map(delta => chunk(delta))
    expect((await ask(sse(...blocks), { limits })).error).toMatchObject({ message: expect.stringContaining('3 blocks') })
  })

  test.each<[string, (i: number) => unknown]>([
    ['lines of one event', i => `data: ${'x'.repeat(100)}${i}\n`],
    ['the name of a call', i => sse(callChunk({ index: 0, function: { name: `${'f'.repeat(100)}${i}` } }))],
    ['encrypted reasoning', i => sse(chunk({ reasoning_details: [{ type: 'reasoning.encrypted', id: `${i}`, data: 'x'.repeat(100) }] }))],
    ['sources before there is a text', i => sse(chunk({ annotations: [{ url_citation: { url: `http://x/${'x'.repeat(100)}${i}` } }] }))],
  ])('with endless %s fails once it exceeds the limit', async (_, piece) => {
    let sent = 0
    const limits = { eventChars: 1000, argumentChars: 1000, asideChars: 1000 }
    const endless = (function* () {
      for (;;) yield piece(sent++) as string
    })()
    const { error } = await ask({ chunks: endless }, { limits })
    expect(error).toMatchObject({ message: expect.stringContaining('1000 characters') })
    expect(sent).toBeGreaterThan(3)
  })

  test('with endless text fails at the limit of a turn', async () => {
    const words = sse(chunk({ content: 'x'.repeat(1024 * 1024) }))
    const endless = (function* () {
      for (;;) yield words
    })()
    const { error, updates } = await ask({ chunks: endless })
    expect(error).toMatchObject({ message: expect.stringContaining('16777216 bytes') })
    expect(folded(updates)).toMatchObject([{ status: 'failed' }])
  })

  test('with an error status whose body never ends fails without the body, and its request is ended', async () => {
    await withProvider([{ status: 401, chunks: ['{"error":'], ending: 'stay open' }], async server => {
      const { error } = await collect(openaiModel({ baseUrl: server.url, model: 'm', idleTimeoutMs: 300_000 }).stream(asking))
      expect(error).toMatchObject({ code: 'model_refused', status: 401 })
      await until(() => server.openResponses() === 0)
    })
  })
})

describe('the bytes of a response', () => {
  const body = [
    '\uFEFF: OPENROUTER PROCESSING\r\n\r\n',
    sse(chunk({ reasoning: 'Öl 🛢' })).replaceAll('\n', '\r\n'),
    sse(chunk({ content: 'Grüße, 世界 🌍' }), callChunk({ index: 0, id: 'a', function: { name: 'f', arguments: '{"q":"ü' } })),
    sse(callChunk({ index: 0, function: { arguments: '🌊"}' } })).replaceAll('\n', '\r'),
    sse(chunk({}, 'tool_calls'), usageChunk, '[DONE]'),
  ].join('')

  test('may be split anywhere', async () => {
    const whole = (await ask(body)).result
    expect(whole).toMatchObject({ text: 'Grüße, 世界 🌍', toolCalls: [toolRequest('a', 'f', { q: 'ü🌊' })] })
    for (const size of [1, 2, 3, 5, 7, 64]) expect((await ask({ chunks: inPieces(body, size) })).result).toEqual(whole)
  })

  test('may be split at any combination of places', async () => {
    const whole = (await ask(body)).result
    const bytes = new TextEncoder().encode(body)
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 20 }), async cuts => {
        const places = [0, ...cuts.sort((a, b) => a - b), bytes.length]
        const chunks = places.slice(1).map((end, at) => bytes.slice(places[at], end))
        expect((await ask({ chunks })).result).toEqual(whole)
      }),
      { numRuns: 30 },
    )
  })

  test('join a character that the model itself cut in two', async () => {
    const { result, updates } = await ask(sse(chunk({ content: 'a\ud83c' }), chunk({ content: '\udf0d!' }), chunk({}, 'stop')))
    expect(result?.text).toBe('a🌍!')
    expect(folded(updates)[0]?.content).toEqual(text('a🌍!', 'markdown'))
  })
})

describe('a retry', () => {
  const good = { chunks: [sse(chunk({ content: 'ok' }), chunk({}, 'stop'), '[DONE]')] }

  test.each([
    [
      'a busy provider',
      { status: 429, headers: { 'content-type': 'application/json', 'retry-after': '0' }, chunks: ['{"error":{"message":"slow down"}}'] },
    ],
    ['a failing provider', { status: 503, chunks: ['no'] }],
    ['an empty stream', { chunks: [] }],
    ['a stream that ends before it begins', { chunks: [sse('[DONE]')] }],
    ['a stream that is cut before it begins', { chunks: [': hi\n\n'], ending: 'hang up' }],
    ['a temporary error in the stream', { chunks: [sse({ error: { message: 'busy', code: 503 } })] }],
  ] satisfies [string, ProviderResponse][])('helps with %s, and readers get an event about it', async (_, bad) => {
    await withProvider([bad, good], async server => {
      const { updates } = await collect(openaiModel({ baseUrl: server.url, model: 'm', ...quick }).stream(asking))
      expect(lines(updates)).toEqual(['custom model_retry', '0 start text', '0 text ok', '0 done stop'])
      expect(updates[0]).toMatchObject({
        data: { retry: 1, delayMs: expect.any(Number), reason: expect.not.stringContaining('slow down') },
      })
      expect(server.requests).toHaveLength(2)
      expect(server.requests[1]?.body).toEqual(server.requests[0]?.body)
    })
  })

  test('waits as long as the provider requests, up to the cap', async () => {
    // Without the cap, the test would take an hour.
    const busy = { status: 429, headers: { 'retry-after': '3600' }, chunks: ['no'] }
    await withProvider([busy, good], async server => {
      const begin = performance.now()
      await openaiModel({ baseUrl: server.url, model: 'm', retry: { maxDelayMs: 60 } }).stream(asking).result
      expect(performance.now() - begin).toBeGreaterThan(50)
    })
  })

  test('is made maxRetries times, then the last error is thrown', async () => {
    await withProvider([{ status: 500, chunks: ['{"error":"it broke"}'] }], async server => {
      const { error } = await collect(openaiModel({ baseUrl: server.url, model: 'm', ...quick }).stream(asking))
      expect(error).toMatchObject({ status: 500, isRetryable: true, message: 'The model provider returned 500: it broke' })
      expect(server.requests).toHaveLength(3)
    })
  })

  test.each([400, 401, 404, 422])('is not made for a %s', async status => {
    await withProvider([{ status, chunks: ['{"error":{"message":"no"}}'] }], async server => {
      const { error } = await collect(openaiModel({ baseUrl: server.url, model: 'm', ...quick }).stream(asking))
      expect(error).toMatchObject({ status, isRetryable: false, message: `The model provider returned ${status}: no` })
      expect(server.requests).toHaveLength(1)
    })
  })

  test('is not made after the first output, so readers never receive two beginnings', async () => {
    await withProvider([{ chunks: [sse(chunk({ content: 'Half' }))], ending: 'hang up' }, good], async server => {
      const { updates, error } = await collect(openaiModel({ baseUrl: server.url, model: 'm', ...quick }).stream(asking))
      expect(error).toBeInstanceOf(AgentError)
      expect(updates.filter(({ type }) => type === 'start')).toHaveLength(1)
      expect(server.requests).toHaveLength(1)
    })
  })

  test('does not help when the server is unreachable', async () => {
    const { error } = await collect(openaiModel({ baseUrl: 'http://127.0.0.1:1', model: 'm', ...quick }).stream(asking))
    expect(error).toMatchObject({ message: expect.stringContaining('connection to the model provider failed'), isRetryable: true })
  })
})

describe('an abort', () => {
  test('in the middle ends request and stream without an error, and keeps text and usage', async () => {
    const abort = new AbortController()
    const chunks = [sse(chunk({ content: 'Half' }, null, { usage: { prompt_tokens: 5 } }))]
    await withProvider([{ chunks, ending: 'stay open' }], async server => {
      const stream = openaiModel({ baseUrl: server.url, model: 'm' }).stream(asking, { signal: abort.signal })
      for await (const update of stream) if (update.type === 'delta') abort.abort()
      expect(await stream.result).toMatchObject({ text: 'Half', stopReason: 'aborted', usage: { inputTokens: 5 } })
      expect((await stream.result).messages).toMatchObject([{ status: 'aborted', stopReason: 'aborted' }])
      await until(() => server.openResponses() === 0)
    })
  })

  test('closes an incomplete call', async () => {
    const abort = new AbortController()
    const chunks = [sse(callChunk({ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":' } }))]
    await withProvider([{ chunks, ending: 'stay open' }], async server => {
      const stream = openaiModel({ baseUrl: server.url, model: 'm' }).stream(asking, { signal: abort.signal })
      for await (const update of stream) if (update.type === 'delta') abort.abort()
      const { messages, toolCalls } = await stream.result
      expect(messages).toMatchObject([{ status: 'aborted', content: { raw: '{"x":' } }])
      expect(toolCalls).toEqual([])
    })
  })

  test('before the start makes no request, and gives an empty aborted message', async () => {
    await withProvider([{}], async server => {
      const { updates, result } = await collect(
        openaiModel({ baseUrl: server.url, model: 'm' }).stream(asking, { signal: AbortSignal.abort() }),
      )
      expect(lines(updates)).toEqual(['0 start text', '0 done aborted aborted'])
      expect(result?.stopReason).toBe('aborted')
      expect(server.requests).toEqual([])
    })
  })

  test.each([
    ['before the headers', { chunks: [], ending: 'stay open' }],
    ['before the first event', { chunks: [': hi\n\n'], ending: 'stay open' }],
    ['while it waits for a retry', { status: 429, headers: { 'retry-after': '30' }, chunks: ['no'] }],
  ] satisfies [string, ProviderResponse][])('%s gives an empty aborted message', async (_, response) => {
    await withProvider([response], async server => {
      const abort = new AbortController()
      const collected = collect(openaiModel({ baseUrl: server.url, model: 'm' }).stream(asking, { signal: abort.signal }))
      await until(() => server.requests.length === 1)
      abort.abort()
      const { updates, error } = await collected
      expect(error).toBeUndefined()
      expect(lines(updates.filter(({ type }) => type !== 'custom'))).toEqual(['0 start text', '0 done aborted aborted'])
    })
  })

  test('by a reader that stops early ends the request too', async () => {
    await withProvider([{ chunks: [sse(chunk({ content: 'Half' }))], ending: 'stay open' }], async server => {
      for await (const _ of openaiModel({ baseUrl: server.url, model: 'm' }).stream(asking)) break
      await until(() => server.openResponses() === 0)
    })
  })
})

describe('a request', () => {
  test('requests a stream with usage, and carries key, model, tools and the other options', async () => {
    await withProvider([{ chunks: [sse(chunk({ content: 'x' }), chunk({}, 'stop'))] }], async server => {
      const model = openaiModel({ baseUrl: `${server.url}/v1/`, apiKey: 'k', model: 'm', headers: { 'x-title': 't' }, body: { seed: 7 } })
      const tools = [{ name: 'f', description: 'does', parameters: { type: 'object' } }]
      await model.stream({ ...asking, system: 'Be brief.', tools, toolChoice: { name: 'f' }, maxOutputTokens: 9, temperature: 0 }).result
      const [request] = server.requests
      expect(request).toMatchObject({ path: '/v1/chat/completions', headers: { authorization: 'Bearer k', 'x-title': 't' } })
      expect(request?.body).toEqual({
        model: 'm',
        stream: true,
        stream_options: { include_usage: true },
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'hi' },
        ],
        tools: [{ type: 'function', function: tools[0] }],
        tool_choice: { type: 'function', function: { name: 'f' } },
        max_completion_tokens: 9,
        temperature: 0,
        seed: 7,
      })
    })
  })

  test('with a schema has it as the format of the output', async () => {
    await withProvider([{ chunks: [sse(chunk({ content: '{}' }), chunk({}, 'stop'))] }], async server => {
      const schema = { type: 'object', properties: {} }
      await openaiModel({ baseUrl: server.url, apiKey: 'k', model: 'm' }).stream({ ...asking, schema }).result
      const format = { type: 'json_schema', json_schema: { name: 'output', schema } }
      expect(server.requests[0]?.body).toMatchObject({ response_format: format })
    })
  })

  test('never carries a lone surrogate', async () => {
    await withProvider([{ chunks: [sse(chunk({ content: 'x' }), chunk({}, 'stop'))] }], async server => {
      await openaiModel({ baseUrl: server.url, model: 'm' }).stream({ messages: [user('a\ud83d'), user('\udf0db')] }).result
      expect(server.requests[0]?.body.messages).toEqual([
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a\uFFFD' },
            { type: 'text', text: '\uFFFDb' },
          ],
        },
      ])
    })
  })
})

test('the result is the fold of exactly the updates that were sent', async () => {
  const body = sse(
    chunk({ reasoning: 'a' }),
    chunk({ content: 'b' }),
    callChunk({ index: 0, id: 'x', function: { name: 'f', arguments: '{"a":1}' } }),
    chunk({ content: 'c' }),
    callChunk({ index: 1, id: 'y', function: { name: 'f', arguments: '{"a":' } }),
    chunk({}, 'tool_calls'),
    usageChunk,
  )
  const { updates, result } = await ask(body)
  expect(result?.messages).toEqual(folded(updates).map(withoutPlace))
})

async function ask(response: string | ProviderResponse, options: Partial<ProviderOptions> = {}) {
  const given = typeof response === 'string' ? { chunks: [response] } : response
  return withProvider([given], async ({ url }) => {
    return collect(openaiModel({ baseUrl: url, model: 'm', retry: { maxRetries: 0 }, ...options }).stream(asking))
  })
}

function withoutPlace({ task: _, turn: __, attempt: ___, createdAt: ____, finishedAt: _____, ...spoken }: Message) {
  return spoken
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(resolve => setTimeout(resolve, 5))
}
