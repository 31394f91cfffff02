/** The span given to a run is the parent of the spans of its model calls and tool calls. */
import type { Span, SpanAttributes, SpanEnd } from '@rivulet/runtime/trace'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { callChunk, chunk, namedSse, sse, withProvider } from '../../test/provider-server.ts'
import { user } from '../model/conversation.ts'
import { anthropicModel } from '../providers/anthropic/anthropic-model.ts'
import { openaiModel } from '../providers/openai/openai-model.ts'
import { fail } from '../scripted/script.ts'
import { scriptedModel } from '../scripted/scripted-model.ts'
import { defineTool } from '../tools/tool.ts'
import { runAgent } from './run-agent.ts'

const messages = [user('hi')]

test('each call of the model and of a tool is a span, and the provider and the tool receive its traceparent', async () => {
  const received: (string | undefined)[] = []
  const tools = [
    defineTool({ name: 'ok', description: '', input: z.object({}), run: (_, { traceparent }) => void received.push(traceparent) }),
    defineTool({ name: 'bad', description: '', input: z.object({}), run: () => Promise.reject(new Error('no')) }),
  ]
  const asked = sse(
    callChunk({ index: 0, id: 'a', function: { name: 'ok', arguments: '{}' } }),
    callChunk({ index: 1, id: 'b', function: { name: 'bad', arguments: '{}' } }),
    chunk({}, 'tool_calls', { usage: { prompt_tokens: 10, completion_tokens: 3 } }),
    '[DONE]',
  )
  const final = sse(chunk({ content: 'done' }), chunk({}, 'stop'), '[DONE]')
  await withProvider([{ chunks: [asked] }, { chunks: [final] }], async ({ url, requests }) => {
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
    expect(received).toEqual([spans[1]?.traceparent])
  })
})

test('Anthropic receives the traceparent too, and without a trace the request has no such header', async () => {
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
