/** OpenAI's Agents SDK as a client: its agents have agents of Rivulet as their models, with keys. */

import { Agent, hostedMcpTool, OpenAIProvider, Runner, tool } from '@openai/agents'
import { call, clientTools, say, scriptedModel } from '@rivulet/agent'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { guide, paid, payerOf } from './asking-agents.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }
let platform: Platform

/** Sends what is in its conversation. */
const reader = defineAgent('reader', async turn => {
  const messages = await turn.history()
  await turn.send(messages.map(({ author, content }) => `${author}: ${content.type === 'text' ? content.text : content.type}`).join(' | '))
})

/** Hands back to the agent that its caller names, once. */
const returner = defineAgent({
  ...{ name: 'returner', accepts: { tools: true } },
  run: async turn => {
    const [back] = turn.requested.tools ?? []
    const model = scriptedModel(() => (back ? [call(back.name, {})] : [say('There is no way back.')]))
    await turn.run({ model, ...turn.requested })
  },
})

/** Hands over to the first tool of its caller, and ends with what it got back. */
const opener = defineAgent({
  ...{ name: 'opener', params: z.object({ tools: z.array(z.looseObject({ name: z.string() })).default([]) }) },
  run: async turn => {
    const tools = clientTools(turn.params.tools)
    const names = (await turn.history()).flatMap(({ content }) => (content.type === 'tool_request' ? [content.name] : []))
    const model = scriptedModel(() => (names.length > 1 ? [say(names.join(', '))] : [call(tools[0]?.name ?? '', {})]))
    await turn.run({ model, tools })
  },
})

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, env })
})
beforeEach(async () => {
  paid.length = 0
  await startOwnWorker(platform, [guide, reader, returner, opener, payerOf(12)], {
    key: env.RIVULET_WORKER_KEY,
    callerKey: env.RIVULET_KEY,
  })
})
afterAll(() => platform.close())

test('a person approves a call of a tool that the agent of Rivulet runs', async () => {
  const tools = [hostedMcpTool({ serverLabel: 'rivulet', serverUrl: `${platform.urls[0]}/mcp` })]
  const clerk = new Agent({ name: 'clerk', model: 'payer', tools })
  const asked = await runner().run(clerk, 'Pay')
  expect([asked.interruptions.length, paid]).toEqual([1, []])
  for (const interruption of asked.interruptions) asked.state.approve(interruption)
  const done = await runner().run(clerk, asked.state)
  expect([done.finalOutput, paid]).toEqual(['Done.', [12]])
})

test('a person declines such a call', async () => {
  const tools = [hostedMcpTool({ serverLabel: 'rivulet', serverUrl: `${platform.urls[0]}/mcp` })]
  const clerk = new Agent({ name: 'clerk', model: 'payer', tools })
  const asked = await runner().run(clerk, 'Pay')
  for (const interruption of asked.interruptions) asked.state.reject(interruption)
  const done = await runner().run(clerk, asked.state)
  expect([done.finalOutput, paid]).toEqual(['Done.', []])
})

test('a server of tools with another label is refused', async () => {
  const tools = [hostedMcpTool({ serverLabel: 'elsewhere', serverUrl: 'https://mcp.example' })]
  await expect(runner().run(new Agent({ name: 'clerk', model: 'payer', tools }), 'Pay')).rejects.toMatchObject({ status: 400 })
})

test.each([true, false])(
  'one agent hands over to another, which has the conversation, also in its next turn (responses: %s)',
  async useResponses => {
    const expertAgent = new Agent({ name: 'expert', model: 'reader' })
    const triage = Agent.create({ name: 'triage', model: 'guide', handoffs: [expertAgent] })
    const first = await runner(useResponses).run(triage, 'Help')
    expect([first.lastAgent?.name, first.finalOutput]).toEqual(['expert', 'user: Help | agent: tool_request | agent: tool_response'])
    const next = await runner(useResponses).run(first.lastAgent ?? triage, [...first.history, { role: 'user', content: 'More' }])
    expect(next.finalOutput).toBe(`user: Help | agent: tool_request | agent: tool_response | agent: ${first.finalOutput} | user: More`)
  },
)

test('an agent that hands over gets the conversation back', async () => {
  const second = new Agent({ name: 'second', model: 'returner' })
  const first = Agent.create({ name: 'first', model: 'opener', handoffs: [second] })
  second.handoffs = [first]
  const done = await runner().run(first, 'Help')
  expect([done.lastAgent?.name, done.finalOutput]).toEqual(['first', 'transfer_to_second, transfer_to_first'])
})

test('a tool of the client runs between two steps of one run', async () => {
  const gps = tool({ name: 'gps', description: 'Where I am', parameters: z.object({}), execute: () => 'Oslo' })
  const done = await runner().run(new Agent({ name: 'guide', model: 'guide', tools: [gps] }), 'Where am I?')
  expect(done.finalOutput).toBe('You are in "Oslo".')
})

function runner(useResponses = true): Runner {
  const modelProvider = new OpenAIProvider({ apiKey: env.RIVULET_KEY, baseURL: `${platform.urls[0]}/openai/v1`, useResponses })
  return new Runner({ modelProvider, tracingDisabled: true })
}
