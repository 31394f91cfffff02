/** The AI SDK with its OpenAI provider, unmodified, with Rivulet as its base URL. It names the items of earlier responses by their ids alone. */
import { createOpenAI, type OpenAILanguageModelResponsesOptions } from '@ai-sdk/openai'
import { defineAgent } from '@rivulet/worker'
import { generateText, isStepCount, type ModelMessage, tool } from 'ai'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { guide } from './asking-agents.ts'

let platform: Platform

/** Sends what is in its conversation: the type of each message, and its text. */
const reader = defineAgent('reader', async turn => {
  const messages = await turn.history()
  const seen = messages.map(({ author, content }) => `${author}: ${content.type === 'text' ? content.text : content.type}`)
  await turn.send(seen.join(' | '))
})

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
beforeEach(() => startOwnWorker(platform, [guide, reader]))
afterAll(() => platform.close())

test.each([undefined, false])('a second turn has the first one as its history (store: %s)', async store => {
  const messages: ModelMessage[] = [{ role: 'user', content: 'One' }]
  const first = await generateText({ model: provider()('reader'), messages, providerOptions: optionsOf({ store }) })
  expect(first.text).toBe('user: One')
  const second = await generateText({
    model: provider()('reader'),
    messages: [...messages, ...first.response.messages, { role: 'user', content: 'Two' }],
    providerOptions: optionsOf({ store }),
  })
  expect(second.text).toBe('user: One | agent: user: One | user: Two')
})

test('a tool of the client runs between two steps of one call', async () => {
  const gps = tool({ description: 'Where I am', inputSchema: z.object({}), execute: () => 'Oslo' })
  const { text, steps } = await generateText({
    model: provider()('guide'),
    prompt: 'Where am I?',
    tools: { gps },
    stopWhen: isStepCount(3),
  })
  expect([text, steps.length]).toEqual(['You are in "Oslo".', 2])
})

test('a text and an image of one message both reach the agent, also in a conversation that continues, with a system message beside them', async () => {
  const image = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const content = [
    { type: 'text' as const, text: 'Look' },
    { type: 'file' as const, data: image, mediaType: 'image/png' },
  ]
  const first = await generateText({ model: provider()('reader'), messages: [{ role: 'user', content }] })
  expect(first.text).toBe('user: Look | user: media')
  const previousResponseId = String(first.providerMetadata?.openai?.responseId)
  const second = await generateText({
    model: provider()('reader'),
    system: 'Be brief.',
    messages: [{ role: 'user', content }],
    providerOptions: optionsOf({ previousResponseId }),
  })
  expect(second.text).toBe('user: Look | user: media | agent: user: Look | user: media | user: Look | user: media')
})

test('a reference to an item that does not exist is 400, with its place', async () => {
  const input = [
    { type: 'item_reference', id: `msg_${crypto.randomUUID()}.0.1` },
    { role: 'user', content: 'go' },
  ]
  const response = await fetch(`${platform.urls[0]}/openai/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'reader', input }),
  })
  expect([response.status, await response.json()]).toMatchObject([400, { error: { param: 'input.0.id' } }])
})

test('references count with the bytes of their items', async () => {
  const whole = await generateText({ model: provider()('reader'), prompt: 'x'.repeat(400_000) })
  const id = whole.response.messages.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.map(part => ('providerOptions' in part ? part.providerOptions?.openai?.itemId : undefined)),
  )[0]
  const input = [...Array.from({ length: 9 }, () => ({ type: 'item_reference', id })), { role: 'user', content: 'go' }]
  const response = await fetch(`${platform.urls[0]}/openai/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'reader', input }),
  })
  expect([response.status, await response.json()]).toMatchObject([413, { error: { code: 'body_too_large' } }])
})

function provider() {
  return createOpenAI({ apiKey: 'none', baseURL: `${platform.urls[0]}/openai/v1` })
}

function optionsOf({ store, previousResponseId }: Pick<OpenAILanguageModelResponsesOptions, 'store' | 'previousResponseId'>) {
  return { openai: { ...(store !== undefined && { store }), ...(previousResponseId !== undefined && { previousResponseId }) } }
}
