/** Structured output, and the choice of a tool: they reach an agent that accepts them, through OpenAI's SDK and through the AI SDK, with keys. */
import { createOpenAI } from '@ai-sdk/openai'
import { call, say, scriptedModel } from '@rivulet/agent'
import { defineAgent } from '@rivulet/worker'
import { generateText, Output } from 'ai'
import OpenAI from 'openai'
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }
const weather = z.object({ city: z.string(), degrees: z.number() })
const gps = { type: 'function' as const, name: 'gps', parameters: { type: 'object' }, strict: false }
const camera = { ...gps, name: 'camera' }

let platform: Platform

/** Sends JSON if a format is requested, calls the tool that the request has chosen, and else says which tools it has. */
const able = defineAgent({
  ...{ name: 'able', accepts: { format: true, tools: true } },
  run: async turn => {
    const model = scriptedModel(({ schema, tools = [], toolChoice, messages }) => {
      const last = messages.at(-1)?.content
      if (last?.type === 'tool_response') return [say(`It is ${JSON.stringify(last.content)}.`)]
      if (schema) return [say(JSON.stringify({ city: Object.keys(schema.properties ?? {})[0], degrees: 7 }))]
      if (typeof toolChoice === 'object') return [call(toolChoice.name, {})]
      return [say(`${toolChoice ?? 'no choice'}: ${tools.map(({ name }) => name).join(' ')}`)]
    })
    await turn.run({ model, ...turn.requested })
  },
})

const plain = defineAgent('plain', async turn => void (await turn.send('plain')))

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, env })
})
beforeEach(() => startOwnWorker(platform, [able, plain], { key: env.RIVULET_WORKER_KEY, callerKey: env.RIVULET_KEY }))
afterAll(() => platform.close())

test('an agent that accepts formats returns an object, in responses and in chat completions', async () => {
  const text = { format: zodTextFormat(weather, 'weather') }
  const response = await client().responses.parse({ model: 'able', input: 'go', text })
  expect(response.output_parsed).toEqual({ city: 'city', degrees: 7 })
  expect(response.text?.format).toMatchObject({
    type: 'json_schema',
    name: 'weather',
    schema: { properties: { city: { type: 'string' } } },
  })
  const messages = [{ role: 'user' as const, content: 'go' }]
  const chat = await client().chat.completions.parse({ model: 'able', messages, response_format: zodResponseFormat(weather, 'weather') })
  expect(chat.choices[0]?.message.parsed).toEqual({ city: 'city', degrees: 7 })
})

test('the AI SDK gets an object', async () => {
  const provider = createOpenAI({ apiKey: env.RIVULET_KEY, baseURL: `${platform.urls[0]}/openai/v1` })
  for (const model of [provider('able'), provider.chat('able')]) {
    const { output } = await generateText({ model, prompt: 'go', output: Output.object({ schema: weather }) })
    expect(output).toEqual({ city: 'city', degrees: 7 })
  }
})

test('a format counts for its turn alone', async () => {
  const text = { format: zodTextFormat(weather, 'weather') }
  const { id } = await client().responses.create({ model: 'able', input: 'go', text })
  const next = await client().responses.create({ model: 'able', input: 'And now?', previous_response_id: id })
  expect(next.output_text).toBe('no choice: ')
})

test('the chosen tool is the one that the agent calls', async () => {
  const tools = [camera, gps]
  const asked = await client().responses.create({ model: 'able', input: 'go', tools, tool_choice: { type: 'function', name: 'gps' } })
  const [item] = asked.output
  if (item?.type !== 'function_call') throw new Error(`The response has the item ${item?.type}`)
  expect([item.name, asked.tool_choice]).toEqual(['gps', { type: 'function', name: 'gps' }])
  const input = [{ type: 'function_call_output' as const, call_id: item.call_id, output: '"Oslo"' }]
  const done = await client().responses.create({ model: 'able', previous_response_id: asked.id, input, tools, tool_choice: 'required' })
  expect(done.output_text).toBe('It is "Oslo".')
  const required = await client().responses.create({ model: 'able', input: 'go', tools, tool_choice: 'required' })
  expect(required.output_text).toBe('required: camera gps')
  const chat = await client().chat.completions.create({
    ...{ model: 'able', messages: [{ role: 'user' as const, content: 'go' }] },
    tools: [{ type: 'function' as const, function: { name: 'gps' } }],
    tool_choice: { type: 'function', function: { name: 'gps' } },
  })
  expect(chat.choices[0]?.message.tool_calls).toMatchObject([{ function: { name: 'gps' } }])
})

test('an agent that does not accept them gets 400, which says how to allow it', async () => {
  const messages = [{ role: 'user' as const, content: 'go' }]
  const format = zodTextFormat(weather, 'weather')
  const calls: [string, PromiseLike<unknown>][] = [
    ['accepts: { format: true }', client().responses.create({ model: 'plain', input: 'go', text: { format } })],
    [
      'accepts: { format: true }',
      client().chat.completions.create({ model: 'plain', messages, response_format: zodResponseFormat(weather, 'weather') }),
    ],
    ['accepts: { tools: true }', client().responses.create({ model: 'plain', input: 'go', tools: [gps] })],
    ['accepts: { tools: true }', client().responses.create({ model: 'plain', input: 'go', tool_choice: 'required' })],
  ]
  for (const [how, request] of calls) await expect(request).rejects.toMatchObject({ status: 400, message: expect.stringContaining(how) })
})

test('a choice of a tool that the request does not have is 400', async () => {
  const request = client().responses.create({ model: 'able', input: 'go', tools: [gps], tool_choice: { type: 'function', name: 'radar' } })
  await expect(request).rejects.toMatchObject({ status: 400, param: 'tool_choice' })
})

function client(): OpenAI {
  return new OpenAI({ apiKey: env.RIVULET_KEY, baseURL: `${platform.urls[0]}/openai/v1`, maxRetries: 0 })
}
