/** The client SDK against the real thing: whatever the network does, it ends with what is stored, and has heard what was logged. */
import { createClient, type Json, type TaskEvent, type TaskHandle, textOf } from '@rivulet/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { repeat, rest, say } from '../support/agents/scripts.ts'
import { type ApiProcess, type Platform, startPlatform } from '../support/platform/platform.ts'
import { ownHeldMemory } from '../support/process/own-memory.ts'
import { until } from '../support/until.ts'
import { runClients } from '../support/viewers/client-runs.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

test('over a network that breaks, splits, delays and repeats, every view is what is stored and every event comes once', async () => {
  const seeds = Array.from({ length: 5 }, (_, place) => 1_000 + place)
  const runs = await runClients(platform, { seeds, lanes: 6 })
  expect(runs.faults.slice(0, 3)).toEqual([])
  expect(runs.seeds).toHaveLength(seeds.length)
  // The network did its worst: each run has three readers.
  expect(runs.connections).toBeGreaterThan(1.5 * 3 * seeds.length)
  expect(runs.repeatedPosts).toBeGreaterThan(0)
})

test('a reader that is slower than the agent buffers next to nothing, and has all of it in the end', async () => {
  const words = 'w'.repeat(64 * 1024)
  const client = createClient({ url: platform.url })
  const task = await client.tasks.create({ agent: 'scripted', params: json({ steps: [repeat(120, say(0, words))] }) })
  const events = task.events()
  let length = 0
  await events.next()
  const before = ownHeldMemory()
  await platform.client.waitForEnd(task.id)
  const grown = ownHeldMemory() - before
  expect(grown / 1024 / 1024).toBeLessThan(3)
  for await (const event of events) length = await lengthAfter(task, length, event)
  expect(length).toBe(120 * words.length)
  expect((await task.result()).text.length).toBe(length)
})

describe('an API that asks for a key', () => {
  let api: ApiProcess
  beforeAll(async () => {
    api = await platform.startApi({ env: { RIVULET_KEY: 'right' } })
  })

  test('gets it, also with the stream', async () => {
    const tokens = ['wrong', 'right']
    const client = createClient({ url: api.url, token: () => tokens.shift() ?? 'right' })
    const task = await client.tasks.create({
      agent: 'scripted',
      params: { steps: [{ delta: { index: 0, delta: { type: 'text', text: 'in' } } }] },
    })
    expect(await task.result()).toMatchObject({ status: 'completed', text: 'in' })
    await expect(createClient({ url: api.url, key: 'wrong' }).tasks.get(task.id).result()).rejects.toMatchObject({ code: 'unauthorized' })
  })

  test('never needs a key beside a token: its stream renews the token for reading, and the page gets a new token to send and stop when one has ended', async () => {
    const owner = createClient({ url: api.url, key: 'right' }).tasks
    const task = await owner.create({ agent: 'scripted', params: json({ steps: [say(0, 'one')] }) })
    const bearers = new Set<string>()
    const given: string[] = []
    const fetch = cutAfter('event: token', bearers)
    const viewer = createClient({ url: api.url, fetch }).tasks.get(task.id, {
      token: async id => {
        given.push((await owner.get(id).createToken({ can: ['read', 'send', 'params', 'cancel'], ttlSeconds: 10 })).token)
        return given.at(-1) ?? ''
      },
    })
    const view = viewer.view({ follow: true })
    const leave = view.subscribe(() => {})
    await until(
      'the stream has handed out a token, was cut off, and has come back with it',
      () => bearers.size === 2 && view.current.connection === 'live',
    )
    expect(given).toHaveLength(1)
    const [first = ''] = given
    await until('the first token has ended', async () => (await detailWith(first)) === 401)
    // The stream's token may only read: what is sent needs a new one of the source, which is asked for by itself.
    await viewer.send(undefined, { params: json({ steps: [say(0, 'two'), rest(60_000)] }) })
    await until('it is heard', () => textOf(view.current.messages) === 'one\n\ntwo')
    expect((await viewer.cancel()).status).toBe('canceled')
    leave()
    expect([...bearers].every(bearer => bearer.startsWith('Bearer rvt_'))).toBe(true)

    expect(given.length).toBeGreaterThan(1)
    const kept = [first]
    const late = createClient({ url: api.url }).tasks.get(task.id, {
      token: async id => kept.shift() ?? (await owner.get(id).createToken({ can: 'read' })).token,
    })
    expect((await late.detail()).task.status).toBe('canceled')
    await expect(late.send('more')).rejects.toMatchObject({ code: 'forbidden' })

    async function detailWith(token: string): Promise<number> {
      return (await globalThis.fetch(`${api.url}/v1/tasks/${task.id}`, { headers: { authorization: `Bearer ${token}` } })).status
    }
  })
})

/** A network that breaks a stream once, after it has said this, and the bearers that it has seen. */
function cutAfter(text: string, bearers: Set<string>): typeof fetch {
  let isCut = false
  return async (input, init) => {
    bearers.add(new Headers(init?.headers as Record<string, string>).get('authorization') ?? '')
    const response = await fetch(input, init)
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
    if (!isStream || !response.body) return response
    const decoder = new TextDecoder()
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        controller.enqueue(bytes)
        if (isCut || !decoder.decode(bytes, { stream: true }).includes(text)) return
        isCut = true
        controller.error(new Error('cut'))
      },
    })
    return new Response(response.body.pipeThrough(cut), { headers: response.headers })
  }
}

/** The length of the text after an event. A snapshot leaves out old and long messages; the test reads those from the rows. */
async function lengthAfter(task: TaskHandle, length: number, event: TaskEvent): Promise<number> {
  if (event.type === 'message.delta') return length + (event.delta.type === 'text' ? event.delta.text.length : 0)
  if (event.type !== 'snapshot') return length
  const older = event.messagesFrom > 0 ? (await task.messages()).data.filter(({ index }) => index < event.messagesFrom) : []
  return textOf([...older, ...event.messages]).length
}

/** Scripts are JSON. */
function json(params: object): Json {
  return params as Json
}
