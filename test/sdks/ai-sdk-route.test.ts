/** The route that docs/sdks.md shows for `RivuletChatTransport`: a page reaches the chats of its own user, and nothing else. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Chat } from '@ai-sdk/react'
import { RivuletChatTransport } from '@rivulet/client/ai-sdk'
import { defineAgent } from '@rivulet/worker'
import type { UIMessage } from 'ai'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { blocksOf } from '../support/texts/fenced-blocks.ts'
import { typeErrorsIn } from '../support/texts/type-errors.ts'
import { until } from '../support/until.ts'
import { paid, payerOf } from './asking-agents.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }
const page = readFileSync(new URL('../../docs/sdks.md', import.meta.url), 'utf8')
const programs = blocksOf(page).filter(({ text }) => text.includes("replace('/rivulet', '')"))
const reader = defineAgent('reader', async turn => void (await turn.send(`${turn.text} (${turn.number})`)))
const closers: (() => unknown)[] = []
let platform: Platform
let route = ''
let payingRoute = ''

beforeAll(async () => {
  platform = await startPlatform({ apis: 1, workers: 0, env })
  route = await startRoute('reader')
  payingRoute = await startRoute('payer')
})
beforeEach(async () => {
  paid.length = 0
  await startOwnWorker(platform, [reader, payerOf(1)], { key: env.RIVULET_WORKER_KEY, callerKey: env.RIVULET_KEY })
})
afterAll(async () => {
  for (const close of closers) await close()
  await platform?.close()
})

test('the program type-checks', () => {
  expect([programs.length, typeErrorsIn(programs, 'test/sdks')]).toEqual([1, ''])
})

test('a user chats, regenerates, edits and reloads through it', async () => {
  const { chat, id } = chatOf('ada', route)
  for (const text of ['One', 'Two']) await chat.sendMessage({ text })
  await chat.regenerate()
  await chat.sendMessage({ text: 'Zwei', messageId: chat.messages[2]?.id ?? '' })
  expect([chat.error, chat.messages.map(textOf)]).toEqual([undefined, ['One', 'One (1)', 'Zwei', 'Zwei (4)']])
  const reloaded = chatOf('ada', route, id).chat
  await reloaded.resumeStream()
  expect([reloaded.error, textOf(reloaded.lastMessage)]).toEqual([undefined, 'Zwei (4)'])
})

test('the task of another user is refused, by its id and by its name', async () => {
  const { chat, id } = chatOf('ada', payingRoute)
  await chat.sendMessage({ text: 'Pay' })
  const task = taskOf(chat)
  const call = chat.lastMessage?.parts.flatMap(part => (part.type === 'dynamic-tool' ? [part.approval?.id ?? ''] : []))[0] ?? ''

  const stolen = chatOf('bob', payingRoute, 'other', structuredClone(chat.messages)).chat
  const approve = async (by: Chat<UIMessage>) => {
    await by.addToolApprovalResponse({ id: call, approved: true })
    await by.sendMessage()
  }
  for (const act of [
    () => approve(stolen),
    () => stolen.resumeStream(),
    () => stolen.regenerate(),
    () => stolen.sendMessage({ text: 'New', messageId: stolen.messages[0]?.id ?? '' }),
  ]) {
    stolen.messages = structuredClone(chat.messages)
    stolen.clearError()
    await act()
    expect(stolen.error).toBeDefined()
  }
  const byName = chatOf('bob', payingRoute, id).chat
  await byName.resumeStream()
  expect(byName.messages).toEqual([])
  for (const path of [`${task}`, `${task}/events?format=ai-sdk`]) expect(await statusOf('bob', `/v1/tasks/${path}`)).toBe(404)
  for (const path of ['cancel', 'retry', 'turns', `waits/${call}/answer`]) {
    expect(await statusOf('bob', `/v1/tasks/${task}/${path}`, {})).toBe(404)
  }
  expect(paid).toEqual([])

  await approve(chat)
  expect([chat.error, paid]).toEqual([undefined, [1]])
})

test('a page gets the numbers of the turns, and nothing else of the task', async () => {
  const { chat } = chatOf('ada', route)
  await chat.sendMessage({ text: 'One' })
  const response = await fetch(`${route}/v1/tasks/${taskOf(chat)}`, { headers: { cookie: 'user=ada' } })
  expect(await response.json()).toEqual({ turns: [{ number: 1 }] })
})

test('no other path is passed on, also not for the task of the user itself', async () => {
  const { chat } = chatOf('ada', route)
  await chat.sendMessage({ text: 'One' })
  const task = taskOf(chat)
  for (const path of [
    '/v1/keys',
    '/v1/tasks/',
    '/v1/tasks/../keys',
    `/v1/tasks/${task}/../../keys`,
    `/v1/tasks/${task}/messages`,
    '/metrics',
  ]) {
    expect([path, await statusOf('ada', path)]).toEqual([path, 404])
  }
  expect(await statusOf('ada', `/v1/tasks/${task}/tokens`, { can: ['read'] })).toBe(404)
  expect(await statusOf('', `/v1/tasks/${task}`)).toBe(401)
})

test('a page cannot choose the agent, the owner or the tasks of a list', async () => {
  const body = { agent: 'payer', name: 'x', input: 'Hello', metadata: { user: 'bob' }, secrets: { A: 'b' } }
  expect(await statusOf('ada', '/v1/tasks?format=ai-sdk', body)).toBe(200)
  const list = await fetch(`${route}/v1/tasks?name=x&metadata.user=bob`, { headers: { cookie: 'user=ada' } })
  const { data } = (await list.json()) as { data: unknown[] }
  expect(data).toMatchObject([{ agent: 'reader', name: 'ada:x', metadata: { user: 'ada' } }])
})

function chatOf(user: string, url: string, id: string = crypto.randomUUID(), messages: UIMessage[] = []) {
  const transport = new RivuletChatTransport({ url, agent: 'any', headers: { cookie: `user=${user}` } })
  return { chat: new Chat<UIMessage>({ id, transport, messages }), id }
}

/** With a body, of a POST. */
async function statusOf(user: string, path: string, body?: object): Promise<number> {
  const headers = { cookie: `user=${user}`, 'content-type': 'application/json' }
  const response = await fetch(`${route}${path}`, { headers, ...(body && { method: 'POST', body: JSON.stringify(body) }) })
  await response.text()
  return response.status
}

/** The program of the page, with the address and the key of this platform, a port that is free, and an agent of this test. */
async function startRoute(agent: string): Promise<string> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-route-'))
  const file = join(folder, 'route.mts')
  const [program = { text: '' }] = programs
  const shown = program.text.replace('http://127.0.0.1:4000', platform.urls[0] ?? '').replace("'assistant'", `'${agent}'`)
  writeFileSync(file, shown.replace('listen(3000)', `listen(${port})`))
  const running = spawn(process.execPath, ['--import', 'tsx', file], { stdio: 'inherit', env: { ...process.env, ...env } })
  closers.push(async () => {
    running.kill()
    await once(running, 'close')
    rmSync(folder, { recursive: true })
  })
  const url = `http://127.0.0.1:${port}`
  const listens = () =>
    fetch(url).then(
      () => true,
      () => false,
    )
  await until('the route listens', listens)
  return `${url}/rivulet`
}

function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? []).flatMap(part => (part.type === 'text' ? [part.text] : [])).join('')
}

function taskOf({ messages }: Chat<UIMessage>): string {
  return /^[^:]+/.exec(messages.at(-1)?.id ?? '')?.[0] ?? ''
}
