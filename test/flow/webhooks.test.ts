/** Webhooks over real sockets: signed, at least once with one id, after the rows, and never to an address that the tenant must not reach. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClient, type RivuletClient, type Webhook } from '@rivulet/client'
import { verifyWebhook } from '@rivulet/client/webhooks'
import { Webhook as Receiver } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { storedTexts } from '../support/platform/stored-texts.ts'
import { until } from '../support/until.ts'

let platform: Platform
let client: RivuletClient

const env = { SECRETS_KEY: 'a key for the secrets of this test' }

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, env: { ...env, WEBHOOK_ALLOW_PRIVATE: 'on', MAX_WEBHOOKS_PER_TENANT: '5' } })
  client = createClient({ url: platform.url })
})
afterEach(async () => {
  for (const { id } of (await client.webhooks.list()).data) await client.webhooks.remove(id)
})
afterAll(() => platform.close())

type Received = {
  headers: Record<string, string>
  body: string
  event: { type: string; data: { task: string; turn?: number; status?: string } }
}

/** An address that records what it gets. */
async function listen(respond: (response: ServerResponse, received: Received, request: IncomingMessage) => void = ok) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const one = { headers: request.headers as Record<string, string>, body, event: JSON.parse(body) }
      received.push(one)
      respond(response, one, request)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` }
}

function ok(response: ServerResponse): void {
  response.writeHead(204).end()
}

/** Makes the next attempt of every waiting delivery due now. */
function hurry(): Promise<unknown> {
  return makeDue(`next_at > now() + interval '3 seconds'`)
}

async function makeDue(which = 'true'): Promise<void> {
  await platform.pg.query(`select set_config('rivulet.tenant', '*', false)`)
  await platform.pg.query(`update deliveries set next_at = now() where status = 'pending' and ${which}`)
}

async function echo(input = 'hello') {
  const task = await client.tasks.create({ agent: 'echo', input })
  await task.result()
  return task.id
}

test('a finished turn is delivered once its rows can be read, signed so that the reference library accepts it', async () => {
  const read: number[] = []
  const { received, url } = await listen(async (response, { event }) => {
    read.push((await client.tasks.get(event.data.task).messages()).data.length)
    ok(response)
  })
  const { secret } = await client.webhooks.create({ url, events: ['turn.finished'] })
  const task = await echo()
  await until('it was delivered', () => received.length > 0)
  const [{ headers, body, event } = { headers: {}, body: '', event: null }] = received
  expect(new Receiver(secret).verify(body, headers)).toEqual(event)
  expect(() => new Receiver(secret).verify(`${body} `, headers)).toThrow()
  expect(await verifyWebhook(secret, headers, body)).toEqual(event)
  expect(event).toMatchObject({
    type: 'turn.finished',
    timestamp: expect.any(String),
    data: { task, turn: 1, status: 'completed', agent: 'echo' },
  })
  expect(event).not.toHaveProperty('data.tenant')
  await until('its receiver has read the rows', () => read.length > 0)
  expect(new Set(read)).toEqual(new Set([2]))
})

test('the secret of a webhook is encrypted in Postgres, and one that was stored before is still read', async () => {
  const { received, url } = await listen(ok)
  const { webhook, secret: first } = await client.webhooks.create({ url, events: ['turn.finished'] })
  const { secret: second } = await client.webhooks.change(webhook.id, { secret: true })
  const { rows } = await platform.pg.query('select * from webhooks where id = $1', [webhook.id])
  expect(rows).toMatchObject([{ secret: expect.stringMatching(/^sealed:/), old_secret: expect.stringMatching(/^sealed:/) }])
  for (const secret of [first, second]) expect(JSON.stringify(rows)).not.toContain(String(secret).slice(6))
  await platform.pg.query('update webhooks set old_secret = $2 where id = $1', [webhook.id, first])
  await echo()
  await until('it was delivered', () => received.length > 0)
  const [{ headers, body } = { headers: {}, body: '' }] = received
  for (const secret of [first, second]) expect(() => new Receiver(String(secret)).verify(body, headers)).not.toThrow()
})

test('secrets that were stored without a SECRETS_KEY are encrypted when an API starts with one', async () => {
  const open = await startPlatform({ env: { WEBHOOK_ALLOW_PRIVATE: 'on' } })
  onTestFinished(() => open.close())
  const { received, url } = await listen(ok)
  const caller = createClient({ url: open.url })
  const secret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
  const onEnd = { url, secret }
  const { secret: ofWebhook } = await caller.webhooks.create({ url, events: ['turn.finished'] })
  await caller.schedules.create({ agent: 'echo', cron: '0 0 1 1 *', input: 'hello', onEnd })
  const task = await caller.tasks.create({ agent: 'echo', input: 'hello', delayMs: 3_600_000, onEnd })
  const places = async () => {
    const texts = [...(await storedTexts(open))]
    return texts.flatMap(([name, text]) => (text.includes(secret) || text.includes(ofWebhook) ? name : []))
  }
  expect(await places()).toEqual(expect.arrayContaining(['table webhooks', 'table schedules', 'table tasks']))
  await open.apis[0]?.kill('SIGTERM')
  await open.startApi({ env, port: new URL(open.url).port })
  await expect.poll(places, { interval: 250 }).toEqual([])
  await task.cancel()
  await until('both are delivered', () => received.length >= 2)
  const isSignedWith = (one: string) =>
    received.some(({ headers, body }) => {
      try {
        return Boolean(new Receiver(one).verify(body, headers))
      } catch {
        return false
      }
    })
  expect([secret, ofWebhook].map(isSignedWith)).toEqual([true, true])
})

test('a webhook whose secret no SECRETS_KEY decrypts gets no delivery without a signature', async () => {
  const { received, url } = await listen(ok)
  const { webhook } = await client.webhooks.create({ url, events: ['turn.finished'] })
  await platform.pg.query("update webhooks set secret = 'sealed:another:key' where id = $1", [webhook.id])
  await echo()
  await until('the attempt has failed', async () =>
    (await deliveriesOf(webhook)).some(({ lastError }) => lastError?.includes('SECRETS_KEY')),
  )
  expect(received).toEqual([])
})

test('a failed attempt is retried under the same id, and the deliveries tell of it', async () => {
  let failures = 2
  const { received, url } = await listen(response => {
    failures -= 1
    if (failures >= 0) response.writeHead(500).end('x'.repeat(10_000_000))
    else ok(response)
  })
  const { webhook } = await client.webhooks.create({ url, events: ['turn.finished'] })
  await echo()
  await until('it was delivered', async () => {
    await hurry()
    return (await deliveriesOf(webhook)).some(({ status }) => status === 'delivered')
  })
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  const [delivery] = await deliveriesOf(webhook)
  // On a slow machine an attempt may be taken for lost, and made again.
  const attempts = delivery?.attempts ?? 0
  expect(attempts).toBeGreaterThanOrEqual(3)
  expect(delivery).toMatchObject({ id: received[0]?.headers['webhook-id'], lastStatus: 204 })
  await client.webhooks.retry(webhook.id, delivery?.id ?? '')
  await until('it was delivered again', () => received.length > attempts)
})

test('an address that returns 410 is turned off, and gets nothing more until it is turned on', async () => {
  const { received, url } = await listen(response => response.writeHead(410).end())
  const { webhook } = await client.webhooks.create({ url, events: ['task.created'] })
  await echo()
  await until('it is off', async () => (await client.webhooks.get(webhook.id)).status === 'disabled')
  const { length } = received
  await echo()
  expect((await deliveriesOf(webhook)).map(({ status, lastStatus }) => [status, lastStatus])).toEqual([['failed', 410]])
  expect(received).toHaveLength(length)
  await client.webhooks.change(webhook.id, { status: 'active' })
  await echo()
  await until('it is called again', () => received.length > length)
})

test('what waits for a webhook that is turned off is sent when it is turned on', async () => {
  let status = 500
  const { received, url } = await listen(response => response.writeHead(status).end())
  const witness = await listen()
  const { webhook } = await client.webhooks.create({ url, events: ['task.created'] })
  await echo()
  await until('the first attempt failed', async () => (await deliveriesOf(webhook))[0]?.lastStatus === 500)
  await client.webhooks.change(webhook.id, { status: 'disabled' })
  await client.webhooks.create({ url: witness.url, events: ['task.created'] })
  // An attempt that was claimed before may still be under way in the first round.
  const counts: number[] = []
  for (let round = 1; round <= 2; round += 1) {
    await makeDue()
    const task = await echo()
    await until('another webhook got its own, which was due later', () => witness.received.some(({ event }) => event.data.task === task))
    counts.push(received.length)
  }
  expect(counts[1]).toBe(counts[0])
  status = 204
  await client.webhooks.change(webhook.id, { status: 'active' })
  await until('it was delivered', async () => (await deliveriesOf(webhook))[0]?.status === 'delivered')
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
})

test('while a secret is rotated, both secrets verify', async () => {
  const { received, url } = await listen()
  const { webhook, secret: first } = await client.webhooks.create({ url, events: ['task.created'] })
  const { secret: second = '', webhook: rotated } = await client.webhooks.change(webhook.id, { secret: true })
  expect(rotated.oldSecretUntil).toBeDefined()
  await echo()
  await until('it was delivered', () => received.length > 0)
  for (const secret of [first, second]) new Receiver(secret).verify(received[0]?.body ?? '', received[0]?.headers ?? {})
})

test('a redirect is not followed', async () => {
  const inside = await listen()
  const { received, url } = await listen(response => response.writeHead(307, { location: inside.url }).end())
  const { webhook } = await client.webhooks.create({ url, events: ['task.created'] })
  await echo()
  await until('the attempt failed', async () => (await deliveriesOf(webhook))[0]?.lastStatus === 307)
  expect(received.length).toBeGreaterThan(0)
  expect(inside.received).toEqual([])
})

test('a filter by agent and type chooses', async () => {
  const { received, url } = await listen()
  await client.webhooks.create({ url, events: ['turn.finished', 'turn.queued'], agent: 'scripted' })
  await echo()
  const task = await client.tasks.create({ agent: 'scripted', params: { steps: [] } })
  const kinds = () => new Set(received.map(({ event }) => `${event.type} ${event.data.task}`))
  await until('both were delivered', () => kinds().size === 2)
  expect(kinds()).toEqual(new Set([`turn.finished ${task.id}`, `turn.queued ${task.id}`]))
})

test('an address that hangs holds up no other', async () => {
  const { url: hanging } = await listen(() => {})
  const { received, url } = await listen()
  for (const address of [hanging, url]) await client.webhooks.create({ url: address, events: ['task.created'] })
  const made: string[] = []
  for (let i = 0; i < 40; i += 1) made.push((await client.tasks.create({ agent: 'echo', input: 'x' })).id)
  await until('all are there', () => new Set(received.map(({ event }) => event.data.task)).size === made.length)
})

test('an attempt that hangs holds up no other of its webhook', async () => {
  let calls = 0
  const { received, url } = await listen(response => {
    calls += 1
    if (calls > 1) ok(response)
  })
  const { webhook } = await client.webhooks.create({ url, events: ['task.created'] })
  const made = await Promise.all(Array.from({ length: 20 }, () => client.tasks.create({ agent: 'echo', input: 'x' })))
  await until('all but one are delivered', async () => {
    const rows = await deliveriesOf(webhook)
    return rows.length === made.length && rows.filter(({ status }) => status === 'delivered').length >= made.length - 1
  })
  expect(received.length).toBeGreaterThanOrEqual(made.length)
})

test.each([
  ['a webhook', (url: string) => client.webhooks.create({ url, events: ['task.created'] }).then(() => ({}))],
  ['the end of tasks', async (url: string) => ({ onEnd: { url } })],
])('%s at an address that hangs has four attempts at a time in each process, however many are due', async (_, prepare) => {
  let [open, most] = [0, 0]
  const { received, url } = await listen(response => {
    open += 1
    most = Math.max(most, open)
    response.once('close', () => (open -= 1))
  })
  const wanted = await prepare(url)
  const tasks = await Promise.all(Array.from({ length: 40 }, () => client.tasks.create({ agent: 'echo', input: 'x', ...wanted })))
  for (const task of tasks) await task.result()
  await until('as many as may are under way', () => received.length >= 8)
  const other = await listen()
  await client.webhooks.create({ url: other.url, events: ['task.created'] })
  await echo()
  await until('another address got its own', () => other.received.length > 0)
  expect(most).toBe(8)
})

test('onEnd of a task reports the end of each of its turns', async () => {
  const { received, url } = await listen()
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const task = await client.tasks.create({ agent: 'echo', input: 'one', onEnd: { url, secret } })
  await task.result()
  await task.send('two')
  await until('both were reported', () => new Set(received.map(({ event }) => event.data.turn)).size === 2)
  // Two deliveries may overtake each other.
  expect(new Set(received.map(({ event }) => `${event.type} ${event.data.turn} ${event.data.status}`))).toEqual(
    new Set(['turn.finished 1 completed', 'turn.finished 2 completed']),
  )
  for (const { body, headers } of received) new Receiver(secret).verify(body, headers)
})

test('the secret of onEnd of a task and of a schedule is in no table in the clear, and one that an earlier version stored still signs', async () => {
  const { received, url } = await listen()
  const secret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
  const onEnd = { url, secret }
  const ends = () => new Set(received.map(({ event }) => `${event.data.task} ${event.data.turn}`)).size
  const tablesWith = async (text: string) => [...(await storedTexts(platform))].flatMap(([name, all]) => (all.includes(text) ? [name] : []))
  const task = await client.tasks.create({ agent: 'echo', input: 'one', onEnd })
  const { id } = await client.schedules.create({ agent: 'echo', cron: '0 0 1 1 *', input: 'two', onEnd })
  onTestFinished(async () => void (await client.schedules.remove(id)))
  await client.schedules.trigger(id)
  await until('both ends were reported', () => ends() === 2)
  expect(await tablesWith(secret.slice('whsec_'.length))).toEqual([])
  await until('only the task and the schedule keep the address', async () => {
    return (await tablesWith(new URL(url).host)).sort().join() === 'table schedules,table tasks'
  })
  await platform.pg.query('update tasks set on_end = $2 where id = $1', [task.id, JSON.stringify(onEnd)])
  await task.send('three')
  await until('the third end was reported', () => ends() === 3)
  for (const { body, headers } of received) expect(() => new Receiver(secret).verify(body, headers)).not.toThrow()
})

test('a killed API leaves its deliveries to the other one', async () => {
  const victim = await platform.startApi()
  const { received, url } = await listen()
  const { webhook } = await client.webhooks.create({ url, events: ['turn.finished'] })
  const made = await Promise.all(Array.from({ length: 20 }, () => client.tasks.create({ agent: 'echo', input: 'x' })))
  await until('some were delivered', () => received.length > 0)
  await victim.kill()
  await until('all were delivered', async () => {
    await hurry()
    return new Set(received.map(({ event }) => event.data.task)).size === made.length
  })
  const rows = await deliveriesOf(webhook)
  expect(rows).toHaveLength(made.length)
})

describe('an invalid request is refused', () => {
  test.each([
    ['no events', { url: 'https://example.com', events: [] }],
    ['an unknown event', { url: 'https://example.com', events: ['task.exploded'] }],
    ['another scheme', { url: 'file:///etc/passwd', events: ['task.created'] }],
    ['a password in it', { url: 'https://a:b@example.com', events: ['task.created'] }],
    ['no URL', { url: 'example', events: ['task.created'] }],
    ['a short secret', { url: 'https://example.com', events: ['task.created'], secret: 'whsec_AAAA' }],
    ['a secret without its prefix', { url: 'https://example.com', events: ['task.created'], secret: 'A'.repeat(44) }],
    ['an unknown field', { url: 'https://example.com', events: ['task.created'], surprise: 1 }],
  ])('%s', async (_, body) => {
    await expect(client.webhooks.create(body as never)).rejects.toMatchObject({ code: 'validation_failed' })
  })

  test('an unknown webhook or delivery', async () => {
    const id = '01900000-0000-7000-8000-000000000000'
    await expect(client.webhooks.get(id)).rejects.toMatchObject({ code: 'not_found' })
    const { webhook } = await client.webhooks.create({ url: 'https://example.com', events: ['task.created'] })
    await expect(client.webhooks.retry(webhook.id, id)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('one more than a tenant may have', async () => {
    for (let i = 0; i < 5; i += 1) await client.webhooks.create({ url: 'https://example.com', events: ['task.created'] })
    await expect(client.webhooks.create({ url: 'https://example.com', events: ['task.created'] })).rejects.toMatchObject({
      code: 'quota_exceeded',
    })
  })
})

function deliveriesOf({ id }: Webhook) {
  return client.webhooks.deliveries(id).then(({ data }) => data)
}
