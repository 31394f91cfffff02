/** OpenAI's SDK reads more than texts: usage, the id of a request, and errors. */
import { defineAgent } from '@rivulet/worker'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { guide } from './asking-agents.ts'

let platform: Platform

const counted = defineAgent('counted', async turn => {
  await turn.send('Done.')
  turn.usage.add({ inputTokens: 7, outputTokens: 5, cacheReadTokens: 3, reasoningTokens: 2 })
})

const uncounted = defineAgent('uncounted', async turn => void (await turn.send('Done.')))

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
beforeEach(() => startOwnWorker(platform, [counted, uncounted, guide]))
afterAll(() => platform.close())

test('a response and a completion that have ended have their usage, with cached and reasoning tokens', async () => {
  const response = await client().responses.create({ model: 'counted', input: 'go' })
  expect(response.usage).toEqual({
    ...{ input_tokens: 7, input_tokens_details: { cached_tokens: 3 } },
    ...{ output_tokens: 5, output_tokens_details: { reasoning_tokens: 2 }, total_tokens: 12 },
  })
  const chat = await client().chat.completions.create({ model: 'counted', messages: [{ role: 'user', content: 'go' }] })
  expect(chat.usage).toEqual({
    ...{ prompt_tokens: 7, prompt_tokens_details: { cached_tokens: 3 } },
    ...{ completion_tokens: 5, completion_tokens_details: { reasoning_tokens: 2 }, total_tokens: 12 },
  })
})

test('an agent that reports no usage has a usage of zero', async () => {
  const response = await client().responses.create({ model: 'uncounted', input: 'go' })
  expect(response.usage?.total_tokens).toBe(0)
  const chat = await client().chat.completions.create({ model: 'uncounted', messages: [{ role: 'user', content: 'go' }] })
  expect(chat.usage?.total_tokens).toBe(0)
})

test('a response has the tools of its request, and every response has the id of its request', async () => {
  const tools = [{ type: 'function' as const, name: 'gps', parameters: { type: 'object' }, strict: false }]
  const { data, request_id } = await client().responses.create({ model: 'guide', input: 'Where am I?', tools }).withResponse()
  expect(data.tools).toEqual(tools)
  expect(request_id).toMatch(/^[0-9a-f-]{36}$/)
  const streamed = await client().responses.create({ model: 'uncounted', input: 'go', stream: true }).withResponse()
  expect(streamed.request_id).toMatch(/^[0-9a-f-]{36}$/)
  for await (const _ of streamed.data);
})

test('a model that does not exist is 404 `model_not_found`, and an unknown route is an error of the same shape', async () => {
  const unknown = { status: 404, code: 'model_not_found', param: 'model', requestID: expect.stringMatching(/^[0-9a-f-]{36}$/) }
  const messages = [{ role: 'user' as const, content: 'go' }]
  expect(await errorOf(client().responses.create({ model: 'none', input: 'go' }))).toMatchObject(unknown)
  expect(await errorOf(client().chat.completions.create({ model: 'none', messages }))).toMatchObject(unknown)
  expect(await errorOf(client().models.retrieve('none'))).toMatchObject(unknown)
  const noRoute = { status: 404, code: 'not_found', type: 'not_found_error', requestID: expect.any(String) }
  expect(await errorOf(client().embeddings.create({ model: 'counted', input: 'go' }))).toMatchObject(noRoute)
})

async function errorOf(call: PromiseLike<unknown>): Promise<unknown> {
  try {
    await call
  } catch (error) {
    return error
  }
  throw new Error('The API accepted the call')
}

function client(): OpenAI {
  return new OpenAI({ apiKey: 'none', baseURL: `${platform.urls[0]}/openai/v1`, maxRetries: 0 })
}
