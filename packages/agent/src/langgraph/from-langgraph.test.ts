/** The shapes follow LangGraph’s message chunks. */
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

test.each([
  ['behind the content, without a stop reason', [chunk({ content: 'Hi' }), chunk({ usage_metadata: usage(5, 3) })]],
  ['behind the stop reason', [chunk({ content: 'Hi' }), ended('stop'), chunk({ usage_metadata: usage(5, 3) })]],
  [
    'in two parts, the first before the content',
    [chunk({ usage_metadata: usage(5, 1) }), chunk({ content: 'Hi' }), ended('end_turn', usage(0, 2))],
  ],
])('usage is counted once when it comes %s', async (_, chunks) => {
  const next = { ...chunk({ content: 'Next' }), id: 'm2' }
  const { messages } = await collect([...chunks, next].map(message => [message, {}]))
  expect(messages).toMatchObject([
    { content: { text: 'Hi' }, status: 'complete', stopReason: 'stop', usage: { inputTokens: 5, outputTokens: 3, totalTokens: 8 } },
    { content: { text: 'Next' }, stopReason: 'stop' },
  ])
  expect(messages[1]?.usage).toBeUndefined()
})

test('nodes side by side: the end of one message leaves the other open', async () => {
  const other = (fields: object) => ({ ...chunk(fields), id: 'm2' })
  const { messages } = await collect([
    [chunk({ content: 'One ' }), {}],
    [other({ content: 'Two ' }), {}],
    [chunk({ content: 'ends.' }), {}],
    [ended('stop', usage(5, 3)), {}],
    [other({ content: 'goes on.' }), {}],
    [other({ usage_metadata: usage(7, 2) }), {}],
  ])
  expect(messages).toMatchObject([
    { content: { text: 'One ends.' }, usage: { totalTokens: 8 } },
    { content: { text: 'Two goes on.' }, usage: { totalTokens: 9 } },
  ])
})

function usage(input_tokens: number, output_tokens: number): object {
  return { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens }
}

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
