/** What a run is a part of reaches its model, the model's provider and its tools, as spans below it. */
import type { Span, SpanAttributes, SpanEnd } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { callChunk, chunk, namedSse, sse, withProvider } from '../test/provider-server.ts'
import { anthropicModel } from './anthropic-model.ts'
import { user } from './conversation.ts'
import { openaiModel } from './openai-model.ts'
import { runAgent } from './run-agent.ts'
import { fail } from './script.ts'
import { scriptedModel } from './scripted-model.ts'
import { defineTool } from './tool.ts'

const messages = [user('hi')]

test('each call of the model and of a tool is a span, and whoever is called is told which', async () => {
  const heard: (string | undefined)[] = []
  const tools = [
    defineTool({ name: 'ok', description: '', input: z.object({}), run: (_, { traceparent }) => void heard.push(traceparent) }),
    defineTool({ name: 'bad', description: '', input: z.object({}), run: () => Promise.reject(new Error('no')) }),
  ]
  const asked = sse(
    callChunk({ index: 0, id: 'a', function: { name: 'ok', arguments: '{}' } }),
    callChunk({ index: 1, id: 'b', function: { name: 'bad', arguments: '{}' } }),
    chunk({}, 'tool_calls', { usage: { prompt_tokens: 10, completion_tokens: 3 } }),
    '[DONE]',
  )
  const answered = sse(chunk({ content: 'done' }), chunk({}, 'stop'), '[DONE]')
  await withProvider([{ chunks: [asked] }, { chunks: [answered] }], async ({ url, requests }) => {
    const { root, spans } = record()
    await runAgent({ model: openaiModel({ baseUrl: url, model: 'm' }), tools, messages, span: root }).result
    expect(spans.map(({ name, attributes, end }) => [name, attributes['gen_ai.operation.name'], end?.failure?.code])).toEqual([
      ['chat m', 'chat', undefined],
      ['execute_tool ok', 'execute_tool', undefined],
      ['execute_tool bad', 'execute_tool', 'tool_failed'],
      ['chat m', 'chat', undefined],
    ])
    expect(spans[0]?.end?.attributes).toMatchObject({ 'gen_ai.usage.input_tokens': 10, 'gen_ai.response.finish_reason': 'tool_use' })
    expect(requests.map(({ headers }) => headers.traceparent)).toEqual([spans[0]?.traceparent, spans[3]?.traceparent])
    expect(heard).toEqual([spans[1]?.traceparent])
  })
})

test('Anthropic is told as well, and without a trace there is no header', async () => {
  const body = namedSse({ type: 'message_stop' })
  await withProvider([{ chunks: [body] }], async ({ url, requests }) => {
    const model = anthropicModel({ baseUrl: url, model: 'm', retry: { maxRetries: 0 } })
    await model.stream({ messages }, { traceparent: 'here' }).result.catch(() => {})
    await model.stream({ messages }).result.catch(() => {})
    expect(requests.map(({ headers }) => headers.traceparent)).toEqual(['here', undefined])
  })
})

test('a model that fails ends its span with the failure', async () => {
  const { root, spans } = record()
  await runAgent({ model: scriptedModel([[fail('out of order')]]), messages, span: root }).result.catch(() => {})
  expect(spans).toMatchObject([{ name: 'chat scripted', end: { failure: { code: 'agent_error' } } }])
})

type Recorded = { name: string; attributes: SpanAttributes; traceparent: string; end: SpanEnd | null }

function record(): { root: Span; spans: Recorded[] } {
  const spans: Recorded[] = []
  const root: Span = {
    traceparent: 'root',
    start(name, { attributes = {} } = {}) {
      const recorded: Recorded = { name, attributes, traceparent: `span ${spans.length}`, end: null }
      spans.push(recorded)
      const end = (how: SpanEnd = {}) => {
        recorded.end = how
      }
      return { ...root, traceparent: recorded.traceparent, end }
    },
    end: () => {},
  }
  return { root, spans }
}
