/** On a cluster (`npm run test:cluster`): what a log pushes does not cross the bus of the cluster. */
import { parseRedisUrl } from '@rivulet/runtime/redis-url'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'

const { kind, addresses } = parseRedisUrl(inject('redisUrl'))
const messages = 200

describe.skipIf(kind !== 'cluster')('with a cluster (one server has no bus)', () => {
  let servers: Redis[]
  let platform: Platform

  beforeAll(async () => {
    servers = addresses.map(address => new Redis(address))
    platform = await startPlatform()
  })
  afterAll(async () => {
    await platform.close()
    for (const server of servers) server.disconnect()
  })

  test('a viewer receives every push from the server that has the log', async () => {
    const before = await published()
    const steps = Array.from({ length: messages }, (_, index) => ({
      full: { index, content: { type: 'text', text: `message ${index}`, format: 'plain' } },
    }))
    const { task } = await platform.client.createTask({ agent: 'scripted', params: { steps } })
    const stream = await (await fetch(`${platform.url}/v1/tasks/${task.id}/events`)).text()
    expect(stream.match(/^event: message\.replaced$/gm)).toHaveLength(messages)
    const after = await published()
    expect(after.sharded - before.sharded).toBeGreaterThan(0)
    // The processes publish their counts on a channel for all, now and then.
    expect(after.onTheBus - before.onTheBus).toBeLessThan(messages / 4)
  })

  async function published(): Promise<{ sharded: number; onTheBus: number }> {
    const stats = await Promise.all(servers.map(server => server.info('commandstats')))
    const calls = (command: string) =>
      stats.reduce((sum, text) => sum + Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(text)?.[1] ?? 0), 0)
    return { sharded: calls('spublish'), onTheBus: calls('publish') }
  }
})
