/**
 * Redis loses a log while one of two APIs is frozen. A viewer of the frozen API goes to the other one, and comes back to the first with the cursor that it
 * got there: no cursor stands for two contents, and no viewer is shown a text that is not the stored one.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repeat, rest, say, scripted } from '../support/agents/scripts.ts'
import { type PrivateRedis, startPrivateRedis } from '../support/engines/redis/private-redis.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { twoContentsIn } from '../support/judge/one-content.ts'
import { type Platform, readLog, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { watch } from '../support/viewers/viewer.ts'

// The agent is silent for a while, because a log that was lost is opened anew with its next words.
const before = `begin${'.'.repeat(30)}`
const talk = scripted([say(0, 'begin'), repeat(30, say(0, '.'), rest(50)), rest(6_000), say(0, 'end')], { input: 'go' })

let redis: PrivateRedis
let platform: Platform

beforeAll(async () => {
  redis = await startPrivateRedis()
  platform = await startPlatform({ apis: 2, workers: 1, env: { REDIS_URL: redis.url } })
})
afterAll(async () => {
  await platform.close()
  await redis.close()
})

test('a viewer that goes from a frozen API to another, and back, sees what is stored', async () => {
  // The first API serves the worker, so the second one is frozen.
  const [serving, frozen] = platform.apis
  if (!serving || !frozen) throw new Error('There are two APIs')
  const { task } = await platform.client.createTask(talk)
  const wandering = watch(task.id, { urls: [frozen.url, serving.url] })
  await wandering.until('a few words', ({ text }) => text().length > 12)
  frozen.freeze()
  // The frozen API will read these entries when it wakes, although they are lost then.
  await until('the agent is silent', async () => (await logged(task.id)).endsWith(before))
  await redis.client.flushall()
  wandering.cut()
  await wandering.until('a snapshot of the other API', ({ journal }) => (journal.connections[1]?.frames.length ?? 0) > 0)
  frozen.wake()
  wandering.cut()
  const journals = [await wandering.ended]
  const late = watch(task.id, { urls: [frozen.url] })
  journals.push(await late.ended)
  expect(twoContentsIn(journals)).toEqual([])
  expect(await faultsOfViewers({ ...platform, redis: redis.client }, [wandering, late], { log: false, isDisturbed: true })).toEqual([])
  expect((await platform.client.messages(task.id)).at(-1)?.content).toMatchObject({ text: `${before}end` })
})

/** The text in the log. */
async function logged(task: string): Promise<string> {
  const entries = await readLog(redis.client, platform.keys, task)
  return entries.map(({ event }) => (event.type === 'message.delta' && event.delta.type === 'text' ? event.delta.text : '')).join('')
}
