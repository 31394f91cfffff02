/** `mcpTools` with servers of MCP's own SDK, of both revisions, and with the API's own server from inside a turn. */
import {
  acceptedContent,
  createMcpHandler,
  inputRequired,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { call, mcpTools, runAgent, scriptedModel, user } from '@rivulet/agent'
import type { Message, Wait } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { testTurn } from '@rivulet/worker/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const who = z.object({ name: z.string() })

function serverOf(): McpServer {
  const server = new McpServer({ name: 'shop', version: '1' })
  server.registerTool('add', { inputSchema: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => ({
    content: [{ type: 'text', text: `${a + b}` }],
  }))
  server.registerTool('break', { inputSchema: z.object({}) }, () => ({ content: [{ type: 'text', text: 'broken' }], isError: true }))
  server.registerTool('register', { inputSchema: z.object({}) }, (_, { mcpReq }) => {
    const given = acceptedContent(mcpReq.inputResponses, 'who', who)
    if (given) return { content: [{ type: 'text', text: `Hello ${given.name}` }] }
    return inputRequired({ inputRequests: { who: inputRequired.elicit({ message: 'Who are you?', requestedSchema: who }) } })
  })
  return server
}

describe.each(['json', 'sse'] as const)('a server of 2026-07-28 that sends %s', responseMode => {
  const handler = createMcpHandler(serverOf, { legacy: 'reject', responseMode })
  const fetch = (url: unknown, init?: RequestInit) => handler.fetch(new Request(String(url), init))

  test('has its tools called, and its errors shown to the model', async () => {
    expect(await results(fetch as typeof globalThis.fetch)).toEqual([
      ['3', false],
      ['broken', true],
      [expect.stringMatching(/a/), true],
    ])
  })

  test('asks for what becomes a wait of the turn', async () => {
    const agent = defineAgent('caller', async turn => {
      const tools = await mcpTools('http://127.0.0.1/mcp', { fetch: fetch as typeof globalThis.fetch })
      await turn.run({ model: scriptedModel([[call('register', {})], 'Done.']), tools })
    })
    const { messages, waits } = await testTurn(agent, { answer: () => ({ action: 'accept', content: { name: 'Ada' } }) })
    expect(waits).toMatchObject([{ kind: 'form', title: 'Who are you?', schema: { properties: { name: { type: 'string' } } } }])
    expect(responsesIn(messages)).toEqual([['Hello Ada', false]])
  })
})

test('an older server with sessions has its tools called', async () => {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
  const fetch = async (url: unknown, init?: RequestInit) => {
    const request = new Request(String(url), init)
    const known = sessions.get(request.headers.get('mcp-session-id') ?? '')
    if (known) return known.handleRequest(request)
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: id => void sessions.set(id, transport),
    })
    await serverOf().connect(transport)
    return transport.handleRequest(request)
  }
  expect(await results(fetch as typeof globalThis.fetch)).toEqual([
    ['3', false],
    ['broken', true],
    [expect.stringMatching(/a/), true],
  ])
  expect(sessions.size).toBe(1)
})

describe('the server of the API', () => {
  let platform: Platform
  beforeAll(async () => {
    platform = await startPlatform({ apis: 1, workers: 1 })
  })
  afterAll(() => platform.close())

  test('runs an agent as a task of another one, whose turn waits for what it asks', async () => {
    const registrar = defineAgent('registrar', async turn => {
      const { content } = await turn.ask('who', { title: 'Who are you?', schema: who, hold: 0 })
      await turn.send(`Hello ${content?.name}`)
    })
    const caller = defineAgent('caller', async turn => {
      const tools = await mcpTools(`${platform.urls[0]}/mcp`, { only: ['registrar'] })
      await turn.run({ model: scriptedModel([[call('registrar', { message: 'go' })], 'Done.']), tools })
    })
    await startOwnWorker(platform, [registrar, caller])
    const { body } = await platform.client.post<{ task: { id: string } }>('/v1/tasks', { agent: 'caller', input: 'go' })
    const { id } = body.task
    const asked = await until('it asks', async () => {
      const { body: waits } = await platform.client.get<{ data: Wait[] }>(`/v1/waits?status=open&task=${id}`)
      return waits.data[0]
    })
    expect(asked).toMatchObject({ kind: 'form', title: 'Who are you?', tool: 'registrar' })
    await platform.client.post(`/v1/tasks/${id}/waits/${asked.id}/answer`, { action: 'accept', content: { name: 'Ada' } })
    await platform.client.waitForEnd(id)
    expect(responsesIn(await platform.client.messages(id))).toEqual([['Hello Ada', false]])
    const { body: all } = await platform.client.get<{ data: object[] }>('/v1/tasks?agent=registrar')
    expect(all.data).toHaveLength(1)
  })
})

async function results(fetch: typeof globalThis.fetch) {
  const tools = await mcpTools('http://127.0.0.1/mcp', { fetch })
  const model = scriptedModel([[call('add', { a: 1, b: 2 }), call('break', {}), call('add', { a: 'x' })], 'Done.'])
  return responsesIn((await runAgent({ model, tools, messages: [user('go')] }).result).messages)
}

function responsesIn(messages: readonly Pick<Message, 'content'>[]) {
  return messages.flatMap(({ content }) => (content.type === 'tool_response' ? [[content.content, content.isError]] : []))
}
