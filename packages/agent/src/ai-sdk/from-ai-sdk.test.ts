import { createTurnComposer, type Message, type Update } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { fromAiSdk } from './index.ts'

/** The shapes follow the types of `ai` 7. */
type Part = { type: string; [field: string]: unknown }

const usage = { inputTokens: 10, outputTokens: 4, totalTokens: 14, outputTokenDetails: { reasoningTokens: 2 } }

test('text and reasoning are messages that grow, and the last one carries stop reason and usage', async () => {
  const { updates, messages } = await collect([
    { type: 'start' },
    { type: 'start-step', request: {}, warnings: [] },
    { type: 'reasoning-start', id: 'r' },
    { type: 'reasoning-delta', id: 'r', text: 'Hm' },
    { type: 'reasoning-delta', id: 'r', text: '.' },
    { type: 'reasoning-end', id: 'r' },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', text: 'Hello ' },
    { type: 'text-delta', id: 't', text: 'you' },
    { type: 'text-end', id: 't' },
    { type: 'finish-step', finishReason: 'stop', usage },
    { type: 'finish', finishReason: 'stop', totalUsage: usage },
  ])
  expect(updates.map(({ type }) => type)).toEqual(['start', 'delta', 'delta', 'done', 'start', 'delta', 'delta', 'done'])
  expect(messages).toMatchObject([
    { content: { type: 'reasoning', summary: [], content: ['Hm.'] }, status: 'complete' },
    {
      content: { type: 'text', text: 'Hello you' },
      stopReason: 'stop',
      usage: { inputTokens: 10, outputTokens: 4, totalTokens: 14, reasoningTokens: 2 },
    },
  ])
  expect(messages[0]).not.toHaveProperty('usage')
})

test('a call streams its input, its response takes progress and then the result, and the next step follows', async () => {
  const { updates, messages } = await collect([
    { type: 'tool-input-start', id: 'c1', toolName: 'weather' },
    { type: 'tool-input-delta', id: 'c1', delta: '{"city":' },
    { type: 'tool-input-delta', id: 'c1', delta: ' "Oslo"}' },
    { type: 'tool-input-end', id: 'c1' },
    { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input: { city: 'Oslo' } },
    { type: 'tool-result', toolCallId: 'c1', toolName: 'weather', output: 'asking', preliminary: true },
    { type: 'tool-result', toolCallId: 'c1', toolName: 'weather', output: { rain: true } },
    { type: 'finish-step', finishReason: 'tool-calls', usage },
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', text: 'Yes.' },
    { type: 'text-end', id: '0' },
    { type: 'finish-step', finishReason: 'stop', usage },
  ])
  expect(updates.filter(({ type }) => type === 'full')).toEqual([])
  expect(messages).toMatchObject([
    { content: { type: 'tool_request', callId: 'c1', name: 'weather', arguments: { city: 'Oslo' } }, status: 'complete' },
    { content: { type: 'tool_response', callId: 'c1', content: { rain: true }, isError: false }, stopReason: 'tool_use', usage: {} },
    { content: { type: 'text', text: 'Yes.' }, stopReason: 'stop' },
  ])
})

test.each([
  ['was repaired', { city: 'Oslo' }],
  ['could not be read', 'Oslo'],
])('an input that %s replaces what was streamed', async (_, input) => {
  const { messages } = await collect([
    { type: 'tool-input-start', id: 'c1', toolName: 'weather' },
    { type: 'tool-input-delta', id: 'c1', delta: '{"city": "Os' },
    { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input },
    { type: 'tool-error', toolCallId: 'c1', toolName: 'weather', error: new Error('no such city') },
  ])
  expect(messages).toMatchObject([
    { content: { arguments: input }, status: 'complete' },
    { content: { type: 'tool_response', content: 'no such city', isError: true } },
  ])
})

test.each([
  ['ends with a call that was repaired', [{ type: 'tool-input-delta', id: 'c1', delta: '{' }], { city: 'Oslo' }],
  ['has no content', [], null],
])('the usage of a step that %s is kept', async (_, deltas, input) => {
  const call = [
    { type: 'tool-input-start', id: 'c1', toolName: 'weather' },
    ...deltas,
    { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input },
  ]
  const step = { type: 'finish-step', finishReason: 'tool-calls', usage }
  const { messages } = await collect([...(input ? call : []), step, step])
  expect(messages.flatMap(message => message.usage?.inputTokens ?? [])).toEqual([10, 10])
  expect(messages.at(-1)).toMatchObject({ content: { type: 'reasoning', summary: [], content: [] }, stopReason: 'tool_use' })
  expect(messages.filter(({ content }) => content.type === 'tool_request')).toMatchObject(
    input ? [{ content: { arguments: input }, status: 'complete' }] : [],
  )
})

test('a call without streamed input, a call with plain text input, and a denied call become messages', async () => {
  const { messages } = await collect([
    { type: 'tool-call', toolCallId: 'a', toolName: 'now', input: {} },
    { type: 'tool-input-start', id: 'b', toolName: 'shell', inputEncoding: 'text' },
    { type: 'tool-input-delta', id: 'b', delta: 'ls -l' },
    { type: 'tool-call', toolCallId: 'b', toolName: 'shell', input: 'ls -l' },
    { type: 'tool-output-denied', toolCallId: 'b', toolName: 'shell' },
  ])
  expect(messages).toMatchObject([
    { content: { callId: 'a', arguments: {} } },
    { content: { callId: 'b', arguments: 'ls -l' }, status: 'complete' },
    { content: { callId: 'b', isError: true } },
  ])
})

test('each source is kept once in the metadata of its text; a late one becomes a custom update', async () => {
  const source = (url: string) => ({ type: 'source', sourceType: 'url', id: url, url, title: 'T' })
  const { updates, messages } = await collect([
    source('https://a.example'),
    { type: 'text-start', id: '0' },
    source('https://a.example'),
    source('https://b.example'),
    { type: 'text-end', id: '0' },
    { type: 'file', file: { base64: 'AAEC', mediaType: 'image/png' } },
    source('https://c.example'),
    { type: 'finish-step', finishReason: 'length', usage: {} },
  ])
  expect(messages).toMatchObject([
    { metadata: { citations: [{ url: 'https://a.example', title: 'T' }, { url: 'https://b.example' }] } },
    { content: { type: 'media', mimeType: 'image/png', data: 'AAEC' }, stopReason: 'length' },
  ])
  expect(updates).toContainEqual({
    type: 'custom',
    name: 'citations',
    data: [expect.objectContaining({ url: 'https://c.example' })],
    index: 0,
  })
})

test('an abort closes open messages as aborted, keeps them, and ends without an error', async () => {
  const { messages } = await collect([
    { type: 'reasoning-start', id: 'r' },
    { type: 'reasoning-end', id: 'r' },
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', text: 'I was say' },
    { type: 'abort' },
    { type: 'text-delta', id: '0', text: 'ing' },
  ])
  expect(messages).toMatchObject([{ status: 'complete' }, { content: { text: 'I was say' }, status: 'aborted', stopReason: 'aborted' }])
})

test('an error is thrown after the complete messages were closed', async () => {
  const updates: Update[] = []
  const failing = (async () => {
    const parts = [
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-end', id: 'r' },
      { type: 'error', error: 'overloaded' },
    ]
    for await (const update of fromAiSdk(stream(parts))) updates.push(update)
  })()
  await expect(failing).rejects.toThrow('overloaded')
  expect(updates).toEqual([expect.objectContaining({ type: 'start' }), { type: 'done', index: 0 }])
})

/** The updates, and the messages that the composer folds from them. */
async function collect(parts: Part[]): Promise<{ updates: Update[]; messages: Message[] }> {
  const updates: Update[] = []
  const composer = createTurnComposer({ task: '01900000-0000-7000-8000-000000000000', turn: 1, attempt: 1, firstIndex: 0 })
  for await (const update of fromAiSdk(stream(parts))) {
    updates.push(update)
    composer.compose(update, { strict: update.type !== 'full' })
  }
  composer.closeAll('complete')
  return { updates, messages: composer.messages() }
}

async function* stream(parts: Part[]): AsyncGenerator<Part> {
  yield* parts
}
