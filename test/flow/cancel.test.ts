/** Cancel, in every phase of a turn: it ends once, at once, with what it had said, whatever its worker does. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Message } from '@rivulet/protocol'
import { type AgentHandler, defineAgent, delta } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { rest, say, scripted } from '../support/agents/scripts.ts'
import { createGate } from '../support/gate.ts'
import { faultsIn } from '../support/judge/judge.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { metric } from '../support/platform/metrics.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type ApiProcess, type Platform, startPlatform } from '../support/platform/platform.ts'
import type { Client, ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { type FaultyProxy, startProxy } from '../support/viewers/proxy.ts'
import { type Viewer, watch } from '../support/viewers/viewer.ts'

const long = [say(0, 'so far'), rest(60_000), say(0, ' and never this')]

let platform: Platform
/** Another API, behind proxies. */
let other: ApiProcess
let otherClient: Client
let redis: FaultyProxy
let postgres: FaultyProxy

beforeAll(async () => {
  platform = await startPlatform()
  redis = await startProxy(inject('redisUrl'))
  postgres = await startProxy(platform.databaseUrl)
  other = await platform.startApi({ env: { REDIS_URL: redis.url, DATABASE_URL: postgres.url } })
  otherClient = platform.clientOf(other)
})
afterAll(async () => {
  await platform.close()
  await Promise.all([redis.close(), postgres.close()])
})

describe('a turn that', () => {
  test('waits in the queue ends without a message', async () => {
    const { task } = await platform.client.createTask({ agent: 'echo', input: 'later', delayMs: 60_000 })
    const viewer = watch(task.id, { urls: [other.url] })
    await platform.client.cancel(task.id)
    await viewer.ended
    expect(await platform.client.messages(task.id)).toEqual([])
    expect(await faultsSeenBy(viewer, task.id)).toEqual([])
  })

  test('is just being claimed never runs, and ends with its input', async () => {
    const runs: string[] = []
    await startOwnWorker(platform, [defineAgent('claimed', async turn => void runs.push(turn.task.id))], { url: other.url })
    const claiming = redis.hold('started:')
    const { task } = await platform.client.createTask({ agent: 'claimed', input: 'go' })
    await claiming
    expect((await platform.client.cancel(task.id)).status).toBe('canceled')
    redis.up()
    const { turns } = await platform.client.detail(task.id)
    expect(turns).toMatchObject([{ status: 'canceled', attempt: 1 }])
    expect((await platform.client.messages(task.id)).map(briefly)).toEqual([['user', 'complete', 'go']])
    expect(await faultsOf(platform, task.id)).toEqual([])
    // The worker is free again, and has not run it.
    const { task: next } = await platform.client.finishedTask({ agent: 'claimed' })
    expect(runs).toEqual([next.id])
  })

  test('runs is aborted, with those behind it; what it has said stays', async () => {
    const { task } = await platform.client.createTask(scripted(long, { input: 'go' }))
    await platform.client.addTurn(task.id, { input: 'second' })
    await platform.client.addTurn(task.id, { input: 'third' })
    const viewer = watch(task.id, { urls: [other.url] })
    await viewer.until('the beginning', ({ text }) => text() === 'so far')
    const before = await metric(platform.url, 'rivulet_turns_canceled_total', { by: 'call' })
    expect((await platform.client.cancel(task.id, 'enough')).status).toBe('canceled')
    await viewer.ended
    const { turns } = await platform.client.detail(task.id)
    expect(turns.map(({ status, stopReason, error }) => [status, stopReason, error?.message])).toEqual(
      Array.from({ length: 3 }, () => ['canceled', 'aborted', 'enough']),
    )
    const [, reply] = await platform.client.messages(task.id)
    expect(reply).toMatchObject({ status: 'aborted', stopReason: 'aborted', content: { text: 'so far' } })
    expect(await faultsSeenBy(viewer, task.id)).toEqual([])
    expect(await metric(platform.url, 'rivulet_turns_canceled_total', { by: 'call' })).toBe(before + 3)
    const lines = await until('every end is logged', () => {
      const found = platform.apis[0]?.lines.filter(({ msg, task: about }) => msg === 'turn ended' && about === task.id)
      return found?.length === 3 && found
    })
    expect(lines.map(({ turn: turnNumber, status, by }) => [turnNumber, status, by]).sort()).toEqual(
      [1, 2, 3].map(turnNumber => [turnNumber, 'canceled', 'call']),
    )
  })

  test('hangs and ignores its signal ends as well, and makes room for the next', async () => {
    const hung = defineAgent('hung', async turn => {
      await turn.message().append(turn.input ? 'in vain' : 'next')
      if (turn.input) await new Promise(() => {})
    })
    await startOwnWorker(platform, [hung], { concurrency: 1 })
    const { task } = await platform.client.createTask({ agent: 'hung', input: 'go' })
    const viewer = watch(task.id, { urls: [platform.url] })
    await viewer.until('the beginning', ({ text }) => text() === 'in vain')
    await platform.client.cancel(task.id)
    await viewer.ended
    expect((await platform.client.messages(task.id)).map(briefly)).toEqual([
      ['user', 'complete', 'go'],
      ['agent', 'aborted', 'in vain'],
    ])
    expect(await faultsSeenBy(viewer, task.id)).toEqual([])
    expect((await platform.client.finishedTask({ agent: 'hung' })).messages.map(briefly)).toEqual([['agent', 'complete', 'next']])
  })

  test('has a frozen worker ends for everyone but that worker, which writes nothing when it wakes', async () => {
    const { task } = await platform.client.createTask(
      scripted([
        ...long.slice(0, 1),
        ...Array(200)
          .fill([say(0, '.'), rest(50)])
          .flat(),
      ]),
    )
    const viewer = watch(task.id, { urls: [platform.url] })
    await viewer.until('the beginning', ({ text }) => text().length > 10)
    const [worker] = platform.workers
    worker?.freeze()
    try {
      await platform.client.cancel(task.id)
      await viewer.ended
    } finally {
      worker?.wake()
    }
    const log = await platform.log(task.id)
    await until('the worker has noticed', () => worker?.lines.some(line => line.msg === 'turn lost' && line.task === task.id))
    expect(await platform.log(task.id)).toEqual(log)
    expect(await faultsSeenBy(viewer, task.id)).toEqual([])
  })

  test('waits for its next attempt ends with what the last one said', async () => {
    const { open, agent } = gated('failing', 'first try', () => Promise.reject(new Error('no')))
    await startOwnWorker(platform, [agent])
    const { task } = await platform.client.createTask({ agent: 'failing' })
    const viewer = watch(task.id, { urls: [platform.url] })
    await untilSaid(task.id, 'first try')
    // So that the next attempt does not begin.
    await platform.client.send('PATCH', '/v1/agents/failing', { headers: { 'content-type': 'application/json' }, body: '{"paused":true}' })
    open()
    await platform.client.waitForTask(task.id, ({ turns: [turn] }) => turn?.status === 'queued' && turn.attempt === 1)
    await platform.client.cancel(task.id)
    await viewer.ended
    expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'canceled', attempt: 1 }])
    expect((await platform.client.messages(task.id)).map(briefly)).toEqual([['agent', 'failed', 'first try']])
    expect(await faultsSeenBy(viewer, task.id)).toEqual([])
  })

  test('is just finishing ends canceled if the cancel comes first', async () => {
    const { open, agent } = gated('finishing')
    await startOwnWorker(platform, [agent], { url: other.url, concurrency: 1 })
    const { task } = await platform.client.createTask({ agent: 'finishing' })
    await untilSaid(task.id, 'all of it')
    postgres.down()
    open()
    await until('the worker has said all', async () => (await platform.log(task.id)).some(({ event }) => event.type === 'message.finished'))
    expect((await platform.client.cancel(task.id)).status).toBe('canceled')
    postgres.up()
    // The worker has been told, and is free again.
    await platform.client.finishedTask({ agent: 'finishing' })
    expect((await platform.client.messages(task.id)).map(briefly)).toEqual([['agent', 'complete', 'all of it']])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('is just finishing ends completed if the commit comes first', async () => {
    const { open, agent } = gated('committing')
    await startOwnWorker(platform, [agent], { url: other.url })
    const { task } = await platform.client.createTask({ agent: 'committing' })
    await untilSaid(task.id, 'all of it')
    // The committing transaction holds the task and then waits for the turn, which is held here.
    const holder = await platform.pg.connect()
    await holder.query('begin')
    await holder.query('select from turns where task = $1 for update', [task.id])
    open()
    await untilWaiting('the commit', 'ended as (')
    const canceling = platform.client.cancel(task.id)
    await untilWaiting('the cancel', 'from "tasks"')
    await holder.query('commit')
    holder.release()
    expect((await canceling).status).toBe('completed')
    expect((await platform.client.messages(task.id)).map(briefly)).toEqual([['agent', 'complete', 'all of it']])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('has ended stays as it is', async () => {
    const { task, turns } = await platform.client.finishedTask({ agent: 'echo', input: 'done' })
    const viewer = watch(task.id, { urls: [platform.url] })
    await viewer.ended
    const log = await platform.log(task.id)
    expect((await platform.client.cancel(task.id)).status).toBe('completed')
    expect((await platform.client.detail(task.id)).turns).toEqual(turns)
    expect(await platform.log(task.id)).toEqual(log)
  })
})

describe('cancels that meet', () => {
  test('twenty at once end each turn once', async () => {
    const { task } = await platform.client.createTask(scripted(long, { input: 'go' }))
    await platform.client.addTurn(task.id, { input: 'behind' })
    const viewer = watch(task.id, { urls: [platform.url] })
    await viewer.until('the beginning', ({ text }) => text() === 'so far')
    const cancels = Array.from({ length: 20 }, (_, i) => (i % 2 ? otherClient : platform.client).cancel(task.id))
    expect((await Promise.all(cancels)).map(({ status }) => status)).toEqual(Array(20).fill('canceled'))
    await viewer.ended
    expect(await faultsSeenBy(viewer, task.id)).toEqual([])
  })

  test('as many as come at once, of as many tasks, are all answered', async () => {
    const tasks = await Promise.all(Array.from({ length: 60 }, () => platform.client.createTask({ agent: 'echo', delayMs: 60_000 })))
    const canceled = await Promise.all(tasks.map(({ task }) => platform.client.cancel(task.id)))
    expect(new Set(canceled.map(({ status }) => status))).toEqual(new Set(['canceled']))
  })

  test('at any moment of a turn leave a task that is one thing or the other', async () => {
    const steps = [say(0, 'a'), rest(5), say(0, 'b'), say(1, 'c'), rest(5), say(1, 'd')]
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        const { task } = await platform.client.createTask(scripted(steps, { input: 'go' }))
        await new Promise(resolve => setTimeout(resolve, i * 4))
        const { status } = await (i % 2 ? otherClient : platform.client).cancel(task.id)
        expect(await faultsOf(platform, task.id)).toEqual([])
        return status
      }),
    )
    expect(outcomes).toContain('canceled')
  })

  test('an interrupt of a turn that hangs lets the new one run', async () => {
    const stuck = defineAgent('stuck', async turn => {
      if (turn.number === 1) await new Promise(() => {})
      await turn.send('at last')
    })
    await startOwnWorker(platform, [stuck])
    const { task } = await platform.client.createTask({ agent: 'stuck' })
    await platform.client.waitForTask(task.id, ({ task: { status } }) => status === 'running')
    const viewer = watch(task.id, { urls: [platform.url] })
    await platform.client.addTurn(task.id, { ifBusy: 'interrupt' })
    await viewer.ended
    expect((await platform.client.detail(task.id)).turns.map(({ status }) => status)).toEqual(['canceled', 'completed'])
    expect(await faultsSeenBy(viewer, task.id)).toEqual([])
  })
})

test('an interrupt of a turn that never began is not the end for its viewers', async () => {
  const { task } = await platform.client.createTask(scripted([], { input: 'later', delayMs: 60_000 }))
  const viewers = [platform, other].map(({ url }) => watch(task.id, { urls: [url] }))
  for (const viewer of viewers) await viewer.until('it has joined', ({ frames }) => frames().length > 0)
  await platform.client.addTurn(task.id, { input: 'now', params: { steps: [say(0, 'now')] }, ifBusy: 'interrupt' })
  for (const viewer of viewers) await viewer.ended
  expect((await platform.client.messages(task.id)).map(briefly)).toEqual([
    ['user', 'complete', 'later'],
    ['user', 'complete', 'now'],
    ['agent', 'complete', 'now'],
  ])
  for (const viewer of viewers) expect(await faultsSeenBy(viewer, task.id)).toEqual([])
})

describe('the signal of a handler fires', () => {
  test('by a word to its worker, and stops what the handler waits for', async () => {
    const server = createServer(() => {}).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const { agent, fired } = signaled('fetching', async turn => {
      await turn.send('asking')
      await fetch(`http://127.0.0.1:${port}`, { signal: turn.signal })
    })
    await startOwnWorker(platform, [agent], { heartbeatMs: 60_000 })
    const asked = once(server, 'request')
    const { task } = await platform.client.createTask({ agent: 'fetching' })
    const [request] = await asked
    const closed = once(request.socket, 'close')
    await platform.client.cancel(task.id)
    await Promise.all([fired, closed])
    server.close()
  })

  test('by its heartbeat, where Redis does not reach it', async () => {
    const cut = await ownProxy()
    const { agent, fired } = signaled('silent', turn => turn.send('waiting').then(() => new Promise(() => {})))
    await startOwnWorker(platform, [agent], { redisUrl: cut.url })
    const { task } = await platform.client.createTask({ agent: 'silent' })
    await untilSaid(task.id, 'waiting')
    cut.blackhole()
    await platform.client.cancel(task.id)
    await fired
    cut.up()
  })

  test('by the log, which rejects its next append, if no other message reaches it', async () => {
    const deaf = await ownProxy()
    const { agent, fired } = signaled('talking', async function* (turn) {
      while (!turn.signal.aborted) {
        yield delta(0, '.')
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    })
    await startOwnWorker(platform, [agent], { redisUrl: deaf.url, heartbeatMs: 60_000 })
    const { task } = await platform.client.createTask({ agent: 'talking' })
    await untilSaid(task.id, '...')
    deaf.mute(':worker:')
    await platform.client.cancel(task.id)
    await fired
    expect(await faultsOf(platform, task.id)).toEqual([])
  })
})

describe('with Redis out of reach', () => {
  test('a cancel and an interrupt are refused, and change nothing', async () => {
    const { task } = await platform.client.createTask(scripted(long))
    await platform.client.addTurn(task.id, { input: 'behind' })
    await untilSaid(task.id, 'so far')
    const before = await rowsOf(task.id)
    redis.down()
    for (const [path, body] of [
      ['cancel', {}],
      ['turns', { input: 'now', ifBusy: 'interrupt' }],
    ] as const) {
      const refused = await otherClient.post<ErrorReply>(`/v1/tasks/${task.id}/${path}`, body)
      expect([refused.status, refused.body.error.code]).toEqual([503, 'dependency_unavailable'])
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect(await rowsOf(task.id)).toEqual(before)
    redis.up()
    await until('the API has found Redis again', async () => (await otherClient.post(`/v1/tasks/${task.id}/cancel`, {})).status === 200)
    expect(await faultsOf(platform, task.id)).toEqual([])
  })
})

/** A proxy to Redis for one test; it is closed after the processes that use it. */
async function ownProxy(): Promise<FaultyProxy> {
  const proxy = await startProxy(inject('redisUrl'))
  onTestFinished(() => proxy.close())
  return proxy
}

/** An agent that says all it has to say, and ends when it is let. */
function gated(name: string, said = 'all of it', end = async () => {}): { open: () => void; agent: ReturnType<typeof defineAgent> } {
  const { open, opened } = createGate()
  const agent = defineAgent(name, async function* () {
    yield delta(0, said)
    await opened
    await end()
  })
  return { open, agent }
}

/** An agent and the moment at which its signal fires. */
function signaled(name: string, run: AgentHandler): { agent: ReturnType<typeof defineAgent>; fired: Promise<void> } {
  const { open: fire, opened: fired } = createGate()
  const agent = defineAgent(name, turn => {
    turn.signal.addEventListener('abort', fire)
    return run(turn)
  })
  return { agent, fired }
}

async function untilSaid(task: string, text: string): Promise<void> {
  await until(`task ${task} has said ${text}`, async () => {
    const last = (await platform.client.messages(task)).at(-1)
    return last?.content.type === 'text' && last.content.text.endsWith(text)
  })
}

/** Until a statement with this text in it waits for a lock. */
async function untilWaiting(who: string, text: string): Promise<void> {
  const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and strpos(query, $1) > 0"
  await until(`${who} waits for a lock`, async () => (await platform.pg.query(waiting, [text])).rows.length > 0)
}

async function faultsSeenBy(viewer: Viewer, task: string): Promise<string[]> {
  const rows = await platform.client.messages(task)
  return [...(await faultsOf(platform, task)), ...faultsIn(viewer.journal, { rows })]
}

/** What a cancel would change. */
async function rowsOf(task: string): Promise<unknown[]> {
  const { rows } = await platform.pg.query(
    'select turns.number, turns.status, turns.canceling, turns.epoch, tasks.epoch as fence, tasks.status as task_status from turns join tasks on tasks.id = turns.task where task = $1 order by number',
    [task],
  )
  return rows
}

function briefly({ author, status, content }: Message): [string, string, string] {
  return [author, status, content.type === 'text' ? content.text : content.type]
}
