/** The client SDK against the real thing: whatever the network does, it ends with what is stored, and has heard what was logged. */
import { createClient, type Json, type TaskEvent, type TaskHandle, textOf } from '@rivulet/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runClients } from '../support/client-runs.ts'
import { ownHeldMemory } from '../support/own-memory.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { repeat, say } from '../support/scripts.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

test('over a network that breaks, splits, delays and repeats, every view is what is stored and every event comes once', async () => {
  const seeds = Array.from({ length: 14 }, (_, place) => 1_000 + place)
  const runs = await runClients(platform, { seeds, lanes: 6 })
  expect(runs.faults.slice(0, 3)).toEqual([])
  expect(runs.seeds).toHaveLength(seeds.length)
  // The network did its worst: each run has three readers.
  expect(runs.connections).toBeGreaterThan(1.5 * 3 * seeds.length)
  expect(runs.repeatedPosts).toBeGreaterThan(2)
  expect(runs.replays).toBeGreaterThan(3)
})

test('a reader who is slower than the agent holds next to nothing, and has all of it in the end', async () => {
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

test('an API that asks for a key gets it, also with the stream', async () => {
  const api = await platform.startApi({ env: { RIVULET_KEY: 'right' } })
  const tokens = ['wrong', 'right']
  const client = createClient({ url: api.url, token: () => tokens.shift() ?? 'right' })
  const task = await client.tasks.create({
    agent: 'scripted',
    params: { steps: [{ delta: { index: 0, delta: { type: 'text', text: 'in' } } }] },
  })
  expect(await task.result()).toMatchObject({ status: 'completed', text: 'in' })
  await expect(createClient({ url: api.url, key: 'wrong' }).tasks.get(task.id).result()).rejects.toMatchObject({ code: 'unauthorized' })
})

/** The length of the text after an event. A snapshot leaves out what is old and long; that is had from the rows. */
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
