/**
 * Why an agent failed is for its operator: a viewer with a token gets the text that the agent's author meant for it, or a fixed sentence. The
 * text of an exception is in the logs, and in the turn that a key gets. A secret of a task is for the agent alone.
 */
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { createClient, type TaskHandle } from '@rivulet/client'
import type { Message, Turn } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { secret } from '../support/agents/failing-agents.ts'
import { freePort } from '../support/free-port.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { storedTexts } from '../support/platform/stored-texts.ts'
import { until } from '../support/until.ts'

const key = 'the-root-key-of-this-test'
const env = {
  RIVULET_KEY: key,
  RIVULET_WORKER_KEY: 'the-worker-key-of-this-test',
  SECRETS_KEY: 'a key for the secrets of this test',
  WEBHOOK_ALLOW_PRIVATE: 'on',
  LOG_LEVEL: 'trace',
}

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, env })
  await startWorker()
})
afterAll(() => platform.close())

async function startWorker(workerEnv: Record<string, string> = {}): Promise<void> {
  const agents = fileURLToPath(new URL('../support/agents/failing-agents.ts', import.meta.url))
  await platform.startWorker({ AGENT_FILES: agents, ...workerEnv })
}

describe.each([
  ['an exception', 'throws', 'The agent failed', secret],
  ['an exception within a message', 'throws-in-scope', 'The agent failed', `fetch failed: ${secret}`],
  ['an exception within a step', 'throws-in-step', 'The agent failed', secret],
  ['an error of a model out of reach', 'runs', 'The connection to the model provider failed', expect.stringContaining('ECONNREFUSED')],
  ['an error that its author means for viewers', 'means-it', 'There is no order 7', `There is no order 7: ${secret}`],
  ['such an error of a run', 'means-it-in-a-run', 'There is no order 7', undefined],
])('%s', (_, agent, publicText, privateText) => {
  let task: string
  beforeAll(async () => {
    const params = agent === 'runs' ? `http://127.0.0.1:${await freePort()}` : null
    const created = await createClient({ url: platform.url, key }).tasks.create({ agent, params, maxAttempts: 1 })
    await expect(created.result()).rejects.toMatchObject({ code: 'agent_error', message: publicText })
    task = created.id
  })

  test('reaches a viewer in public words, wherever it looks', async () => {
    const { token } = await createClient({ url: platform.url, key }).tasks.get(task).createToken({ can: 'read' })
    const looks = ['', '/messages', '/events', '/events?from=start', '/events?format=ai-sdk', '/events?format=coding-agent']
    // A message has an error only if it was open, and the events of a coding agent have none.
    const hasNoError = new Set(['/messages', '/events?format=coding-agent'])
    for (const look of looks) {
      const shown = await read(`/v1/tasks/${task}${look}`, token)
      expect([look, withoutParams(shown)]).toEqual([
        look,
        expect.not.stringMatching(/hunter2|db-7\.internal|ECONNREFUSED|fetch failed|127\.0\.0\.1/),
      ])
      if (!hasNoError.has(look)) expect([look, shown]).toEqual([look, expect.stringContaining(publicText)])
    }
    const { turns } = JSON.parse(await read(`/v1/tasks/${task}`, token)) as { turns: Turn[] }
    expect(turns[0]?.error).toEqual({ code: 'agent_error', message: publicText })
    const { data } = JSON.parse(await read(`/v1/tasks/${task}/messages`, token)) as { data: Message[] }
    for (const { error } of data) expect(error?.message ?? publicText).toBe(publicText)
  })

  test('reaches a key in full, and the logs of both processes', async () => {
    const { turns } = JSON.parse(await read(`/v1/tasks/${task}`, key)) as { turns: Turn[] }
    const error = { code: 'agent_error', message: publicText, ...(privateText !== undefined && { detail: privateText }) }
    expect(turns[0]?.error).toEqual(error)
    // Events are the same for all viewers.
    expect(withoutParams(await read(`/v1/tasks/${task}/events?from=start`, key))).not.toMatch(/hunter2|ECONNREFUSED/)
    const lines = await until('both have logged it', () => {
      const found = [
        platform.apis[0]?.lines.find(line => line.msg === 'turn ended' && line.task === task),
        platform.workers[0]?.lines.find(line => line.msg === 'turn failed' && line.task === task),
      ]
      return found.every(Boolean) && found
    })
    expect(lines.map(line => line?.error)).toEqual([error, error])
  })
})

describe.each(['redis', 'http'])('a secret, with a worker over %s', transport => {
  const [canary, ofTurn] = [`canary-${randomUUID()}`, `canary-${randomUUID()}`]
  const received: string[] = []
  const name = `kept over ${transport}`
  const client = () => createClient({ url: platform.url, key })
  let webhook: string
  let task: string
  let leaky: string
  const leaks = ['in a message', 'in a step', 'in a stream', 'in a tool', 'across the cut of a long error', 'in a response by hand']

  beforeAll(async () => {
    await Promise.all(platform.workers.map(worker => worker.kill('SIGTERM')))
    await startWorker({ RIVULET_TRANSPORT: transport })
    const receiver = createServer(async (request, response) => {
      received.push(await text(request))
      response.end()
    })
    await once(receiver.listen(0, '127.0.0.1'), 'listening')
    const address = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
    webhook = (await client().webhooks.create({ url: address, events: ['task.created', 'turn.finished'] })).webhook.id
    const first = await client().tasks.create(
      { agent: 'keeper', name, input: 'one', secrets: { API_KEY: canary }, maxAttempts: 2 },
      { idempotencyKey: randomUUID() },
    )
    task = first.id
    expect(await said(first)).toBe(hashOf(canary))
    await first.send('two', { secrets: { API_KEY: ofTurn } })
    expect(await said(first)).toBe(hashOf(ofTurn))
    await first.retry()
    expect(await said(first)).toBe(hashOf(ofTurn))
    expect(await said(await first.fork({ input: 'copy' }))).toBe(hashOf(canary))
    for (const [path, body] of dialects(task)) {
      const shown = await post(path, body)
      expect([path, shown]).toEqual([path, expect.stringContaining(hashOf(canary))])
      expect([path, shown]).toEqual([path, expect.not.stringContaining('canary-')])
    }
    const leaking = await client().tasks.create({ agent: 'leaker', start: false, secrets: { API_KEY: canary }, maxAttempts: 1 })
    leaky = leaking.id
    for (const way of leaks) {
      await leaking.send(way)
      await leaking.result().catch(error => expect([way, error]).toEqual([way, expect.objectContaining({ code: 'agent_error' })]))
    }
    await first.change({ secrets: { API_KEY: ofTurn } })
    await first.change({ secrets: null })
    const last = await first.send('three')
    expect(await said(first)).toBe(hashOf('none'))
    await until('the webhook has the last end', () => received.some(body => body.includes(task) && body.includes(`"turn":${last.number},`)))
    receiver.close()
  })

  test('reaches the agent, and no response, stream, export or webhook, for a key and for a token', async () => {
    const { token } = await client().tasks.get(task).createToken({ can: 'read' })
    const looks = ['', '/messages', '/events', '/events?from=start', '/events?format=ai-sdk', '/turns/1', '/state']
    const ofKey = ['/export', '/turns/1/attempts']
    const others = ['tasks', 'tasks?view=summary', 'feed', 'errors', 'workers', 'audit', `webhooks/${webhook}/deliveries`]
    const paths = [
      ...looks.flatMap(look => [key, token].map(bearer => [`/v1/tasks/${task}${look}`, bearer] as const)),
      ...[...looks, ...ofKey].map(look => [`/v1/tasks/${leaky}${look}`, key] as const),
      ...ofKey.map(look => [`/v1/tasks/${task}${look}`, key] as const),
      ...others.map(other => [`/v1/${other}`, key] as const),
      ['/metrics', key] as const,
    ]
    for (const [path, bearer] of paths) expect([path, await read(path, bearer)]).toEqual([path, expect.not.stringContaining('canary-')])
    expect(received.join()).not.toContain('canary-')
    expect(await read(`/v1/tasks/${task}/turns/1/attempts`, key)).toContain('401 for the key [secret]')
    const { data } = JSON.parse(await read(`/v1/tasks/${leaky}/messages`, key)) as { data: Message[] }
    const errors = data.flatMap(({ turn, error, content }) =>
      error ? [[turn, error.message]] : content.type === 'tool_response' ? [[turn, content.content]] : [],
    )
    const refusal = '401 for the key [secret]'
    const cut = `${'long '.repeat(398)}[secret]`
    const expected = [refusal, refusal, refusal, refusal, cut, { status: 401, why: [refusal] }]
    expect(errors).toEqual(expected.map((error, i) => [i + 1, error]))
    expect(await read('/v1/audit', key)).toMatch(/secrets\.removed[\s\S]*secrets\.set/)
  })

  test('is in no log line, nowhere in Redis, and nowhere in the database', async () => {
    for (const { name, lines } of [...platform.apis, ...platform.workers])
      expect([name, JSON.stringify(lines)]).toEqual([name, expect.not.stringContaining('canary-')])
    const texts = await storedTexts(platform)
    for (const [name, stored] of texts) expect([name, stored]).toEqual([name, expect.not.stringContaining('canary-')])
    expect(texts.get(`Redis ${platform.keys.stream(task)}`)).toContain(hashOf(ofTurn))
    expect(texts.get('table task_secrets')).toContain(task)
  })

  test('is not accepted of a token', async () => {
    const { token } = await client().tasks.get(task).createToken({ can: 'send' })
    const sent = createClient({ url: platform.url, key: token })
      .tasks.get(task)
      .send('four', { secrets: { API_KEY: canary } })
    await expect(sent).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('that no key opens fails its turn, and says so', async () => {
    const kept = await client().tasks.create({ agent: 'keeper', start: false, secrets: { API_KEY: canary } })
    await platform.pg.query("update task_secrets set key = 'gone' where task = $1", [kept.id])
    await kept.send('one')
    await expect(kept.result()).rejects.toMatchObject({ code: 'secrets_unreadable' })
  })

  /** Requests of other protocols that continue the task. */
  function dialects(contextId: string): [path: string, body: object][] {
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hi' }], contextId }
    const params = { name: 'keeper', arguments: { message: 'hi', task: name } }
    return [
      ['/openai/v1/chat/completions', { model: 'keeper', messages: [{ role: 'user', content: 'hi' }], metadata: { task: name } }],
      ['/ag-ui/keeper', { threadId: name, runId: randomUUID(), messages: [{ id: 'm', role: 'user', content: 'hi' }] }],
      ['/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params }],
      ['/a2a/keeper/message:send', { message }],
    ]
  }

  /** The last message of a task that has ended. */
  async function said(handle: TaskHandle): Promise<string> {
    await handle.result()
    const content = (await handle.messages()).data.at(-1)?.content
    return content?.type === 'text' ? content.text : ''
  }
})

function hashOf(value: string): string {
  return createHash('sha256').update(value).digest('hex')
}

async function read(path: string, bearer: string): Promise<string> {
  const response = await fetch(`${platform.url}${path}`, { headers: { authorization: `Bearer ${bearer}` } })
  expect([path, response.status]).toEqual([path, 200])
  return response.text()
}

async function post(path: string, body: object): Promise<string> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  return (await fetch(`${platform.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).text()
}

/** The params of the task name a port of this machine. */
function withoutParams(shown: string): string {
  return shown.replaceAll(/"params":"[^"]*"/g, '')
}
