/** The stream that the AI SDK reads, beside our own: the same log, the same cursors. What the SDK makes of it is tested in test/sdks. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@rivulet/client'
import { delta } from '@rivulet/worker'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { halting } from '../support/agents/halting-agent.ts'
import { done, repeat, rest, say, scripted } from '../support/agents/scripts.ts'
import { freePort } from '../support/free-port.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { type ReadOptions, readFormat } from '../support/viewers/format-reader.ts'
import { watch } from '../support/viewers/viewer.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2 })
})
afterAll(() => platform.close())

const slowly = [repeat(15, say(0, 'word '), rest(20)), done(0)]

test('a turn is one message: start, its parts, finish, and the end of the response', async () => {
  const { task } = await platform.client.createTask(scripted(slowly))
  const [plain, spoken] = [watch(task.id, { urls: platform.urls }), listen(`${platform.url}/v1/tasks/${task.id}/events?format=ai-sdk`)]
  await Promise.all([plain.ended, spoken.closed])
  expect(spoken.headers()).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'x-vercel-ai-ui-message-stream': 'v1',
  })
  expect(spoken.chunks().at(0)).toEqual({ type: 'start', messageId: `${task.id}:1`, messageMetadata: { task: task.id, turn: 1 } })
  expect(spoken.chunks().at(-1)).toEqual({ type: 'finish', finishReason: 'stop' })
  expect(spoken.text()).toBe(plain.text())
  expect(spoken.frames.at(-1)).toEqual({ id: null, event: null, data: '[DONE]' })
  const cursors = new Set((await platform.log(task.id)).map(({ cursor }) => String(cursor)))
  expect(spoken.frames.filter(({ id }) => id !== null && !cursors.has(id))).toEqual([])
})

test('the caller that creates a task can stream its turn at once, also the next turn of a busy task', async () => {
  const name = crypto.randomUUID()
  const post = () =>
    listen(`${platform.url}/v1/tasks?format=ai-sdk`, { body: scripted([say(0, 'one '), rest(300), say(0, 'two')], { name, input: 'go' }) })
  const first = post()
  await first.until(() => first.text().startsWith('one '))
  const second = post()
  await Promise.all([first.closed, second.closed])
  expect([first.text(), second.text()]).toEqual(['one two', 'one two'])
  expect([first, second].map(({ chunks }) => chunks()[0]?.messageId?.split(':')[1])).toEqual(['1', '2'])
})

test('a turn that waits behind another is resumed by its number, and tells nothing of the other', async () => {
  const { agent, open } = await halting(platform, [delta(0, 'one ')], [delta(0, 'two')])
  const body = { agent, name: crypto.randomUUID(), input: 'go' }
  const { task } = await platform.client.createTask(body)
  const leaving = new AbortController()
  const cut = listen(`${platform.url}/v1/tasks?format=ai-sdk`, { body, signal: leaving.signal })
  await cut.until(() => cut.frames.some(({ id }) => id !== null))
  leaving.abort()
  await cut.closed
  const cursor = cut.frames.findLast(({ id }) => id)?.id ?? ''
  const more = listen(`${platform.url}/v1/tasks/${task.id}/events?format=ai-sdk&turn=2`, { after: cursor })
  const first = listen(`${platform.url}/v1/tasks/${task.id}/events?format=ai-sdk`)
  await first.until(() => first.text() === 'one ')
  open()
  expect(await Promise.all([more.closed, first.closed])).toEqual(['ended', 'ended'])
  expect([more.text(), first.text()]).toEqual(['one two', 'one two'])
  expect(cut.chunks()[0]?.messageId).toBe(`${task.id}:2`)
  expect(first.chunks()[0]?.messageId).toBe(`${task.id}:1`)
})

test('a turn that was added by its own call is the streamed one', async () => {
  const { task } = await platform.client.createTask(scripted([say(0, 'first')]))
  await platform.client.waitForEnd(task.id)
  await platform.client.post(`/v1/tasks/${task.id}/turns`, { input: 'and?', params: { steps: [say(0, 'second')] } })
  const spoken = listen(`${platform.url}/v1/tasks/${task.id}/events?format=ai-sdk`)
  expect(await spoken.closed).toBe('ended')
  expect(spoken.chunks()[0]?.messageId).toBe(`${task.id}:2`)
  expect(spoken.text()).toBe('second')
  const earlier = listen(`${platform.url}/v1/tasks/${task.id}/events?format=ai-sdk&turn=1`)
  await earlier.closed
  expect(earlier.text()).toBe('first')
  const none = await platform.client.get<ErrorReply>(`/v1/tasks/${task.id}/events?format=ai-sdk&turn=3`)
  expect([none.status, none.body.error.code]).toEqual([404, 'not_found'])
})

test('an API that stops breaks the connection off, and the cursor goes on at another', async () => {
  const api = await platform.startApi()
  const { agent, open } = await halting(platform, [delta(0, 'half ')], [delta(0, 'whole')])
  const { task } = await platform.client.createTask({ agent })
  const cut = listen(`${api.url}/v1/tasks/${task.id}/events?format=ai-sdk`)
  await cut.until(() => cut.text() === 'half ')
  await api.kill('SIGTERM')
  expect(await cut.closed).toBe('broken')
  open()
  const more = listen(`${platform.url}/v1/tasks/${task.id}/events?format=ai-sdk`, { after: cut.frames.findLast(({ id }) => id)?.id ?? '' })
  expect(await more.closed).toBe('ended')
  expect(cut.text() + more.text()).toBe('half whole')
  expect(more.chunks().map(({ type }) => type)).toEqual(['text-delta', 'text-end', 'finish'])
})

test.each([
  'GET format=events',
  'GET format=',
  'GET format=ai-sdk&follow=true',
  'GET format=ai-sdk&turn=0',
  'GET turn=1',
  'POST format=events',
  'POST other=1',
])('%s is refused', async request => {
  const [method, query] = request.split(' ')
  const { task } = await platform.client.createTask(scripted([]))
  const reply =
    method === 'POST'
      ? await platform.client.post<ErrorReply>(`/v1/tasks?${query}`, scripted([]))
      : await platform.client.get<ErrorReply>(`/v1/tasks/${task.id}/events?${query}`)
  expect([reply.status, reply.body.error.code]).toEqual([400, 'validation_failed'])
})

test('the proxy that docs/sdks.md shows has a key, and puts the user before every name: the same chat of two users is two tasks', async () => {
  const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }
  const { url, close } = await startPlatform({ env })
  onTestFinished(close)
  const proxy = await startShownProxy(url, env.RIVULET_KEY)
  const ask = (user: string) => {
    // A page may send what it likes: the proxy takes neither its name nor its metadata.
    const body = JSON.stringify({ id: 'chat', input: `I am ${user}`, name: 'ada:chat', metadata: { user: 'ada' } })
    return fetch(`${proxy}/chat`, { method: 'POST', headers: { cookie: `user=${user}` }, body })
  }
  expect((await ask('')).status).toBe(401)
  for (const user of ['ada', 'bob']) expect(await (await ask(user)).text()).toMatch(/"text-delta"[\s\S]*\[DONE\]/)
  const { tasks } = createClient({ url, key: env.RIVULET_KEY })
  for (const user of ['ada', 'bob']) {
    const { data } = await tasks.list({ name: `${user}:chat` })
    expect(data).toMatchObject([{ metadata: { user } }])
    const messages = await tasks.get(data[0]?.id ?? '').messages()
    expect(messages.data).toMatchObject([{ content: { text: `I am ${user}` } }, { author: 'agent' }])
  }
})

test('the description of the API names the format', async () => {
  const { body } = await platform.client.get<{ paths: Record<string, Record<string, { parameters: { name: string }[] }>> }>('/openapi.json')
  for (const [path, method] of [
    ['/v1/tasks/{id}/events', 'get'],
    ['/v1/tasks', 'post'],
  ] as const) {
    expect(body.paths[path]?.[method]?.parameters).toContainEqual(expect.objectContaining({ name: 'format', in: 'query' }))
  }
})

type Chunk = { type: string; delta?: string; messageId?: string }

/** A reader of the SDK's chunks. */
function listen(url: string, options?: ReadOptions) {
  const reader = readFormat(url, options)
  const chunks = () => reader.frames.filter(({ data }) => data !== '[DONE]').map(({ data }): Chunk => JSON.parse(data))
  return {
    ...reader,
    chunks,
    text: () =>
      chunks()
        .flatMap(({ type, delta }) => (type === 'text-delta' ? [delta] : []))
        .join(''),
  }
}

/** The program of the page, with the address of an API, a port that is free, and an agent that echoes. */
async function startShownProxy(api: string, key: string): Promise<string> {
  const page = readFileSync(new URL('../../docs/sdks.md', import.meta.url), 'utf8')
  const [, shown = ''] = /\*\*End users\.\*\*[\s\S]*?```ts\n([\s\S]*?)\n```/.exec(page) ?? []
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-proxy-'))
  const file = join(folder, 'proxy.mts')
  writeFileSync(
    file,
    shown.replace('http://127.0.0.1:4000', api).replace('listen(3000)', `listen(${port})`).replace("'assistant'", "'echo'"),
  )
  const proxy = spawn(process.execPath, ['--import', 'tsx', file], { env: { ...process.env, RIVULET_KEY: key }, stdio: 'inherit' })
  onTestFinished(async () => {
    proxy.kill()
    await once(proxy, 'close')
    rmSync(folder, { recursive: true })
  })
  const url = `http://127.0.0.1:${port}`
  await until('the proxy listens', () =>
    fetch(url).then(
      () => true,
      () => false,
    ),
  )
  return url
}
