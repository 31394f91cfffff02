/** A run of the AI SDK, with a model on this machine, through the platform: what is stored is what the SDK's own result says. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { fromAiSdk, toModelMessages } from '@rivulet/agent/ai-sdk'
import { defineAgent } from '@rivulet/worker'
import { isStepCount, type ModelMessage, simulateReadableStream, streamText, tool } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { watch } from '../support/viewers/viewer.ts'
import { startModelServer } from './model-server.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
afterAll(() => platform.close())

const weather = tool({
  description: 'The weather in a city',
  inputSchema: z.object({ city: z.string() }),
  async *execute({ city }) {
    yield { state: 'asking' }
    yield { city, rain: true }
  },
})

test('text, reasoning, tool input, tool results and usage of a run with a tool are its messages', async () => {
  const { url } = await startModelServer([
    { think: ['I should ', 'look.'], say: ['Let me ', 'see.'], call: { id: 'c1', name: 'weather', arguments: ['{"city":', '"Oslo"}'] } },
    { say: ['Take ', 'an ', 'umbrella.'] },
  ])
  const provider = createOpenAICompatible({ name: 'local', baseURL: url, includeUsage: true })
  let text = ''
  const agent = defineAgent('ai-sdk', async turn => {
    const result = streamText({
      model: provider('m'),
      prompt: 'Do I need an umbrella in Oslo?',
      tools: { weather },
      stopWhen: isStepCount(5),
      abortSignal: turn.signal,
    })
    await turn.autoSend(fromAiSdk(result.fullStream))
    text = await result.text
  })
  await startOwnWorker(platform, [agent])
  const { task } = await platform.client.createTask({ agent: 'ai-sdk', input: 'go' })
  const viewer = watch(task.id, { urls: platform.urls })
  await viewer.ended
  const [, ...messages] = await platform.client.messages(task.id)
  expect(messages).toMatchObject([
    { content: { type: 'reasoning', content: ['I should look.'] }, status: 'complete' },
    { content: { type: 'text', text: 'Let me see.' }, status: 'complete' },
    { content: { type: 'tool_request', callId: 'c1', name: 'weather', arguments: { city: 'Oslo' } }, status: 'complete' },
    {
      content: { type: 'tool_response', callId: 'c1', name: 'weather', content: { city: 'Oslo', rain: true }, isError: false },
      stopReason: 'tool_use',
      usage: { inputTokens: 5, outputTokens: 3 },
    },
    { content: { type: 'text', text: 'Take an umbrella.' }, stopReason: 'stop', usage: { inputTokens: 5, outputTokens: 3 } },
  ])
  expect(messages.at(-1)?.content).toMatchObject({ text })
  const [turn] = (await platform.client.detail(task.id)).turns
  expect(turn).toMatchObject({ status: 'completed', stopReason: 'stop', usage: { inputTokens: 10, outputTokens: 6 } })
  expect(await faultsOf(platform, task.id)).toEqual([])
})

test('sources and files of a run are kept', async () => {
  const chunks = [
    { type: 'stream-start' as const, warnings: [] },
    { type: 'text-start' as const, id: '0' },
    { type: 'text-delta' as const, id: '0', delta: 'See there.' },
    { type: 'source' as const, sourceType: 'url' as const, id: 's', url: 'https://a.example/', title: 'A' },
    { type: 'text-end' as const, id: '0' },
    { type: 'file' as const, mediaType: 'image/png', data: { type: 'data' as const, data: 'AAEC' } },
    { type: 'finish' as const, finishReason: { unified: 'length' as const, raw: 'length' }, usage: noUsage },
  ]
  const agent = defineAgent('ai-sdk-sources', async turn => {
    const model = new MockLanguageModelV4({ doStream: async () => ({ stream: simulateReadableStream({ chunks }) }) })
    await turn.autoSend(fromAiSdk(streamText({ model, prompt: 'x' }).fullStream))
  })
  await startOwnWorker(platform, [agent])
  const { messages } = await platform.client.finishedTask({ agent: 'ai-sdk-sources' })
  expect(messages).toMatchObject([
    { content: { text: 'See there.' }, metadata: { citations: [{ url: 'https://a.example/', title: 'A' }] } },
    { content: { type: 'media', mimeType: 'image/png', data: 'AAEC' }, stopReason: 'length' },
  ])
})

test('a model that fails fails the turn, and what it said stays', async () => {
  const { url } = await startModelServer(() => ({ say: ['I was ', 'saying'], breaksOff: true }))
  const provider = createOpenAICompatible({ name: 'local', baseURL: url })
  const agent = defineAgent('ai-sdk-failing', async turn => {
    const result = streamText({ model: provider('m'), prompt: 'x', maxRetries: 0, onError: () => {} })
    await turn.autoSend(fromAiSdk(result.fullStream))
  })
  await startOwnWorker(platform, [agent])
  const { task, messages } = await platform.client.finishedTask({ agent: 'ai-sdk-failing', maxAttempts: 1 })
  expect(task.status).toBe('failed')
  expect(messages).toMatchObject([{ content: { text: 'I was saying' }, status: 'failed' }])
})

test('a canceled turn aborts the run, and what was said is kept as aborted', async () => {
  let hasAborted = false
  const onAbort = () => {
    hasAborted = true
  }
  const agent = defineAgent('ai-sdk-endless', async turn => {
    const chunks = Array.from({ length: 1_000 }, () => ({ type: 'text-delta' as const, id: '0', delta: 'more ' }))
    const stream = simulateReadableStream({ chunks: [{ type: 'text-start' as const, id: '0' }, ...chunks], chunkDelayInMs: 20 })
    const model = new MockLanguageModelV4({ doStream: async () => ({ stream }) })
    const result = streamText({ model, prompt: 'x', abortSignal: turn.signal, onAbort })
    await turn.autoSend(fromAiSdk(result.fullStream))
  })
  await startOwnWorker(platform, [agent])
  const { task } = await platform.client.createTask({ agent: 'ai-sdk-endless' })
  const viewer = watch(task.id, { urls: platform.urls })
  await viewer.until('something is said', () => viewer.text().length > 10)
  await platform.client.cancel(task.id)
  await viewer.ended
  await until('the run is aborted', () => hasAborted)
  expect(await platform.client.messages(task.id)).toMatchObject([{ status: 'aborted', content: { text: viewer.text() } }])
})

test('a picture and a PDF reach the model with their bytes', async () => {
  const { url, requests } = await startModelServer([{ say: ['A boat.'] }])
  const provider = createOpenAICompatible({ name: 'local', baseURL: url })
  const agent = defineAgent('ai-sdk-files', async turn => {
    const messages: ModelMessage[] = toModelMessages(await turn.history({ withFiles: true }))
    await turn.autoSend(fromAiSdk(streamText({ model: provider('m'), messages }).fullStream))
  })
  await startOwnWorker(platform, [agent])
  const stored = async (mimeType: string, bytes: string) => {
    const { body } = await platform.client.send<{ file: { id: string } }>('POST', '/v1/files', {
      body: bytes,
      headers: { 'content-type': mimeType },
    })
    return { type: 'media', mimeType, file: body.file.id }
  }
  const input = ['What is this?', await stored('image/png', 'a picture'), await stored('application/pdf', 'a document')]
  const { task } = await platform.client.finishedTask({ agent: 'ai-sdk-files', input })
  expect(task.status).toBe('completed')
  for (const bytes of ['a picture', 'a document']) expect(JSON.stringify(requests[0])).toContain(Buffer.from(bytes).toString('base64'))
})

const noUsage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
}

test('a stored conversation is the prompt of the next run, with its calls and results', async () => {
  const { url, requests } = await startModelServer([
    { call: { id: 'c1', name: 'weather', arguments: ['{"city":"Oslo"}'] } },
    { say: ['Rain.'] },
    { say: ['Still rain.'] },
  ])
  const provider = createOpenAICompatible({ name: 'local', baseURL: url, includeUsage: true })
  const agent = defineAgent('ai-sdk-history', async turn => {
    const messages: ModelMessage[] = toModelMessages(await turn.history())
    const result = streamText({ model: provider('m'), messages, tools: { weather }, stopWhen: isStepCount(5), abortSignal: turn.signal })
    await turn.autoSend(fromAiSdk(result.fullStream))
  })
  await startOwnWorker(platform, [agent])
  const { task } = await platform.client.createTask({ agent: 'ai-sdk-history', input: 'Rain in Oslo?' })
  await watch(task.id, { urls: platform.urls }).ended
  await platform.client.addTurn(task.id, { input: 'And now?' })
  await until('the next turn asks the model', () => requests.length === 3)
  expect(JSON.stringify(requests[2])).toMatch(/Rain in Oslo\?.*c1.*Oslo.*Rain\..*And now\?/)
})
