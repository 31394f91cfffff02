/**
 * One task has one id, however a caller spells it. Postgres takes capitals for the same id and Redis does not, so the edge makes one form of
 * what it accepts: everything behind it, in either database and in the hub, sees that form.
 */
import { createServer, type Server } from 'node:http'
import { createClient } from '@rivulet/client'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { rest, say, scripted } from '../support/agents/scripts.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { Page, TaskDetail } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { watch } from '../support/viewers/viewer.ts'

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

/** An id without a letter has one spelling only: such a task would show nothing. */
async function newTask(body: object): Promise<string> {
  return until('a task has an id with letters in it', async () => {
    const { task } = await platform.client.createTask(body)
    return /[a-f]/.test(task.id) && task.id
  })
}

describe('a task by capitals', () => {
  test('is heard as it speaks, by a viewer and by the client', async () => {
    const id = await newTask(scripted([say(0, 'one '), rest(300), say(0, 'two')]))
    const viewer = watch(id.toUpperCase(), { urls: [platform.url] })
    const handle = createClient({ url: platform.url }).tasks.get(id.toUpperCase())
    await viewer.ended
    expect(viewer.text()).toBe('one two')
    expect([handle.id, (await handle.result()).text]).toEqual([id, 'one two'])
  })

  test('is removed with its log', async () => {
    const id = await newTask(scripted([say(0, 'to be forgotten')]))
    await platform.client.waitForEnd(id)
    expect(await platform.redis.exists(platform.keys.stream(id))).toBe(1)
    expect((await platform.client.remove(id.toUpperCase())).status).toBe(204)
    expect(await platform.redis.exists(platform.keys.stream(id))).toBe(0)
  })

  test('has one feed, however many spellings its viewers use', async () => {
    const id = await newTask(scripted([rest(60_000)]))
    const spellings = [id, id.toUpperCase(), ...Array.from(id, (_, at) => id.slice(0, at) + id.slice(at).toUpperCase())]
    const viewers = [...new Set(spellings)].map(spelling => watch(spelling, { urls: [platform.url] }))
    for (const viewer of viewers) await viewer.until('it is there', ({ frames }) => frames().some(({ data }) => data.type === 'caught_up'))
    const channels = await platform.redis.pubsub('CHANNELS', '*:events:*')
    expect(channels.filter(channel => String(channel).toLowerCase().endsWith(id))).toEqual([platform.keys.channel(id)])
    await platform.client.cancel(id.toUpperCase())
    for (const viewer of viewers) await viewer.ended
  })

  test('is where a page of a listing goes on', async () => {
    const id = await newTask({ agent: 'echo', input: 'older' })
    const { task } = await platform.client.createTask({ agent: 'echo', input: 'newer' })
    const pages = [task.id, task.id.toUpperCase()].map(cursor =>
      platform.client.get<Page<{ id: string }>>(`/v1/tasks?cursor=${cursor}&limit=1`),
    )
    for (const { body } of await Promise.all(pages)) expect(body.data[0]?.id).toBe(id)
  })

  test('is the same request under an Idempotency-Key', async () => {
    const id = await newTask({ agent: 'echo', input: 'hello' })
    const headers = { 'idempotency-key': `again-${id}` }
    const ask = (path: string) => platform.client.post<{ turn: { id: string } }>(`/v1/tasks/${path}/turns`, { input: 'more' }, headers)
    const [first, again] = [await ask(id), await ask(id.toUpperCase())]
    expect([first.status, again.status, again.body.turn.id]).toEqual([202, 202, first.body.turn.id])
  })
})

test('no other spelling that Postgres would take is an id', async () => {
  const id = await newTask({ agent: 'echo', input: 'hello' })
  const dashless = id.replaceAll('-', '')
  for (const spelling of [`{${id}}`, dashless, `{${dashless}}`, id.replace(/^(....)/, '$1-'), `%20${id}`, `${id}%0a`])
    expect([spelling, (await platform.client.get(`/v1/tasks/${spelling}`)).status]).toEqual([spelling, 400])
})

test('workers may spell ids by capitals, too: every call of theirs means the same turn', async () => {
  const asked = new Set<string>()
  const url = await capitalising(asked)
  let begun = 0
  const agent = defineAgent('spelled', async turn => {
    begun += 1
    await turn.step('once', async () => 1)
    await turn.history()
    await turn.send('said')
    if (turn.params === 'lose the log') {
      await platform.redis.del(platform.keys.stream(turn.task.id), platform.keys.state(turn.task.id))
      await turn.send('said again')
    }
    if (turn.params === 'stay' && turn.attempt === 1 && begun === 1) {
      await until('a heartbeat was sent', () => asked.has('/internal/heartbeat'))
      await new Promise(resolve => turn.signal.addEventListener('abort', resolve))
    }
  })
  const worker = await startOwnWorker(platform, [agent], { url })
  const { task } = await platform.client.createTask({ agent: 'spelled', params: 'stay' })
  await until('a heartbeat was sent', () => asked.has('/internal/heartbeat'))
  expect(await leaseOf(task.id)).toBe('running')
  await worker.stop()
  await startOwnWorker(platform, [agent], { url })
  expectCompleted(await platform.client.waitForEnd(task.id))
  const lossy = await platform.client.createTask({ agent: 'spelled', params: 'lose the log' })
  expectCompleted(await platform.client.waitForEnd(lossy.task.id))
  expect([...asked].sort()).toEqual(
    ['claim', 'finish', 'heartbeat', 'hello', 'messages', 'release', 'reopen', 'step'].map(call => `/internal/${call}`),
  )
})

function expectCompleted({ turns }: TaskDetail): void {
  expect(turns).toMatchObject([{ status: 'completed', attempt: 1 }])
}

async function leaseOf(task: string): Promise<string> {
  return (await platform.client.detail(task)).turns[0]?.status ?? ''
}

/** Passes on what workers ask, with every task and turn spelled by capitals. */
async function capitalising(asked: Set<string>): Promise<string> {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const piece of request.setEncoding('utf8')) text += piece
    asked.add(request.url ?? '')
    const body = text.replaceAll(/"(?:turn|task)":"[\da-f-]{36}"/g, field => field.replace(/[\da-f-]{36}/, id => id.toUpperCase()))
    const headers = { 'content-type': 'application/json' }
    const reply = await fetch(`${platform.url}${request.url}`, { method: 'POST', headers, body })
    response.writeHead(reply.status, headers).end(await reply.text())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  return `http://127.0.0.1:${portOf(server)}`
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}
