/**
 * What has to happen so that a story passes a failpoint that is not on its way: a cancel, a wiped Redis, another viewer, an upload, a webhook, a schedule.
 * Of two APIs, either may do a step of the last two, so each is repeated until both have most likely done it.
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Failpoint } from '@rivulet/runtime/failpoint'
import { createClient } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import type { Bench } from './bench.ts'
import type { Disturbance } from './crash-point.ts'

export const notOnTheWay: Partial<Record<Failpoint, Disturbance>> = {
  ...{ seized: cancel, fenced: cancel, reopened: wipe, 'feed opened': join, 'file begun': upload, 'file written': upload },
  ...{ 'delivery claimed': deliver, delivered: deliver, 'schedule ran': schedule },
}

const repeats = 8
const patience = { timeoutMs: 120_000 }

/** At the API that has the trap; again, wherever it is answered. */
export async function cancel({ crowd }: Bench, task: string, url: string): Promise<void> {
  await createClient(() => url)
    .post(`/v1/tasks/${task}/cancel`, {})
    .catch(() => null)
  await crowd.cancel(task)
}

/** One viewer more at each API. */
async function join({ crowd }: Bench, task: string): Promise<void> {
  for (let i = 0; i < 2; i += 1) crowd.join(task)
}

async function wipe({ noteLoss, server }: Bench): Promise<void> {
  noteLoss()
  await server.client.flushall()
}

/** At the API that has the trap, again until it responds. What was stored can be read. */
async function upload(_: Bench, __: string, url: string): Promise<void> {
  const headers = { 'content-type': 'text/plain' }
  const stored = await until('a file is stored', async () => {
    const response = await fetch(`${url}/v1/files`, { method: 'POST', headers, body: 'some text' }).catch(() => null)
    return response?.status === 201 && ((await response.json()) as { file: { id: string } }).file
  })
  await until('the file is read', async () => {
    const response = await fetch(`${url}/v1/files/${stored.id}`).catch(() => null)
    return (await response?.text()) === 'some text'
  })
}

/** Entries of the feed, each of which is delivered at least once, under an id of its own. */
async function deliver(bench: Bench): Promise<void> {
  const client = createClient(() => bench.urls[0] ?? '')
  const ids = new Map<string, Set<string>>()
  const { url, close } = await receiveDeliveries(async ({ id, data: { task } }) => void ids.set(task, (ids.get(task) ?? new Set()).add(id)))
  const { body } = await client.post<{ webhook: { id: string } }>('/v1/webhooks', { url, events: ['task.created'] })
  for (let count = 1; count <= repeats; count += 1) {
    const { task } = await client.createTask({ agent: 'scripted', start: false })
    await until('it is delivered', () => hurryDeliveries(bench).then(() => ids.has(task.id)), patience)
  }
  await client.send('DELETE', `/v1/webhooks/${body.webhook.id}`)
  close()
  if ([...ids.values()].some(({ size }) => size !== 1)) throw new Error('An entry was delivered under two ids')
}

/** A schedule whose time comes again and again. Each time runs once. */
async function schedule({ platform, urls: [url = ''] }: Bench): Promise<void> {
  const client = createClient(() => url)
  const yearly = { agent: 'echo', cron: '0 0 1 1 *', input: 'go', overlap: 'queue' }
  const { body } = await client.post<{ schedule: { id: string } }>('/v1/schedules', yearly)
  const { id } = body.schedule
  for (let count = 1; count <= repeats; count += 1) {
    await platform.pg.query(`update schedules set next_at = date_trunc('milliseconds', now()) where id = $1`, [id])
    await until('it has run', async () => (await runs()).length === count, patience)
  }
  if (new Set((await runs()).map(({ task }) => task)).size !== repeats) throw new Error('A time has run twice')
  await client.send('DELETE', `/v1/schedules/${id}`)

  async function runs(): Promise<{ task: string }[]> {
    return (await platform.pg.query('select task from schedule_runs where schedule = $1', [id])).rows
  }
}

export type Delivery = { id: string; data: { task: string; turn: number; status: string } }

/** An address that hears of each delivery before it accepts it. */
export async function receiveDeliveries(hear: (delivery: Delivery) => Promise<void>): Promise<{ url: string; close(): void }> {
  const server = createServer(async (request, response) => {
    const { data } = JSON.parse(await textOf(request))
    await hear({ id: String(request.headers['webhook-id']), data })
    response.writeHead(204).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, close }

  function close(): void {
    server.closeAllConnections()
    server.close()
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** The deliveries of a process that has died are due a minute after their claim: this spares the test that minute. */
export async function hurryDeliveries({ platform }: { platform: Pick<Bench['platform'], 'pg'> }): Promise<void> {
  await platform.pg.query(
    `update deliveries set next_at = now() where status = 'pending' and next_at between now() + interval '1 second' and now() + interval '55 seconds'`,
  )
}
