/** Anthropic messages over real sockets. The behaviour that all providers share is tested in openai-model.test.ts. */
import { reasoning, text, toolRequest } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { collect, folded, lines } from '../../../test/collect.ts'
import { inPieces, namedSse, type ProviderResponse, withProvider } from '../../../test/provider-server.ts'
import { user } from '../../model/conversation.ts'
import { type AnthropicOptions, anthropicModel } from './anthropic-model.ts'

const asking = { messages: [user('hi')] }
const begin = { type: 'message_start', message: { usage: { input_tokens: 10, output_tokens: 1, cache_read_input_tokens: 4 } } }
const end = { type: 'message_stop' }

describe('a message', () => {
  test('of thinking, text and a call is emitted as it arrives, in order', async () => {
    const body = namedSse(
      begin,
      open(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'Hm' }),
      delta(0, { type: 'thinking_delta', thinking: '.' }),
      delta(0, { type: 'signature_delta', signature: 'sig' }),
      delta(0, { type: 'signature_delta', signature: 'ned' }),
      close(0),
      open(1, { type: 'text', text: '' }),
      delta(1, { type: 'text_delta', text: 'Let me look.' }),
      close(1),
      open(2, { type: 'tool_use', id: 'toolu_1', name: 'read', input: {} }),
      delta(2, { type: 'input_json_delta', partial_json: '' }),
      delta(2, { type: 'input_json_delta', partial_json: '{"path":' }),
      delta(2, { type: 'input_json_delta', partial_json: '"x"}' }),
      close(2),
      stop('tool_use', { output_tokens: 30 }),
      end,
    )
    const { updates, result } = await ask(body)
    expect(lines(updates)).toEqual([
      '0 start reasoning',
      '0 reasoning_content Hm.',
      '0 {"type":"metadata","metadata":{"anthropic":{"signature":"signed"}}}',
      '0 done',
      '1 start text',
      '1 text Let me look.',
      '1 done',
      '2 start tool_request toolu_1 read',
      '2 tool_request {"path":"x"}',
      '2 done tool_use',
    ])
    expect(updates.filter(update => update.type === 'delta' && update.delta.type === 'tool_request')).toHaveLength(2)
    expect(result).toMatchObject({
      text: 'Let me look.',
      toolCalls: [toolRequest('toolu_1', 'read', { path: 'x' })],
      stopReason: 'tool_use',
      usage: { inputTokens: 10, outputTokens: 30, cacheReadTokens: 4 },
    })
  })

  test('emits the start text of a block as a delta, so that the deltas are the whole text', async () => {
    const body = namedSse(
      open(0, { type: 'text', text: 'The ' }),
      delta(0, { type: 'text_delta', text: 'answer' }),
      close(0),
      open(1, { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } }),
      close(1),
      stop('tool_use'),
      end,
    )
    const { updates } = await ask(body)
    expect(lines(updates)).toContain('0 text The answer')
    expect(folded(updates)[1]?.content).toEqual(toolRequest('a', 'f', { x: 1 }))
  })

  test('with a call without arguments gives it an empty object', async () => {
    const { result } = await ask(namedSse(open(0, { type: 'tool_use', id: 'a', name: 'f', input: {} }), close(0), stop('tool_use'), end))
    expect(result?.toolCalls).toEqual([toolRequest('a', 'f', {})])
  })

  test('keeps redacted thinking unchanged', async () => {
    const { result } = await ask(namedSse(open(0, { type: 'redacted_thinking', data: 'opaque' }), close(0), stop('end_turn'), end))
    expect(result?.messages).toMatchObject([{ content: reasoning(), metadata: { anthropic: { redacted: 'opaque' } } }])
  })

  test('keeps blocks of an unknown type with their deltas, and each source once', async () => {
    const body = namedSse(
      open(0, { type: 'server_tool_use', id: 's', name: 'web_search' }),
      delta(0, { type: 'input_json_delta', partial_json: '{"q":1}' }),
      close(0),
      open(1, { type: 'text', text: 'See' }),
      delta(1, { type: 'citations_delta', citation: { url: 'https://a' } }),
      delta(1, { type: 'citations_delta', citation: { url: 'https://a' } }),
      delta(1, { type: 'new_delta', x: 1 }),
      close(1),
      stop('end_turn'),
      end,
    )
    const { result } = await ask(body)
    expect(result?.messages.map(({ content }) => content)).toEqual([
      {
        type: 'data',
        data: {
          provider: 'anthropic',
          block: { type: 'server_tool_use', id: 's', name: 'web_search' },
          deltas: [{ type: 'input_json_delta', partial_json: '{"q":1}' }],
        },
      },
      text('See', 'markdown'),
    ])
    expect(result?.messages[1]?.metadata).toEqual({ citations: [{ url: 'https://a' }] })
  })

  test('ignores pings, unknown events and malformed events', async () => {
    const odd = namedSse({ type: 'ping' }, { type: 'brand_new', index: 0 }, delta(7, { type: 'text_delta', text: 'nowhere' }), {
      type: 'content_block_start',
      index: 'x',
    })
    const { result } = await ask(`${odd}data: {oops\n\n${message('ok')}`)
    expect(result).toMatchObject({ text: 'ok', stopReason: 'stop' })
  })

  test('reads nothing after its end, and closes a body that stays open', async () => {
    const chunks = [message('All') + namedSse(open(5, { type: 'text', text: 'lies' }))]
    await withProvider([{ chunks, ending: 'stay open' }], async server => {
      const { result } = await collect(anthropicModel({ baseUrl: server.url, model: 'm' }).stream(asking))
      expect(result?.text).toBe('All')
      while (server.openResponses() > 0) await new Promise(resolve => setTimeout(resolve, 5))
    })
  })

  test('may be split anywhere', async () => {
    const body = message('Grüße, 世界 🌍')
    const whole = (await ask(body)).result
    expect(whole?.text).toBe('Grüße, 世界 🌍')
    for (const size of [1, 3, 7]) expect((await ask({ chunks: inPieces(body, size) })).result).toEqual(whole)
  })

  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['refusal', 'content_filter'],
    ['pause_turn', 'other'],
  ])('that stops with %s has the stop reason %s', async (raw, unified) => {
    expect((await ask(message('x', raw))).result).toMatchObject({ stopReason: unified, rawStopReason: raw })
  })
})

describe('a failure', () => {
  const overloaded = namedSse({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })

  test('within the message fails it, and keeps the partial output', async () => {
    const { error, updates } = await ask(namedSse(begin, open(0, { type: 'text', text: 'Half' })) + overloaded)
    expect(lines(updates).at(-1)).toBe('0 done failed error')
    expect(error).toMatchObject({
      message: 'The model failed: Overloaded',
      isRetryable: true,
      partial: { text: 'Half', usage: { inputTokens: 10 } },
    })
  })

  test.each<[string, Record<string, unknown>, (i: number) => Record<string, unknown>]>([
    ['a signature', { type: 'thinking', thinking: '' }, i => ({ type: 'signature_delta', signature: `${'x'.repeat(100)}${i}` })],
    ['a block of an unknown type', { type: 'new' }, i => ({ type: 'new_delta', what: `${'x'.repeat(100)}${i}` })],
    ['sources', { type: 'text', text: '' }, i => ({ type: 'citations_delta', citation: { url: `${'x'.repeat(100)}${i}` } })],
  ])('is %s without end, once it exceeds the limit', async (_, block, piece) => {
    const endless = (function* () {
      yield namedSse(begin, open(0, block))
      for (let i = 0; ; i += 1) yield namedSse(delta(0, piece(i)))
    })()
    const { error } = await ask({ chunks: endless }, { limits: { asideChars: 1000 } })
    expect(error).toMatchObject({ message: expect.stringContaining('more than 1000 characters') })
  })

  test('that may be temporary is retried while the response has emitted nothing', async () => {
    await withProvider(
      [{ chunks: [namedSse(begin) + overloaded] }, { status: 529, chunks: ['{}'] }, { chunks: [message('ok')] }],
      async server => {
        const model = anthropicModel({ baseUrl: server.url, model: 'm', retry: { baseDelayMs: 1 } })
        expect(lines((await collect(model.stream(asking))).updates)).toEqual([
          'custom model_retry',
          'custom model_retry',
          '0 start text',
          '0 text ok',
          '0 done stop',
        ])
        expect(server.requests).toHaveLength(3)
      },
    )
  })

  test('is an end before message_stop without a stop reason', async () => {
    const { error } = await ask(namedSse(begin, open(0, { type: 'text', text: 'Half' })))
    expect(error).toMatchObject({ message: expect.stringContaining('before the model had finished') })
    expect((await ask(namedSse(begin, open(0, { type: 'text', text: 'All' }), stop('end_turn')))).result?.text).toBe('All')
  })
})

test('a request with a schema has it as the format of the output', async () => {
  await withProvider([{ chunks: [message('{}')] }], async server => {
    const schema = { type: 'object', properties: {} }
    await anthropicModel({ baseUrl: server.url, apiKey: 'k', model: 'm' }).stream({ ...asking, schema }).result
    expect(server.requests[0]?.body).toMatchObject({ output_config: { format: { type: 'json_schema', schema } } })
  })
})

test('a request carries key, version, model, tools and the maximum output', async () => {
  await withProvider([{ chunks: [message('x')] }], async server => {
    const model = anthropicModel({ baseUrl: server.url, apiKey: 'k', model: 'm' })
    const tools = [{ name: 'f', description: 'does', parameters: { type: 'object' } }]
    await model.stream({ ...asking, system: 'Be brief.', tools, toolChoice: 'required' }).result
    const [request] = server.requests
    expect(request).toMatchObject({ path: '/v1/messages', headers: { 'x-api-key': 'k', 'anthropic-version': '2023-06-01' } })
    expect(request?.body).toEqual({
      model: 'm',
      stream: true,
      max_tokens: 8192,
      system: 'Be brief.',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
      tools: [{ name: 'f', description: 'does', input_schema: { type: 'object' } }],
      tool_choice: { type: 'any' },
    })
  })
})

function open(index: number, content_block: Record<string, unknown>) {
  return { type: 'content_block_start', index, content_block }
}

function delta(index: number, given: Record<string, unknown>) {
  return { type: 'content_block_delta', index, delta: given }
}

function close(index: number) {
  return { type: 'content_block_stop', index }
}

function stop(stop_reason: string, usage: Record<string, unknown> = {}) {
  return { type: 'message_delta', delta: { stop_reason }, usage }
}

function message(words: string, reason = 'end_turn'): string {
  return namedSse(begin, open(0, { type: 'text', text: '' }), delta(0, { type: 'text_delta', text: words }), close(0), stop(reason), end)
}

async function ask(response: string | ProviderResponse, options: Partial<AnthropicOptions> = {}) {
  const given = typeof response === 'string' ? { chunks: [response] } : response
  return withProvider([given], async ({ url }) =>
    collect(anthropicModel({ baseUrl: url, model: 'm', retry: { maxRetries: 0 }, ...options }).stream(asking)),
  )
}
