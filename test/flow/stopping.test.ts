/** Processes that stop, or freeze for a while: their turns are released or kept, and no attempt is counted. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repeat, rest, say, scripted, start } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { shapeFaults } from '../support/texts/error-shape.ts'
import { until } from '../support/until.ts'
import { rawRequest } from '../support/viewers/raw-http.ts'

const leaseMs = 5_000
const keptOpen = { connection: '' }

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ env: { WORKER_CONCURRENCY: '5', LEASE_MS: String(leaseMs) } })
})
afterAll(() => platform.close())

test('an API that stood still longer than a lease takes nothing from a worker that could not be heard', async () => {
  await platform.client.post('/internal/hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] })
  const { task } = await platform.client.createTask(scripted([repeat(20, say(0, '.'), rest(100))]))
  await untilSpeaking(task.id)
  for (const process of [platform.workers[0], platform.apis[0]]) process?.freeze()
  await sleep(leaseMs * 1.2)
  platform.apis[0]?.wake()
  // Its reconciler has been around when it has ended a turn that is out of time.
  const { task: late } = await platform.client.createTask({ agent: 'idle' })
  await platform.pg.query('update turns set started_at = now(), deadline = now() where task = $1', [late.id])
  expect((await platform.client.waitForEnd(late.id)).turns).toMatchObject([{ error: { code: 'deadline_exceeded' } }])
  platform.workers[0]?.wake()
  const { turns } = await platform.client.waitForEnd(task.id)
  expect(turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  const { rows } = await platform.pg.query('select deaths, failures from turns where task = $1', [task.id])
  expect(rows).toEqual([{ deaths: 0, failures: 0 }])
  expect(await faultsOf(platform, task.id)).toEqual([])
})

test('an API that stops refuses requests on open connections in the one shape of an error, with Retry-After', async () => {
  const api = await platform.startApi()
  const { hostname, port } = new URL(api.url)
  const client = connect(Number(port), hostname)
  let received = ''
  client.on('data', chunk => {
    received += chunk
  })
  // A body that has not arrived keeps the connection busy.
  client.write(rawRequest('POST /v1/tasks', { headers: { ...keptOpen, expect: '100-continue', 'content-length': '2' }, body: '' }))
  await until('the request has begun', () => received.includes('100 Continue'))
  const stopped = api.kill('SIGTERM')
  await until('the API takes no new connections', () =>
    fetch(`${api.url}/healthz`).then(
      () => false,
      () => true,
    ),
  )
  client.write(Buffer.concat([Buffer.from('{}'), rawRequest('GET /v1/agents', { headers: keptOpen })]))
  await until('it responds to both', () => /HTTP\/1.1 400.*HTTP\/1.1 503.*\}\}/s.test(received))
  const [, rejection = ''] = received.split(/(?=HTTP\/1\.1 503)/)
  const [head = '', body = ''] = rejection.split('\r\n\r\n')
  const headers = Object.fromEntries(head.split('\r\n').flatMap(line => [line.toLowerCase().split(': ')].filter(pair => pair.length === 2)))
  expect(headers).toMatchObject({ 'retry-after': '1', connection: 'close' })
  expect(shapeFaults({ status: 503, headers, body })).toEqual([])
  expect(JSON.parse(body)).toMatchObject({ error: { code: 'draining' } })
  expect(await stopped).toEqual({ code: 0, signal: null })
})

test('a worker that gets SIGTERM finishes the turns that end in time and releases the rest, uncounted', async () => {
  const [first] = platform.workers
  const short = await platform.client.createTask(scripted([say(0, 'a'), rest(2_000), say(0, 'b')], { input: 'short' }))
  const long = await Promise.all(
    Array.from({ length: 4 }, () =>
      platform.client.createTask(scripted([start(0, { type: 'text', text: 'half' }), rest(60_000)], { input: 'long' })),
    ),
  )
  for (const { task } of [short, ...long]) await untilSpeaking(task.id)
  const waiting = await platform.client.createTask({ agent: 'echo', input: 'no room yet' })
  const stopped = first?.kill('SIGTERM')
  expect((await platform.client.waitForEnd(short.task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  expect(await stopped).toEqual({ code: 0, signal: null })

  for (const { task } of long) {
    const { turns } = await platform.client.detail(task.id)
    expect(turns).toMatchObject([{ status: 'queued', attempt: 0 }])
    expect(await platform.client.messages(task.id)).toMatchObject([{ author: 'user' }, { status: 'streaming', content: { text: 'half' } }])
  }
  // Canceled before another worker claims it: its output is stored, as aborted.
  const [canceled, ...others] = long.map(({ task }) => task.id)
  await platform.client.cancel(canceled ?? '')
  expect(await platform.client.messages(canceled ?? '')).toMatchObject([
    { author: 'user' },
    { status: 'aborted', content: { text: 'half' } },
  ])
  expect(await faultsOf(platform, canceled ?? '')).toEqual([])

  const second = await platform.startWorker()
  for (const id of others) {
    await platform.client.waitForTask(id, ({ task }) => task.status === 'running')
    const { rows } = await platform.pg.query('select attempt, failures, deaths, worker from turns where task = $1', [id])
    expect(rows).toMatchObject([{ attempt: 1, failures: 0, deaths: 0, worker: expect.stringContaining(`-${second.pid}-`) }])
    await platform.client.cancel(id)
    expect(await faultsOf(platform, id)).toEqual([])
  }
  expect((await platform.client.waitForEnd(waiting.task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
})

test('an API that gets SIGTERM exits cleanly, and its accepted turns run', async () => {
  const api = await platform.startApi()
  const { task } = await platform.clientOf(api).createTask({ agent: 'echo', input: 'one more' })
  expect(await api.kill('SIGTERM')).toEqual({ code: 0, signal: null })
  expect((await platform.client.waitForEnd(task.id)).task.status).toBe('completed')
})

async function untilSpeaking(task: string): Promise<void> {
  await until(`task ${task} speaks`, async () => (await platform.log(task)).some(({ event }) => event.type === 'message.started'))
}
