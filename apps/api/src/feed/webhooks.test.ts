/** Receivers that hang take no more than their share, by tenant and then by host and port. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TaskId } from '@rivulet/protocol'
import { eq } from 'drizzle-orm'
import { pino } from 'pino'
import { v7 as uuidv7 } from 'uuid'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { openStore } from '../../test/open-store.ts'
import { createVault } from '../store/access/vault.ts'
import type { DatabaseHandle } from '../store/connection/database.ts'
import { createDeliveries } from '../store/feed/deliveries.ts'
import { deliveryTarget } from '../store/feed/delivery-target.ts'
import { deliveries, feed, tasks } from '../store/schema.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { payloadOf, startWebhooks } from './webhooks.ts'

let database: DatabaseHandle
beforeAll(async () => {
  database = await openStore()
})
afterAll(() => database.close())

test('receivers of a tenant that hang, on however many hosts, delay no delivery of another tenant', async () => {
  start()
  const hanging = await Promise.all(Array.from({ length: 25 }, () => listen('hangs')))
  const { url, calls } = await listen('responds')
  await due(
    'noisy',
    [...hanging, ...hanging, ...hanging, ...hanging].map(receiver => receiver.url),
  )
  const underWay = () => hanging.reduce((sum, receiver) => sum + receiver.calls.length, 0)
  await until('the tenant has its share', () => underWay() >= 32)
  await due('quiet', [url, url, url])
  await until('the other tenant got its own', () => calls.length === 3)
  expect(underWay()).toBe(32)
})

test('a host that hangs gets four attempts at a time, however its address is spelled', async () => {
  start()
  const { port, calls } = await listen('hangs')
  const other = await listen('responds')
  const spelled = ['127.0.0.1', '127.1', '0x7f.0.0.1', '2130706433', '127.0.0.1.', '0177.1', '127.000.0.1']
  await due(
    'spelling',
    Array.from({ length: 40 }, (_, i) => `http://${spelled[i % spelled.length]}:${port}/`),
  )
  await due('spelling', [other.url])
  await until('the other host got its own', () => other.calls.length === 1)
  await until('the host that hangs has its share', () => calls.length >= 4)
  expect(calls.length).toBe(4)
})

describe('the target of an address', () => {
  test.each([
    ['https://Hooks.Example.com/a', 'https://hooks.example.com.:443/b'],
    ['http://[::1]/', 'http://[0:0:0:0:0:0:0:1]:80/x?y'],
    ['http://10.0.0.1/', 'http://167772161/'],
    ['http://bücher.example/', 'http://xn--bcher-kva.example/'],
  ])('%s is %s', (a, b) => {
    expect(deliveryTarget(a)).toBe(deliveryTarget(b))
  })

  test.each([
    ['http://a.example/', 'https://a.example/'],
    ['http://a.example/', 'http://a.example:8080/'],
    ['http://a.example/', 'http://b.example/'],
  ])('%s is not %s', (a, b) => {
    expect(deliveryTarget(a)).not.toBe(deliveryTarget(b))
  })
})

/** First in a test, because it ends when the receivers are closed. */
function start(): void {
  const webhooks = startWebhooks({
    vault: createVault({}),
    db: database.db,
    logger: pino({ level: 'silent' }),
    metrics: createMetrics(),
    allowPrivate: true,
  })
  onTestFinished(() => webhooks.stop())
}

/** Turns that ended, of tasks that report to these addresses. */
async function due(tenant: string, urls: readonly string[]): Promise<void> {
  const { db } = database
  const at = new Date()
  const rows = urls.map(url => ({ id: uuidv7() as TaskId, url }))
  await db.insert(tasks).values(
    rows.map(({ id, url }) => ({
      ...{ id, tenant, agent: 'echo', status: 'completed' as const, metadata: {}, epoch: 0, priority: 0, timeoutMs: 1, maxAttempts: 1 },
      ...{ onEnd: { url }, createdAt: at, updatedAt: at },
    })),
  )
  await db.insert(feed).values(rows.map(({ id }) => ({ tenant, type: 'turn.finished' as const, task: id, agent: 'echo', turn: 1 })))
  await until('the deliveries are there', async () => {
    await createDeliveries(db, 500, payloadOf)
    return (await db.$count(deliveries, eq(deliveries.tenant, tenant))) >= urls.length
  })
}

async function listen(how: 'hangs' | 'responds') {
  const calls: string[] = []
  const server = createServer((request, response) => {
    calls.push(request.url ?? '')
    if (how === 'responds') response.writeHead(204).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { port, calls, url: `http://127.0.0.1:${port}/` }
}
