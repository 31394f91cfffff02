/** A graph of LangGraph with a model of LangChain, in a turn: what it streams is what the turn has said, with its usage. */
import { HumanMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import type { LangGraphRunnableConfig } from '@langchain/langgraph'
import { createReactAgent, ToolNode } from '@langchain/langgraph/prebuilt'
import { ChatOpenAI } from '@langchain/openai'
import { fromLangGraph } from '@rivulet/agent/langgraph'
import { defineAgent } from '@rivulet/worker'
import { testTurn } from '@rivulet/worker/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { startModelServer } from './model-server.ts'

const input = z.object({ city: z.string() })
const weather = tool(
  ({ city }, config: LangGraphRunnableConfig) => {
    config.writer?.({ asked: city })
    return `Rain in ${city}`
  },
  { name: 'weather', description: 'The weather in a city', schema: input },
)
const clock = tool(
  () => {
    throw new Error('no clock')
  },
  { name: 'clock', description: 'The time in a city', schema: input },
)

test('texts, calls, results, failed tools and what a tool writes are messages and events of the turn', async () => {
  const { url } = await startModelServer([
    { say: ['Let me ', 'see.'], call: { id: 'c1', name: 'weather', arguments: ['{"city":', '"Oslo"}'] } },
    { call: { id: 'c2', name: 'clock', arguments: ['{"city":"Oslo"}'] } },
    { say: ['Take ', 'an ', 'umbrella.'] },
  ])
  const llm = new ChatOpenAI({ model: 'm', apiKey: 'none', configuration: { baseURL: url } })
  const graph = createReactAgent({ llm, tools: new ToolNode([weather, clock], { handleToolErrors: true }) })
  const agent = defineAgent('graph', async turn => {
    const asked = { messages: [new HumanMessage(turn.text)] }
    await turn.autoSend(fromLangGraph(await graph.stream(asked, { streamMode: ['messages', 'custom'], signal: turn.signal })))
  })
  const { messages, events } = await testTurn(agent, { input: 'The weather in Oslo?' })
  const usage = { inputTokens: 5, outputTokens: 3, totalTokens: 8 }
  expect(messages).toMatchObject([
    { content: { type: 'text', text: 'Let me see.' }, status: 'complete' },
    { content: { type: 'tool_request', callId: 'c1', name: 'weather', arguments: { city: 'Oslo' } }, stopReason: 'tool_use', usage },
    { content: { type: 'tool_response', callId: 'c1', content: 'Rain in Oslo', isError: false } },
    { content: { type: 'tool_request', callId: 'c2', name: 'clock' }, stopReason: 'tool_use', usage },
    { content: { type: 'tool_response', callId: 'c2', isError: true } },
    { content: { type: 'text', text: 'Take an umbrella.' }, status: 'complete', stopReason: 'stop', usage },
  ])
  expect(events).toContainEqual(expect.objectContaining({ type: 'custom', name: 'langgraph', data: { asked: 'Oslo' } }))
})
