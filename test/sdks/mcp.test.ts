/** Clients of the Model Context Protocol, unmodified: that of 2026-07-28, and the one before it. Tasks, which neither has, are spoken by hand. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OlderClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OlderTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { defineAgent, delta } from '@rivulet/worker'
import { createParser } from 'eventsource-parser'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { halting } from '../support/agents/halting-agent.ts'
import { fail, full, rest, say } from '../support/agents/scripts.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 1 })
})
afterAll(() => platform.close())

const registrar = defineAgent('registrar', async turn => {
  const { content } = await turn.ask('who', { title: 'Who are you?', schema: z.object({ name: z.string() }), hold: 0 })
  const { action } = await turn.ask('sure', { title: 'Sure?', hold: 0 })
  await turn.send(`${JSON.stringify(content)} ${action}`)
})

describe('a client of 2026-07-28', () => {
  test('lists the agents as tools and calls them, at any API', async () => {
    const client = await connect()
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['echo', 'scripted']))
    expect(tools.map(({ name }) => name)).toEqual(tools.map(({ name }) => name).toSorted())
    expect(await client.callTool({ name: 'echo', arguments: { message: 'hi' } })).toMatchObject({ content: [{ type: 'text', text: 'hi' }] })
    const steps = [
      say(0, 'Look:'),
      full(1, { type: 'data', data: { whole: true } }),
      full(2, { type: 'media', mimeType: 'image/png', data: 'AAEC' }),
    ]
    const result = await client.callTool({ name: 'scripted', arguments: { message: 'go', params: { steps } } })
    expect(result).toMatchObject({
      content: [{ text: 'Look:' }, { text: '{"whole":true}' }, { type: 'image', data: 'AAEC', mimeType: 'image/png' }],
      structuredContent: { whole: true },
    })
    const other = await connect(1)
    for (const message of ['one', 'two']) await other.callTool({ name: 'echo', arguments: { message, task: 'a-conversation' } })
    const { body } = await platform.client.get<{ data: { id: string }[] }>('/v1/tasks?name=a-conversation')
    expect(await platform.client.messages(body.data[0]?.id ?? '')).toHaveLength(4)
  })

  test('responds to what a turn asks for, inside its call', async () => {
    await startOwnWorker(platform, [registrar])
    const client = await connect(0, { elicitation: {} })
    const asked: string[] = []
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      asked.push(params.message)
      return params.message === 'Sure?' ? { action: 'decline' } : { action: 'accept', content: { name: 'Ada' } }
    })
    const result = await client.callTool({ name: 'registrar', arguments: { message: 'go' } })
    expect(asked).toEqual(['Who are you?', 'Sure?'])
    expect(result.content).toMatchObject([{ text: '{"name":"Ada"} decline' }])
  })

  test('gets a failed turn as an error of the tool, and what is wrong as an error of the call', async () => {
    const client = await connect()
    const failed = await client.callTool({
      name: 'scripted',
      arguments: { message: 'go', params: { steps: [say(0, 'Half'), fail('no luck')] } },
    })
    expect(failed).toMatchObject({ isError: true, content: [{ text: 'Half' }, { type: 'text' }] })
    await expect(client.callTool({ name: 'none', arguments: { message: 'x' } })).rejects.toMatchObject({ code: -32602 })
    await expect(client.callTool({ name: 'echo', arguments: {} })).rejects.toMatchObject({ code: -32602 })
  })
})

test.each(['SIGKILL', 'SIGTERM'] as const)('a call whose API got %s fails, and its turn goes on', async signal => {
  const own = await startPlatform({ apis: 2, workers: 1 })
  onTestFinished(() => own.close())
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${own.urls[1]}/mcp`)))
  const params = { steps: [say(0, 'word '), rest(1_000), say(0, 'word')] }
  const broken = client.callTool({ name: 'scripted', arguments: { message: 'go', task: 'thread', params } })
  const ofThread = () => own.client.get<{ data: { id: string; status: string }[] }>('/v1/tasks?name=thread')
  await until('it runs', async () => (await ofThread()).body.data[0]?.status === 'running')
  void own.apis[1]?.kill(signal)
  await expect(broken).rejects.toThrow()
  const { id = '' } = (await ofThread()).body.data[0] ?? {}
  await own.client.waitForEnd(id)
  expect((await own.client.messages(id)).at(-1)?.content).toMatchObject({ text: 'word word' })
})

test('a client of 2025-11-25 initializes without a session, lists and calls', async () => {
  const client = await connectOlder()
  expect(client.getServerVersion()).toMatchObject({ name: 'rivulet' })
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('echo')
  expect(await client.callTool({ name: 'echo', arguments: { message: 'hi' } })).toMatchObject({ content: [{ type: 'text', text: 'hi' }] })
})

test.each([
  ['2026-07-28', connect],
  ['2025-11-25', connectOlder],
])('a client of %s that cannot ask its user gets the questions as a text, and where they are answered', async (_, connectClient) => {
  await startOwnWorker(platform, [registrar])
  const client = await connectClient()
  const { content } = await client.callTool({ name: 'registrar', arguments: { message: 'go' } })
  const [{ text = '' } = {}] = content as { text?: string }[]
  expect(text).toContain('Who are you?')
  const [, answer = ''] = /POST (\S+)\)/.exec(text) ?? []
  const answered = await platform.client.post(answer, { action: 'accept', content: { name: 'Ada' } })
  expect(answered.status).toBe(200)
})

test('an unknown MCP-Protocol-Version is 400, with those that the server speaks', async () => {
  const response = await fetch(`${platform.urls[0]}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': '1999-01-01' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  })
  const error = { data: { supported: expect.arrayContaining(['2026-07-28', '2025-06-18']), requested: '1999-01-01' } }
  expect([response.status, await response.json()]).toMatchObject([400, { error }])
})

describe('tasks', () => {
  test('are turns: a call returns at once, and any API has its task', async () => {
    const called = await rpc('tools/call', {
      name: 'scripted',
      arguments: { message: 'go', params: { steps: [rest(50), say(0, 'Done.')] } },
    })
    expect(called.result).toMatchObject({ resultType: 'task', status: 'working', pollIntervalMs: 1_000 })
    const ended = await until('it has ended', async () => {
      const { result } = await rpc('tasks/get', { taskId: called.result.taskId }, 1)
      return result.status !== 'working' && result
    })
    expect(ended).toMatchObject({ resultType: 'complete', status: 'completed', result: { content: [{ text: 'Done.' }] } })
  })

  test('ask for input, go on with it, are canceled, and fail', async () => {
    await startOwnWorker(platform, [registrar])
    const { result } = await rpc('tools/call', { name: 'registrar', arguments: { message: 'go' } })
    const { taskId } = result
    const asking = await until('it asks', async () => {
      const { result: task } = await rpc('tasks/get', { taskId })
      return task.status === 'input_required' && task
    })
    const [[wait = '', request] = []] = Object.entries(asking.inputRequests as object)
    expect(request).toMatchObject({ method: 'elicitation/create', params: { mode: 'form', message: 'Who are you?' } })
    const wrong = await rpc('tasks/update', { taskId, inputResponses: { [wait]: { action: 'accept', content: { name: 1 } } } })
    expect(wrong.error).toMatchObject({ code: -32602 })
    const inputResponses = { [wait]: { action: 'accept', content: { name: 'Ada' } }, unknown: { action: 'cancel' } }
    expect((await rpc('tasks/update', { taskId, inputResponses }, 1)).result).toEqual({ resultType: 'complete' })
    await until('it asks again', async () => {
      const { result: task } = await rpc('tasks/get', { taskId })
      return task.status === 'input_required' && !(wait in (task.inputRequests as object))
    })
    expect((await rpc('tasks/cancel', { taskId })).result).toEqual({ resultType: 'complete' })
    expect((await rpc('tasks/get', { taskId })).result).toMatchObject({ status: 'cancelled' })
    const failing = await rpc('tools/call', { name: 'scripted', arguments: { message: 'go', params: { steps: [fail('no')] } } })
    const failed = await until('it failed', async () => {
      const { result: task } = await rpc('tasks/get', { taskId: failing.result.taskId })
      return task.status === 'failed' && task
    })
    expect(failed.error).toMatchObject({ code: -32603 })
    expect((await rpc('tasks/get', { taskId: crypto.randomUUID() })).error).toMatchObject({ code: -32602 })
  })

  test('are refused without the extension, in another version, and with headers that do not match', async () => {
    const params = { taskId: crypto.randomUUID() }
    expect(await rpc('tasks/get', params, 0, { capabilities: {} })).toMatchObject({ status: 400, error: { code: -32021 } })
    expect(await rpc('tasks/get', params, 0, { version: '2099-01-01' })).toMatchObject({
      ...{ status: 400, error: { code: -32022, data: { supported: ['2026-07-28'] } } },
    })
    expect(await rpc('tasks/get', params, 0, { headers: { 'mcp-method': 'tools/list' } })).toMatchObject({
      status: 400,
      error: { code: -32020 },
    })
    expect(await rpc('no/such', {})).toMatchObject({ status: 404, error: { code: -32601 } })
  })
})

test('a task, a call and a subscription go on when the log is lost, and any API has the result without it', async () => {
  const { agent, open } = await halting(platform, [delta(0, 'one ')], [delta(0, 'two')])
  const called = (await connect()).callTool({ name: agent, arguments: { message: 'go', task: 'lost call' } })
  const { result } = await rpc('tools/call', { name: agent, arguments: { message: 'go', task: 'lost task' } })
  const taskId = String(result.taskId)
  const told: Notice[] = []
  const listening = listen([taskId], told)
  const tasks = await Promise.all(['lost call', 'lost task'].map(name => untilSaid(name, 'one ')))
  const loseLogs = () => Promise.all(tasks.map(task => platform.redis.del(platform.keys.stream(task), platform.keys.state(task))))
  await loseLogs()
  expect((await rpc('tasks/get', { taskId }, 1)).result.status).toBe('working')
  open()
  const whole = { content: [{ type: 'text', text: 'one two' }] }
  expect(await called).toMatchObject(whole)
  await listening
  expect(told.at(-2)?.params).toMatchObject({ taskId, status: 'completed', result: whole })
  await loseLogs()
  for (const api of [0, 1]) {
    expect((await rpc('tasks/get', { taskId }, api)).result).toMatchObject({ status: 'completed', result: whole })
    const again: Notice[] = []
    await listen([taskId], again, platform.urls[api])
    expect(again[1]?.params).toMatchObject({ taskId, status: 'completed', result: whole })
  }
})

test('tasks/cancel cancels a turn, also for a call that waits; a client that leaves its call does not', async () => {
  const { agent, open } = await halting(platform, [delta(0, 'one ')], [delta(0, 'two')])
  const [client, older] = [await connect(), await connectOlder()]
  const calls = [
    (task: string) => client.callTool({ name: agent, arguments: { message: 'go', task } }),
    (task: string) => older.callTool({ name: agent, arguments: { message: 'go', task } }),
  ]
  const leaving = new AbortController()
  const left = client.callTool({ name: agent, arguments: { message: 'go', task: 'left' } }, { signal: leaving.signal })
  left.catch(() => {})
  await untilSaid('left', 'one ')
  leaving.abort(new Error('The client leaves'))
  await expect(left).rejects.toThrow('The client leaves')
  for (const [place, call] of calls.entries()) {
    const waiting = call(`canceled ${place}`)
    const { turns } = await platform.client.detail(await untilSaid(`canceled ${place}`, 'one '))
    const taskId = turns[0]?.id ?? ''
    for (const api of [0, 1]) expect((await rpc('tasks/cancel', { taskId }, api)).result).toEqual({ resultType: 'complete' })
    expect(await waiting).toMatchObject({ isError: true, content: [{ text: 'one ' }, { type: 'text' }] })
    expect((await rpc('tasks/get', { taskId })).result).toMatchObject({ status: 'cancelled' })
  }
  open()
  await untilSaid('left', 'one two')
})

describe('a subscription', () => {
  test('has each task whenever it changes, as tasks/get has it, and ends with the last one', async () => {
    await startOwnWorker(platform, [registrar])
    const [asking, other] = await Promise.all(['registrar', 'echo'].map(name => rpc('tools/call', { name, arguments: { message: 'go' } })))
    const [taskId, otherId] = [asking?.result.taskId, other?.result.taskId] as [string, string]
    const told: Notice[] = []
    const listening = listen([taskId, otherId, crypto.randomUUID()], told)
    for (const content of [{ name: 'Ada' }, {}]) {
      const known = told.length
      const { inputRequests = {} } = await until(
        'it asks',
        () => told.slice(known).find(({ params }) => params?.taskId === taskId && params?.status === 'input_required')?.params,
      )
      const inputResponses = Object.fromEntries(Object.keys(inputRequests).map(wait => [wait, { action: 'accept', content }]))
      await rpc('tasks/update', { taskId, inputResponses }, 1)
    }
    await listening
    expect(told[0]).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: { _meta: subscription, notifications: { taskIds: [taskId, otherId] } },
    })
    expect(told.at(-1)).toEqual({ jsonrpc: '2.0', id: 7, result: { resultType: 'complete', _meta: subscription } })
    for (const id of [taskId, otherId]) {
      const seen = told.flatMap(({ params }) => (params?.taskId === id ? [params] : []))
      const { resultType: _, ...stored } = (await rpc('tasks/get', { taskId: id })).result
      expect(seen.at(-1)).toEqual({ ...stored, _meta: subscription })
      expect(seen.at(-1)?.status).toBe('completed')
    }
  })

  test('is ended in order by an API that stops, and is refused without the extension', async () => {
    const own = await startPlatform({ apis: 2, workers: 1 })
    onTestFinished(() => own.close())
    const resting = { name: 'scripted', arguments: { message: 'go', params: { steps: [rest(60_000)] } } }
    const { result } = await rpc('tools/call', resting, own.urls[1])
    const told: Notice[] = []
    const listening = listen([String(result.taskId)], told, own.urls[1])
    await until('it has the task', () => told.length === 2)
    void own.apis[1]?.kill('SIGTERM')
    await listening
    expect(told.map(({ params, result }) => params?.status ?? result?.resultType)).toEqual([undefined, 'working', 'complete'])
    const refused = await rpc('subscriptions/listen', { notifications: { taskIds: [result.taskId] } }, 0, { capabilities: {} })
    expect(refused).toMatchObject({ status: 400, error: { code: -32021 } })
  })

  test('of the SDK has what it listens to, and one to what is not offered ends in order', async () => {
    await startOwnWorker(platform, [registrar])
    const client = await connect(0, { extensions: { 'io.modelcontextprotocol/tasks': {} } })
    const nothing = await client.listen({ toolsListChanged: true })
    expect([nothing.honoredFilter, await nothing.closed]).toEqual([{}, 'graceful'])
    const { result } = await rpc('tools/call', { name: 'registrar', arguments: { message: 'go' } })
    const seen: unknown[] = []
    client.fallbackNotificationHandler = async ({ params }) => void seen.push(params?.status)
    const subscribed = await client.listen({ taskIds: [result.taskId] } as never)
    await until('it asks', () => seen.at(-1) === 'input_required')
    await subscribed.close()
    expect(await subscribed.closed).toBe('local')
    expect((await rpc('tasks/get', { taskId: result.taskId })).result.status).toBe('input_required')
  })
})

const subscription = { 'io.modelcontextprotocol/subscriptionId': 7 }
type Notice = {
  method?: string
  params?: { taskId?: string; status?: string; inputRequests?: object } & Record<string, unknown>
  result?: { resultType: string }
}

/** Adds each message, until the stream ends. */
async function listen(taskIds: string[], told: Notice[], url = platform.urls[0]): Promise<void> {
  const response = await call('subscriptions/listen', { notifications: { taskIds } }, url, {}, 7)
  expect(response.headers.get('content-type')).toContain('text/event-stream')
  const parser = createParser({ onEvent: ({ data }) => told.push(JSON.parse(data) as Notice) })
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) parser.feed(piece)
}

async function connect(
  api = 0,
  capabilities: { elicitation?: Record<string, never>; extensions?: Record<string, Record<string, never>> } = {},
): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${platform.urls[api]}/mcp`)))
  onTestFinished(() => client.close())
  return client
}

async function connectOlder(): Promise<OlderClient> {
  const client = new OlderClient({ name: 'test', version: '1' })
  // Its types allow `undefined` where ours do not.
  await client.connect(new OlderTransport(new URL(`${platform.urls[0]}/mcp`)) as never)
  onTestFinished(() => client.close())
  return client
}

/** Returns the task of this name when its last message has the text. */
function untilSaid(name: string, text: string): Promise<string> {
  return until(`${name} has it`, async () => {
    const { body } = await platform.client.get<{ data: { id: string }[] }>(`/v1/tasks?name=${encodeURIComponent(name)}`)
    const [found] = body.data
    const last = found && (await platform.client.messages(found.id)).at(-1)
    return last?.author === 'agent' && last.content.type === 'text' && last.content.text === text ? found?.id : undefined
  })
}

type Spoken = { version?: string; capabilities?: object; headers?: Record<string, string> }
type Reply = { status: number; result: Record<string, unknown>; error?: Record<string, unknown> }

async function rpc(method: string, params: Record<string, unknown>, api: number | string = 0, spoken: Spoken = {}): Promise<Reply> {
  const response = await call(method, params, typeof api === 'string' ? api : platform.urls[api], spoken)
  return { status: response.status, ...((await response.json()) as Omit<Reply, 'status'>) }
}

function call(method: string, params: Record<string, unknown>, url: string | undefined, spoken: Spoken, id = 1): Promise<Response> {
  const { version = '2026-07-28', capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } }, headers } = spoken
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }
  const name = params.name ?? params.taskId
  return fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', 'mcp-protocol-version': version, 'mcp-method': method },
      ...(typeof name === 'string' && { 'mcp-name': name }),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta } }),
  })
}
