/**
 * Requests that meet at two APIs: a double click on a rewind, a cancel of a tree that is half started, a delete right after an end, a schedule under one
 * key, hundreds of inputs to one task.
 */
import type { Schedule, ScheduleRun } from '@rivulet/contract/schedules'
import type { WaitStatus } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { fold } from '../../support/judge/task-laws.ts'
import { startOwnWorker } from '../../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../../support/platform/platform.ts'
import type { Client, ErrorReply } from '../../support/platform/platform-client.ts'
import { until } from '../../support/until.ts'
import { startProxy } from '../../support/viewers/proxy.ts'
import { receiveDeliveries } from '../disturbances.ts'

const rounds = 20
let platform: Platform
let clients: readonly [Client, Client]

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, env: { WEBHOOK_ALLOW_PRIVATE: 'on' } })
  await platform.client.post('/internal/hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] })
  const [first, second] = platform.apis.map(platform.clientOf)
  if (!first || !second) throw new Error('There are two APIs')
  clients = [first, second]
})
afterAll(() => platform.close())

test('two rewinds at once: the log shows every turn as the rows have it', { timeout: 300_000 }, async () => {
  for (let round = 0; round < rounds; round += 1) {
    const { task } = await platform.client.createTask({ agent: 'echo', input: 'one' })
    await platform.client.waitForEnd(task.id)
    const body = { input: 'again', after: 0, ifBusy: 'interrupt' }
    const replies = await Promise.all(clients.map(client => client.post(`/v1/tasks/${task.id}/turns`, body)))
    expect(replies.map(({ status }) => status)).toEqual([202, 202])
    const { turns } = await platform.client.waitForEnd(task.id)
    const stored = turns.map(({ number, status }) => `${number} ${status}`)
    expect(stored).toEqual(['1 discarded', '2 discarded', '3 completed'])
    await until(`the log of ${task.id} shows ${stored.join(', ')}`, async () => {
      const seen = fold(await platform.log(task.id)).turns.map(({ number, status }) => `${number} ${status}`)
      return seen.join() === stored.join()
    })
  }
})

/** A part of the statement that finds the turns to announce. */
const unannounced = '"turns"."announced" = '

test('a rewind that is announced late, behind a second one whose cancel of it could not be announced: the log shows what the rows have', async () => {
  const [redis, postgres] = [await startProxy(inject('redisUrl')), await startProxy(platform.databaseUrl)]
  onTestFinished(async () => void (await Promise.all([redis.close(), postgres.close()])))
  // Nothing but the two requests asks for what is not announced.
  const late = await platform.startApi({ env: { REDIS_URL: redis.url, RECONCILE_MS: '600000' } })
  const cut = await platform.startApi({ env: { DATABASE_URL: postgres.url, RECONCILE_MS: '600000' } })
  onTestFinished(async () => void (await Promise.all([late.kill(), cut.kill()])))
  const { task } = await platform.client.createTask({ agent: 'idle', input: 'one' })
  await platform.client.cancel(task.id)
  const rewind = (client: Client) => client.post(`/v1/tasks/${task.id}/turns`, { input: 'again', after: 0, ifBusy: 'interrupt' })
  const isHeld = redis.hold('turn.queued')
  const first = rewind(platform.clientOf(late))
  await isHeld
  const isCut = postgres.dropReply(unannounced)
  const second = rewind(platform.clientOf(cut))
  await isCut
  // An API sends a read again once.
  await postgres.dropReply(unannounced)
  expect((await second).status).toBe(202)
  redis.up()
  expect((await first).status).toBe(202)
  const statuses = ['1 discarded', '2 discarded', '3 queued']
  expect((await platform.client.detail(task.id)).turns.map(({ number, status }) => `${number} ${status}`)).toEqual(statuses)
  await until('the log has the end of the second turn', async () =>
    (await platform.log(task.id)).some(({ event }) => event.type === 'turn.finished' && event.turn === 2),
  )
  expect(fold(await platform.log(task.id)).turns.map(({ number, status }) => `${number} ${status}`)).toEqual(statuses)
})

test('a cancel of a parent whose children are partly queued cancels every wait, in the rows and in the log', {
  timeout: 300_000,
}, async () => {
  const sleeper = defineAgent('sleeper', turn => turn.sleep('long', { for: '1h' }))
  const parent = defineAgent('parent', async turn => {
    await turn.spawnAll(['sleeper', 'sleeper', 'idle', 'idle'].map((agent, i) => ({ name: `child ${i}`, agent })))
  })
  await startOwnWorker(platform, [parent, sleeper])
  for (const client of clients) {
    const { task } = await platform.client.createTask({ agent: 'parent' })
    await until('two children run', async () => {
      const { rows } = await platform.pg.query('select status from tasks where parent = $1', [task.id])
      return rows.filter(({ status }) => status === 'waiting').length === 2
    })
    await client.cancel(task.id)
    const { turns } = await platform.client.waitForEnd(task.id)
    const canceled = Array.from({ length: 4 }, (): WaitStatus => 'canceled')
    expect(turns[0]?.waits?.map(({ status }) => status)).toEqual(canceled)
    const { rows } = await platform.pg.query('select waits.status from waits join turns on turns.id = waits.turn where turns.task = $1', [
      task.id,
    ])
    expect(rows.map(({ status }) => status)).toEqual(canceled)
    await until('the log has canceled every wait', async () =>
      fold(await platform.log(task.id)).turns[0]?.waits?.every(({ status }) => status === 'canceled'),
    )
  }
})

test('a task that is deleted right after its end, before the API has read that end, has its onEnd sent', { timeout: 300_000 }, async () => {
  const received = new Set<string>()
  const { url, close } = await receiveDeliveries(async ({ data: { task } }) => void received.add(task))
  onTestFinished(close)
  // One API process reads the feed at a time, and passes over a reader that another holds.
  const holder = await platform.pg.connect()
  await holder.query('begin')
  await holder.query("select from feed_readers where name = 'webhooks' for update")
  const deleted = await Promise.all(
    Array.from({ length: rounds }, async () => {
      const { task } = await platform.client.createTask({ agent: 'echo', input: 'hello', onEnd: { url } })
      await platform.client.waitForEnd(task.id)
      expect((await clients[1].remove(task.id)).status).toBe(204)
      return task.id
    }),
  ).finally(async () => {
    await holder.query('rollback')
    holder.release()
  })
  await until('every end was sent', () => deleted.every(task => received.has(task)))
})

test('a schedule is created and triggered at both APIs at once, under one key each: one schedule, and one run', async () => {
  const yearly = { agent: 'idle', cron: '0 0 1 1 *' }
  for (let round = 0; round < rounds; round += 1) {
    const body = { ...yearly, input: `round ${round} ${crypto.randomUUID()}` }
    const created = await Promise.all(
      clients.map(client => insist<{ schedule: Schedule }>(client, '/v1/schedules', `create-${round}`, body)),
    )
    const [id, ...others] = [...new Set(created.map(({ schedule }) => schedule.id))]
    expect(others).toEqual([])
    const path = `/v1/schedules/${id}/trigger`
    const runs = await Promise.all(clients.map(client => insist<{ run: ScheduleRun }>(client, path, `trigger-${round}`, {})))
    expect(new Set(runs.map(({ run }) => run.task)).size).toBe(1)
    const { rows } = await platform.pg.query('select task from schedule_runs where schedule = $1', [id])
    expect(rows).toEqual([{ task: runs[0]?.run.task }])
  }
})

test('hundreds of inputs to one task at two APIs: each is accepted or finds the task full, and calls of other tasks go on', async () => {
  const [{ task: busy }, { task: other }] = [
    await platform.client.createTask({ agent: 'idle', input: 'one' }),
    await platform.client.createTask({ agent: 'idle', input: 'one' }),
  ]
  const call = (i: number, path: string, body: object) => clients[i % 2 === 0 ? 0 : 1].post<ErrorReply>(path, body)
  const inputs = Array.from({ length: 300 }, (_, i) => call(i, `/v1/tasks/${busy.id}/turns`, { input: `${i}` }))
  const signals = Array.from({ length: 20 }, (_, i) => call(i, `/v1/tasks/${other.id}/signals`, { name: 'paid' }))
  const replies = await Promise.all(inputs)
  expect((await Promise.all(signals)).map(({ status }) => status)).toEqual(Array(20).fill(202))
  const accepted = replies.filter(({ status }) => status === 202).length
  expect(replies.filter(({ status }) => status !== 202 && status !== 429).map(({ status, body }) => [status, body.error.code])).toEqual([])
  const { rows } = await platform.pg.query('select count(*)::int as stored from turns where task = $1', [busy.id])
  expect(rows).toEqual([{ stored: accepted + 1 }])
})

/** Sends it again while the request of the other API with this key is under way. */
async function insist<T>(client: Client, path: string, key: string, body: object): Promise<T> {
  const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
  return until(`${path} is answered`, async () => {
    const reply = await client.send<T>('POST', path, { headers, body: JSON.stringify(body) })
    return reply.status < 300 && reply.body
  })
}
