/** Calls of MCP's clients, unmodified, with keys: progress while the agent works, and a call that its client cancels. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OlderClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OlderTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { call, defineTool, say, scriptedModel } from '@rivulet/agent'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createGate } from '../support/gate.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { registrar } from './asking-agents.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }
const headers = { authorization: `Bearer ${env.RIVULET_KEY}` }
let platform: Platform
let gate = createGate()

/** Calls a tool that reports what it does, and waits for the test before it says the result. */
const searcher = defineAgent('searcher', async turn => {
  const search = defineTool({
    ...{ name: 'search', description: 'Searches', input: z.object({}) },
    run: async (_, { progress }) => {
      progress('Reading page 1')
      await gate.opened
      return 'nothing'
    },
  })
  await turn.custom('progress', { message: 'Looking' })
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.content.type === 'tool_response' ? [say('There is nothing.')] : [call('search', {})],
  )
  await turn.run({ model, tools: [search] })
})

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 0, env })
})
beforeEach(async () => {
  gate = createGate()
  await startOwnWorker(platform, [searcher, registrar], { key: env.RIVULET_WORKER_KEY, callerKey: env.RIVULET_KEY })
})
afterAll(() => platform.close())

describe.each([
  ['2026-07-28', connect],
  ['2025-11-25', connectOlder],
])('a client of %s', (_, connectClient) => {
  test('gets the progress of its call while the agent works, then the result', async () => {
    const client = await connectClient()
    const messages: (string | undefined)[] = []
    const onprogress = ({ message }: { message?: string | undefined }) => void messages.push(message)
    const params = { name: 'searcher', arguments: { message: 'go' } }
    const called =
      client instanceof OlderClient ? client.callTool(params, undefined, { onprogress }) : client.callTool(params, { onprogress })
    called.catch(() => {})
    await until('the tool has reported', () => messages.includes('search: Reading page 1'))
    expect(messages.slice(0, 3)).toEqual(expect.arrayContaining(['Looking', 'Calls search']))
    gate.open()
    expect((await called).content).toEqual([{ type: 'text', text: 'There is nothing.' }])
  })

  test('that wants progress gets the questions of its turn', async () => {
    const client = await connectClient()
    const params = { name: 'registrar', arguments: { message: 'go' } }
    const options = { onprogress: () => {} }
    const result = await (client instanceof OlderClient ? client.callTool(params, undefined, options) : client.callTool(params, options))
    expect(result.content).toMatchObject([{ text: expect.stringContaining('Who are you?') }])
  })
})

test('a call that its client cancels ends its turn, at any API', async () => {
  const client = await connectOlder()
  const leaving = new AbortController()
  const arguments_ = { message: 'go', task: `cancelled ${crypto.randomUUID()}` }
  const called = client.callTool({ name: 'searcher', arguments: arguments_ }, undefined, { signal: leaving.signal })
  const cancelled = expect(called).rejects.toThrow()
  const task = await until('the turn runs', () => taskOf(arguments_.task, 'running'))
  // The notification goes to another API than the call.
  apiOfClient = 1
  leaving.abort('not needed')
  await cancelled
  await until('the turn is canceled', () => taskOf(arguments_.task, 'canceled'))
  expect(task.id).toBeDefined()
})

test('a notification cancels no call of another session', async () => {
  const [client, other] = [await connectOlder(), await connectOlder()]
  const name = `kept ${crypto.randomUUID()}`
  const called = client.callTool({ name: 'searcher', arguments: { message: 'go', task: name } })
  called.catch(() => {})
  await until('the turn runs', () => taskOf(name, 'running'))
  for (const requestId of [0, 1, 2, 3]) await other.notification({ method: 'notifications/cancelled', params: { requestId } })
  gate.open()
  expect((await called).content).toMatchObject([{ text: 'There is nothing.' }])
})

/** Which API the requests of clients go to. */
let apiOfClient = 0

async function taskOf(name: string, status: string): Promise<{ id: string } | undefined> {
  const { body } = await platform.client.get<{ data: { id: string; status: string }[] }>(
    `/v1/tasks?name=${encodeURIComponent(name)}`,
    headers,
  )
  return body.data.find(task => task.status === status)
}

const throughAnyApi: typeof fetch = (input, init) =>
  fetch(String(input).replace(platform.urls[0] ?? '', platform.urls[apiOfClient] ?? ''), init)

async function connect(): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${platform.urls[0]}/mcp`), { requestInit: { headers } }))
  onTestFinished(() => client.close())
  return client
}

async function connectOlder(): Promise<OlderClient> {
  apiOfClient = 0
  const client = new OlderClient({ name: 'test', version: '1' })
  // Its types allow `undefined` where ours do not.
  await client.connect(new OlderTransport(new URL(`${platform.urls[0]}/mcp`), { requestInit: { headers }, fetch: throughAnyApi }) as never)
  onTestFinished(() => client.close())
  return client
}
