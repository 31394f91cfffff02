/** The shapes follow LangGraph's message chunks; the package itself is not among the tests. */
import { createTurnComposer, type Message, type Update } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { fromLangGraph, type LangGraphPart } from './index.ts'

const chunk = (fields: object) => ({ getType: () => 'ai', id: 'm1', content: '', tool_call_chunks: [], response_metadata: {}, ...fields })
const ended = (finish_reason: string, usage_metadata = {}) => chunk({ response_metadata: { finish_reason }, usage_metadata })

test('text, calls and results of two rounds are messages, and each response has its stop reason and usage', async () => {
  const { messages } = await collect([
    [chunk({ content: [{ type: 'thinking', thinking: 'Hm.' }] }), {}],
    [chunk({ content: 'Let me ' }), {}],
    [chunk({ content: [{ type: 'text', text: 'look.' }] }), {}],
    [chunk({ tool_call_chunks: [{ index: 0, id: 'c1', name: 'weather', args: '{"city":' }] }), {}],
    [chunk({ tool_call_chunks: [{ index: 1, id: 'c2', name: 'time', args: '{}' }] }), {}],
    [chunk({ tool_call_chunks: [{ index: 0, args: '"Oslo"}' }] }), {}],
    [ended('tool_calls', { input_tokens: 5, output_tokens: 3, total_tokens: 8 }), {}],
    [{ _getType: () => 'tool', tool_call_id: 'c1', name: 'weather', content: 'rain', status: 'success' }, {}],
    [{ _getType: () => 'tool', tool_call_id: 'c2', name: 'time', content: 'no clock', status: 'error' }, {}],
    [chunk({ id: 'm2', content: 'Rain.' }), {}],
    [{ ...ended('stop'), id: 'm2' }, {}],
  ])
  expect(messages).toMatchObject([
    { content: { type: 'reasoning', content: ['Hm.'] } },
    { content: { text: 'Let me look.' } },
    { content: { type: 'tool_request', callId: 'c1', name: 'weather', arguments: { city: 'Oslo' } }, status: 'complete' },
    { content: { type: 'tool_request', callId: 'c2', arguments: {} }, stopReason: 'tool_use', usage: { inputTokens: 5, totalTokens: 8 } },
    { content: { type: 'tool_response', callId: 'c1', content: 'rain', isError: false } },
    { content: { type: 'tool_response', callId: 'c2', content: 'no clock', isError: true } },
    { content: { text: 'Rain.' }, stopReason: 'stop' },
  ])
})

test('several modes: messages are messages, what a node writes is a custom event, other modes are left out', async () => {
  const { updates, messages } = await collect([
    ['updates', { node: {} }],
    ['messages', [chunk({ content: 'Hello' }), { langgraph_node: 'agent' }]],
    ['custom', { progress: 3 }],
    ['messages', [ended('length'), {}]],
  ])
  expect(messages).toMatchObject([{ content: { text: 'Hello' }, stopReason: 'length' }])
  expect(updates).toContainEqual({ type: 'custom', name: 'langgraph', data: { progress: 3 } })
})

async function collect(parts: LangGraphPart[]): Promise<{ updates: Update[]; messages: Message[] }> {
  const updates: Update[] = []
  const composer = createTurnComposer({ task: '01900000-0000-7000-8000-000000000000', turn: 1, attempt: 1, firstIndex: 0 })
  for await (const update of fromLangGraph(stream(parts))) {
    updates.push(update)
    composer.compose(update)
  }
  composer.closeAll('complete')
  return { updates, messages: composer.messages() }
}

async function* stream(parts: LangGraphPart[]): AsyncGenerator<LangGraphPart> {
  yield* parts
}
