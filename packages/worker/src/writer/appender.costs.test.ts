/** What deltas cost Redis, by its own count of commands. */
import { createKeys, createLogAnnouncer, createLogWriter, encodeEvent } from '@rivulet/broker'
import { expect, test } from 'vitest'
import { startRedisOfTest } from '../../../../test/support/engines/redis/private-redis.ts'
import { newTask } from '../../../../test/support/platform/logs.ts'
import { createAppender } from './appender.ts'

test('ten deltas of each of a hundred turns are one call, and little more than one command for each', async () => {
  const { client: redis } = await startRedisOfTest()
  const keys = createKeys('costs')
  const appender = createAppender({ log: createLogWriter({ redis, keys, maxBytes: 1_000_000 }) })
  const announcer = createLogAnnouncer({ redis, keys, retentionMs: 60_000 })
  const tasks = Array.from({ length: 100 }, newTask)
  for (const task of tasks) await announcer.announce({ task, epoch: 1, running: true, entries: [] })
  const say = (first: number) =>
    Promise.all(tasks.map(task => appender.append({ task, epoch: 1, first, entries: Array.from({ length: 10 }, () => deltaOf(task)) })))
  // The first call loads the script.
  await say(1)
  await redis.config('RESETSTAT')
  expect(new Set(await say(11))).toEqual(new Set(['ok']))
  const counts = await commandCounts()
  expect(counts).toEqual({ evalsha: 1, hget: 100, xadd: 1_000, hset: 100, publish: 100 })

  async function commandCounts(): Promise<Record<string, number>> {
    const info = await redis.info('commandstats')
    const lines = [...info.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm)].map(([, name = '', calls]) => [name, Number(calls)] as const)
    // The embedded Redis saves its data by itself every now and then.
    return Object.fromEntries(lines.filter(([name]) => !['info', 'config', 'ping', 'save'].includes(name)))
  }
})

function deltaOf(task: string) {
  return encodeEvent({
    type: 'message.delta',
    task,
    turn: 1,
    attempt: 1,
    at: 1,
    index: 0,
    delta: { type: 'text', text: 'word' },
    offset: 0,
  })
}
