/** APIs that die in the worst moment, and several that work side by side: what was committed is said once, what was accepted is run once. */
import { defineAgent, delta } from '@rivulet/worker'
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest'
import { rest, say, scripted } from '../support/agents/scripts.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { metric } from '../support/platform/metrics.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type ApiProcess, type Platform, startPlatform } from '../support/platform/platform.ts'
import type { Accepted } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { type FaultyProxy, startProxy } from '../support/viewers/proxy.ts'
import { watch } from '../support/viewers/viewer.ts'

let platform: Platform
let redis: FaultyProxy
let postgres: FaultyProxy

beforeAll(async () => {
  platform = await startPlatform()
  redis = await startProxy(inject('redisUrl'))
  postgres = await startProxy(platform.databaseUrl)
})
afterEach(() => {
  redis.up()
  postgres.up()
})
afterAll(async () => {
  await platform.close()
  await Promise.all([redis.close(), postgres.close()])
})

test('an end that was committed but not announced is announced once, when its API is killed in between', async () => {
  const other = await startOther()
  const agent = defineAgent('ending', async function* () {
    yield delta(0, 'all of it')
  })
  await startOwnWorker(platform, [agent], { url: other.url })
  const announcing = redis.hold('finished:1')
  const { task } = await platform.client.createTask({ agent: 'ending', input: 'go' })
  const viewer = watch(task.id, { urls: [platform.url] })
  await announcing
  expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'completed' }])
  await other.kill()
  await viewer.ended
  await until(
    'the repair is counted',
    async () => (await metric(platform.url, 'rivulet_reconciler_repairs_total', { kind: 'announcement' })) === 1,
  )
  await until('the repair is logged', () => linesAbout(task.id, 'announcement').length > 0)
  expect(linesAbout(task.id, 'announcement')).toMatchObject([{ turn: 1 }])
  // The worker asks the next API again whether it is done, and hears that it is.
  redis.up()
  const next = await startOther(other)
  await until('the worker is idle', async () => (await platform.client.finishedTask({ agent: 'ending' })).task.status === 'completed')
  expect([...(await faultsOf(platform, task.id)), ...(await faultsOfViewers(platform, [viewer]))]).toEqual([])
  await next.kill('SIGTERM')
})

test('a cancel that was committed but not announced is announced with the ends of its messages', async () => {
  const other = await startOther()
  const { task } = await platform.client.createTask(scripted([say(0, 'so far'), rest(60_000)], { input: 'go' }))
  const viewer = watch(task.id, { urls: [platform.url] })
  await viewer.until('the beginning', ({ text }) => text() === 'so far')
  const announcing = redis.hold('finished:1')
  const canceling = platform
    .clientOf(other)
    .cancel(task.id)
    .catch(() => 'no response')
  await announcing
  await other.kill()
  expect(await canceling).toBe('no response')
  await viewer.ended
  expect((await platform.client.messages(task.id)).at(-1)).toMatchObject({ status: 'aborted', content: { text: 'so far' } })
  expect([...(await faultsOf(platform, task.id)), ...(await faultsOfViewers(platform, [viewer]))]).toEqual([])
})

test('a change of the state that was committed but not announced is announced once, when its API is killed in between', async () => {
  const other = await startOther()
  const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'go' })
  const announcing = redis.hold('state:1')
  const headers = { 'content-type': 'application/json', 'if-match': '*' }
  const body = JSON.stringify({ value: { n: 1 } })
  const putting = fetch(`${other.url}/v1/tasks/${task.id}/state`, { method: 'PUT', headers, body }).catch(() => 'no response')
  await announcing
  await other.kill()
  expect(await putting).toBe('no response')
  const told = async () => (await platform.log(task.id)).filter(({ event }) => event.type === 'state.changed')
  await until('it is in the log', async () => (await told()).length > 0)
  expect(await told()).toMatchObject([{ event: { version: 1, value: { n: 1 } } }])
  await until('the repair is logged', () => linesAbout(task.id, 'announcement').length === 1)
  expect(await faultsOf(platform, task.id)).toEqual([])
})

test('a rewind that was committed but not announced is announced once, before its turn starts', async () => {
  const other = await startOther()
  const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'one' })
  const announcing = redis.hold('discarded:2')
  const rewinding = platform
    .clientOf(other)
    .addTurn(task.id, { input: 'edited', after: 0 })
    .catch(() => 'no response')
  await announcing
  await other.kill()
  expect(await rewinding).toBe('no response')
  const { turns } = await platform.client.waitForEnd(task.id)
  expect(turns.map(({ status }) => status)).toEqual(['discarded', 'completed'])
  const types = (await platform.log(task.id)).map(({ event }) => event.type)
  expect(types.filter(type => type === 'turn.discarded')).toHaveLength(1)
  expect(types.indexOf('turn.discarded')).toBeLessThan(types.lastIndexOf('turn.started'))
  expect(await faultsOf(platform, task.id)).toEqual([])
})

test('a cancel that was begun and lost its API is completed by another, with its reason', async () => {
  const other = await startOther()
  const { task } = await platform.client.createTask(scripted([say(0, 'so far'), rest(60_000)], { input: 'go' }))
  const viewer = watch(task.id, { urls: [platform.url] })
  await viewer.until('the beginning', ({ text }) => text() === 'so far')
  // Its first step is committed; its fence is the first thing it says that carries the claim's start again.
  const fencing = redis.hold('started:')
  const canceling = platform
    .clientOf(other)
    .cancel(task.id, 'enough')
    .catch(() => 'no response')
  await fencing
  // Decided, but not done: no response shows the outcome yet.
  expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'running' }])
  expect((await platform.client.detail(task.id)).turns[0]).not.toHaveProperty('error')
  await other.kill()
  expect(await canceling).toBe('no response')
  await viewer.ended
  const error = { code: 'canceled', message: 'enough' }
  expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'canceled', stopReason: 'aborted', error }])
  expect(viewer.frames().find(({ data }) => data.type === 'turn.finished')?.data).toMatchObject({ status: 'canceled', error })
  await until('the repair is logged', () => linesAbout(task.id, 'cancel').length > 0)
  expect(linesAbout(task.id, 'cancel')).toMatchObject([{ turn: 1 }])
  expect(await metric(platform.url, 'rivulet_turns_canceled_total', { by: 'reconciler' })).toBe(1)
  expect([...(await faultsOf(platform, task.id)), ...(await faultsOfViewers(platform, [viewer]))]).toEqual([])
})

test('an end for another reason that lost its API is completed as what it was', async () => {
  const { task } = await platform.client.createTask(scripted([say(0, 'so far'), rest(60_000)], { input: 'go' }))
  const viewer = watch(task.id, { urls: [platform.url] })
  await viewer.until('the beginning', ({ text }) => text() === 'so far')
  const before = await metric(platform.url, 'rivulet_turns_canceled_total')
  const error = { code: 'deadline_exceeded', message: 'The turn exceeded its deadline' }
  // What an API commits first, before it dies.
  await platform.pg.query("update turns set canceling = true, stop_reason = 'error', error = $2 where task = $1", [task.id, error])
  await viewer.ended
  expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'failed', stopReason: 'error', error }])
  expect((await platform.client.messages(task.id)).at(-1)).toMatchObject({ status: 'aborted', content: { text: 'so far' } })
  expect(await metric(platform.url, 'rivulet_turns_canceled_total')).toBe(before)
  expect([...(await faultsOf(platform, task.id)), ...(await faultsOfViewers(platform, [viewer]))]).toEqual([])
})

test('a turn that interrupts makes the announcement that its API owed', async () => {
  const other = await startOther()
  const { task } = await platform.client.createTask(scripted([say(0, 'so far'), rest(60_000)], { input: 'go' }))
  const viewer = watch(task.id, { urls: [platform.url] })
  await viewer.until('the beginning', ({ text }) => text() === 'so far')
  const announcing = redis.hold('finished:1')
  const body = { input: 'instead', params: { steps: [say(0, 'other words')] }, ifBusy: 'interrupt' }
  const interrupting = platform
    .clientOf(other)
    .addTurn(task.id, body)
    .catch(() => 'no response')
  await announcing
  await other.kill()
  expect(await interrupting).toBe('no response')
  await viewer.ended
  const { turns } = await platform.client.waitForEnd(task.id)
  expect(turns.map(({ status }) => status)).toEqual(['canceled', 'completed'])
  expect([...(await faultsOf(platform, task.id)), ...(await faultsOfViewers(platform, [viewer]))]).toEqual([])
})

test('a request under a key whose commit was not answered is carried out once: the API asks again, and the caller may', async () => {
  const other = await startOther()
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const body = { agent: 'echo', input: 'once' }
  const dropped = postgres.dropOnReply('COMMIT', 'accept_tasks')
  const [first] = await Promise.all([platform.clientOf(other).post<Accepted>('/v1/tasks', body, headers), dropped])
  expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
  const again = await platform.client.post<Accepted>('/v1/tasks', body, headers)
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
  expect(again.body).toEqual(first.body)
  const { rows } = await platform.pg.query('select id from tasks where agent = $1 and id = $2', ['echo', again.body.task.id])
  expect(rows).toHaveLength(1)
  expect((await platform.client.waitForEnd(again.body.task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  await other.kill('SIGTERM')
})

test('of three APIs one at a time repairs, and jobs that were lost are sent once', async () => {
  const others = await Promise.all([startOther(), startOther()])
  const urls = [platform.url, ...others.map(({ url }) => url)]
  await platform.client.post('/internal/hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] })
  const tasks = await Promise.all(Array.from({ length: 20 }, () => platform.client.createTask({ agent: 'idle', input: 'x' })))
  const jobs = (dispatch: number) => platform.redis.keys(`${platform.keys.queuePrefix}:idle:*_${dispatch}`)
  await until('every job is there', async () => (await jobs(1)).length === tasks.length)
  const before = await metric(urls, 'rivulet_reconciler_repairs_total', { kind: 'job' })
  await platform.redis.del(...(await platform.redis.keys(`${platform.keys.queuePrefix}:idle:*`)))
  await until('every job is there again', async () => (await jobs(2)).length === tasks.length)
  // Three rounds of each: another reconciler that found something lost would have logged it.
  for (let i = 0; i < 60; i += 1) {
    const { rows } = await platform.pg.query(
      "select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())",
    )
    expect(rows.length).toBeLessThanOrEqual(1)
    await new Promise(resolve => setTimeout(resolve, 25))
  }
  expect(await metric(urls, 'rivulet_reconciler_repairs_total', { kind: 'job' })).toBe(before + tasks.length)
  const { rows } = await platform.pg.query("select distinct dispatch from turns join tasks on tasks.id = turns.task where agent = 'idle'")
  expect(rows).toEqual([{ dispatch: 2 }])
  await Promise.all(others.map(api => api.kill('SIGTERM')))
})

/** Another API, behind the proxies; in the place of one that is gone, if that is given. */
async function startOther(gone?: ApiProcess): Promise<ApiProcess> {
  const env = { REDIS_URL: redis.url, DATABASE_URL: postgres.url }
  return platform.startApi({ env, ...(gone && { port: new URL(gone.url).port }) })
}

function linesAbout(task: string, kind: string) {
  const lines = platform.apis.flatMap(api => api.lines)
  return lines.filter(line => line.msg === 'reconciler repaired' && line.task === task && line.kind === kind)
}
