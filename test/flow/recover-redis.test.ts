/**
 * Redis restarted, robbed, wiped and cut off, with turns running, turns waiting and viewers watching. Nothing that was accepted is lost, nothing
 * is run twice, and no viewer is shown a text that is not the one that is stored.
 */
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { repeat, rest, say, scripted } from '../support/agents/scripts.ts'
import { hasNativeRedis, type PrivateRedis, startPrivateRedis } from '../support/engines/redis/private-redis.ts'
import { createGate } from '../support/gate.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { metric } from '../support/platform/metrics.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { startProxy } from '../support/viewers/proxy.ts'
import { type Viewer, watch } from '../support/viewers/viewer.ts'

const words = '.'.repeat(80)
const talk = scripted([say(0, 'begin'), repeat(80, say(0, '.'), rest(50)), say(0, 'end')], { input: 'go' })

let redis: PrivateRedis
let platform: Platform

beforeAll(async () => {
  redis = await startPrivateRedis()
  platform = await startPlatform({ workers: 2, env: { ...shortLease, REDIS_URL: redis.url } })
})
afterAll(async () => {
  await platform.close()
  await redis.close()
})

describe('Redis', () => {
  test('is wiped: running turns go on in logs that are opened again, and jobs are sent again', async () => {
    const before = await counts()
    const { tasks, viewers, goOn } = await beBusy()
    await redis.client.flushall()
    goOn()
    await expectAllWell(tasks, viewers)
    const after = await counts()
    expect(after.reopened - before.reopened).toBeGreaterThanOrEqual(3)
    expect(after.jobs).toBeGreaterThan(before.jobs)
    expect(after.gaps - before.gaps).toBeGreaterThanOrEqual(3)
    const reopened = linesSaying('log reopened after it lost entries').map(({ task, turn: turnNumber }) => [task, turnNumber])
    expect(reopened).toEqual(expect.arrayContaining(tasks.slice(0, 3).map(task => [task, 1])))
    const gaps = linesSaying('sent a snapshot to viewers').map(({ task, turn: turnNumber, reason, viewers: count }) => [
      task,
      turnNumber,
      reason,
      count,
    ])
    expect(gaps).toEqual(expect.arrayContaining(tasks.slice(0, 3).map(task => [task, 1, 'gap', 1])))
  })

  test.skipIf(!hasNativeRedis)('is unavailable for longer than a lease, and returns with its data: everything waits for it', async () => {
    const before = await counts()
    const { tasks, viewers, goOn } = await beBusy()
    await redis.kill()
    goOn()
    const outage = performance.now()
    const { task: accepted } = await platform.client.createTask({ agent: 'echo', input: 'meanwhile' })
    await until('the outage outlasts a lease', () => performance.now() - outage > 1.5 * Number(shortLease.LEASE_MS))
    await redis.restart()
    await expectAllWell(tasks, viewers)
    expect((await platform.client.waitForEnd(accepted.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    expect((await counts()).deaths).toBe(before.deaths)
  })

  test.skipIf(!hasNativeRedis)('is restarted without its data', async () => {
    const before = await counts()
    const { tasks, viewers, goOn } = await beBusy()
    await redis.kill()
    goOn()
    await redis.restart(0)
    await expectAllWell(tasks, viewers)
    const after = await counts()
    expect(after.reopened - before.reopened).toBeGreaterThanOrEqual(3)
    expect(after.jobs).toBeGreaterThan(before.jobs)
  })

  test.skipIf(!hasNativeRedis)(
    'is restarted without its data while a turn has nothing to say: its worker writes its text again',
    async () => {
      const { open: goOn, opened } = createGate()
      const quiet = defineAgent('quiet', async turn => {
        const message = turn.message()
        await message.append('before ')
        await opened
        await message.append('after')
      })
      await startOwnWorker(platform, [quiet], { redisUrl: redis.url })
      const { task } = await platform.client.createTask({ agent: 'quiet' })
      const viewer = watch(task.id, { urls: [platform.url] })
      await viewer.until('the first word', ({ text }) => text() === 'before ')
      await redis.kill()
      await redis.restart(0)
      const late = watch(task.id, { urls: [platform.url] })
      await late.until('the first word', ({ text }) => text() === 'before ')
      goOn()
      for (const { ended } of [viewer, late]) await ended
      expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
      expect(await platform.client.messages(task.id)).toMatchObject([{ content: { text: 'before after' } }])
      expect(await faultsOfViewers({ ...platform, redis: redis.client }, [viewer, late], { log: false, isDisturbed: true })).toEqual([])
    },
  )

  test.skipIf(!hasNativeRedis)(
    'is restarted with its data, and a turn is canceled before its worker wrote again: its text stays',
    async () => {
      const proxy = await startProxy(redis.url)
      onTestFinished(() => proxy.close())
      const waiting = defineAgent('waiting', async turn => {
        await turn.message().append('before')
        await new Promise(resolve => turn.signal.addEventListener('abort', resolve))
      })
      await startOwnWorker(platform, [waiting], { redisUrl: proxy.url })
      const { task } = await platform.client.createTask({ agent: 'waiting' })
      await watch(task.id, { urls: [platform.url] }).until('its text', ({ text }) => text() === 'before')
      proxy.down()
      await redis.kill()
      await redis.restart()
      await until('the API has Redis again', () => platform.client.cancel(task.id).then(Boolean, () => false))
      expect(await platform.client.messages(task.id)).toMatchObject([{ status: 'aborted', content: { text: 'before' } }])
      proxy.up()
    },
  )

  test.skipIf(!hasNativeRedis)('loses the end of its data: no cursor ever means two things', async () => {
    const { tasks, viewers, goOn } = await beBusy()
    const kept = redis.mark()
    for (const viewer of viewers.slice(0, 3)) await viewer.until('more words', ({ text }) => text().length > 20)
    await redis.kill()
    goOn()
    await redis.restart(kept)
    await expectAllWell(tasks, viewers)
  })

  test('is wiped while a worker is frozen: the worker may not open the log again when it wakes', async () => {
    const { task } = await platform.client.createTask(talk)
    const viewer = watch(task.id, { urls: [platform.url] })
    await viewer.until('a few words', ({ text }) => text().length > 8)
    const { rows } = await platform.pg.query<{ worker: string }>('select worker from turns where task = $1', [task.id])
    const zombie = platform.workers.find(({ lines }) => lines.some(({ worker }) => worker === rows[0]?.worker))
    zombie?.freeze()
    await redis.client.flushall()
    await platform.client.waitForTask(task.id, ({ turns: [turn] }) => turn?.attempt === 2 && turn.status === 'running')
    zombie?.wake()
    await until('the zombie has noticed', () => zombie?.lines.some(line => line.msg === 'turn lost' && line.task === task.id))
    await viewer.ended
    expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 2 }])
    expect((await platform.client.messages(task.id)).at(-1)?.content).toMatchObject({ text: `begin${words}end` })
    expect(await faultsOfViewers({ ...platform, redis: redis.client }, [viewer], { log: false, isDisturbed: true })).toEqual([])
  })

  test('is wiped, and every answer of the API to the worker is lost once: it asks again, and hears the same', async () => {
    const proxy = await startProxy(platform.url)
    onTestFinished(() => proxy.close())
    const [wiped, mayFinish] = [createGate(), createGate()]
    const stubborn = defineAgent('stubborn', async turn => {
      const message = turn.message()
      await message.append('one ')
      await wiped.opened
      await message.append('two')
      await mayFinish.opened
    })
    await startOwnWorker(platform, [stubborn], { redisUrl: redis.url, url: proxy.url })
    const claimed = proxy.dropReply('/internal/claim')
    const { task } = await platform.client.createTask({ agent: 'stubborn' })
    const viewer = watch(task.id, { urls: [platform.url] })
    await claimed
    await viewer.until('the first word', ({ text }) => text() === 'one ')
    await redis.client.flushall()
    const reopened = proxy.dropReply('/internal/reopen')
    wiped.open()
    await reopened
    await viewer.until('the last word', ({ text }) => text() === 'one two')
    const finished = proxy.dropReply('/internal/finish')
    mayFinish.open()
    await finished
    await viewer.ended
    expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    expect(await platform.client.messages(task.id)).toMatchObject([{ status: 'complete', content: { text: 'one two' } }])
    expect(await faultsOfViewers({ ...platform, redis: redis.client }, [viewer], { log: false, isDisturbed: true })).toEqual([])
  })

  test('replies to a worker, and the reply is lost: each delta is in the log once', async () => {
    const proxy = await startProxy(redis.url)
    onTestFinished(() => proxy.close())
    const counting = defineAgent('counting', async turn => {
      const message = turn.message()
      for (let i = 0; i < 100; i += 1) {
        await message.append(`${i} `)
        await new Promise(resolve => setTimeout(resolve, 10))
      }
    })
    await startOwnWorker(platform, [counting], { redisUrl: proxy.url })
    const { task } = await platform.client.createTask({ agent: 'counting' })
    const viewer = watch(task.id, { urls: [platform.url] })
    for (let i = 0; i < 5; i += 1) await proxy.dropReply(`:log:${task.id}`)
    await viewer.ended
    const said = Array.from({ length: 100 }, (_, i) => `${i} `).join('')
    expect(await platform.client.messages(task.id)).toMatchObject([{ content: { text: said }, status: 'complete' }])
    expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    expect(await faultsOfViewers({ ...platform, redis: redis.client }, [viewer])).toEqual([])
  })

  test('does not answer a worker for a while: the worker notices, keeps its turn, and goes on', async () => {
    const proxy = await startProxy(redis.url)
    onTestFinished(() => proxy.close())
    const patient = defineAgent('patient', async turn => {
      const message = turn.message()
      for (let i = 0; i < 100; i += 1) {
        await message.append('.')
        await new Promise(resolve => setTimeout(resolve, 10))
      }
    })
    await startOwnWorker(platform, [patient], { redisUrl: proxy.url })
    const { task } = await platform.client.createTask({ agent: 'patient' })
    const viewer = watch(task.id, { urls: [platform.url] })
    await viewer.until('a few words', ({ text }) => text().length > 3)
    proxy.blackhole()
    const silence = performance.now()
    await until('the silence outlasts a lease', () => performance.now() - silence > 1.2 * Number(shortLease.LEASE_MS))
    proxy.up()
    await viewer.ended
    expect((await platform.client.detail(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    expect(await platform.client.messages(task.id)).toMatchObject([{ content: { text: '.'.repeat(100) } }])
    expect(await faultsOfViewers({ ...platform, redis: redis.client }, [viewer])).toEqual([])
  })
})

/**
 * Three turns that speak, one that waits behind the first of them, and two that wait for their time; each with a viewer. Those that speak say the second
 * half of their words only when they are let, so that they have not ended when the fault comes.
 */
async function beBusy(): Promise<{ tasks: string[]; viewers: Viewer[]; goOn: () => void }> {
  const { open: goOn, opened } = createGate()
  const talker = defineAgent('talker', async turn => {
    const message = turn.message()
    if (turn.number > 1) return message.append('then')
    await message.append('begin')
    for (const [place, word] of [...words].entries()) {
      if (place === words.length / 2) await opened
      await message.append(word)
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    await message.append('end')
  })
  await startOwnWorker(platform, [talker], { redisUrl: redis.url })
  const running = await startTasks(3, { agent: 'talker', input: 'go' })
  await platform.client.addTurn(running[0] ?? '', { input: 'and then' })
  const speaking = running.map(task => watch(task, { urls: [platform.url] }))
  for (const viewer of speaking) await viewer.until('a few words', ({ text }) => text().length > 8)
  // Last, so that their time has not come when the fault does.
  const delayed = await startTasks(2, { agent: 'echo', input: 'later', delayMs: 6_000 })
  const waiting = delayed.map(task => watch(task, { urls: [platform.url] }))
  for (const viewer of waiting) await viewer.until('it has joined', ({ frames }) => frames().length > 0)
  const [tasks, viewers] = [
    [...running, ...delayed],
    [...speaking, ...waiting],
  ]
  return { tasks, viewers, goOn }
}

async function startTasks(count: number, body: object): Promise<string[]> {
  const started = await Promise.all(Array.from({ length: count }, () => platform.client.createTask(body)))
  return started.map(({ task }) => task.id)
}

/** Every turn was run once and said all it had to say, and every viewer knows. */
async function expectAllWell(tasks: string[], viewers: Viewer[]): Promise<void> {
  for (const task of tasks) {
    const { turns } = await platform.client.waitForEnd(task)
    expect(turns.map(({ status, attempt }) => [status, attempt])).toEqual(turns.map(() => ['completed', 1]))
  }
  const texts = await Promise.all(
    tasks.map(async task => (await platform.client.messages(task)).map(({ content }) => 'text' in content && content.text)),
  )
  const spoken = ['go', `begin${words}end`]
  expect(texts).toEqual([[...spoken, 'and then', 'then'], spoken, spoken, ['later', 'later'], ['later', 'later']])
  expect(await faultsOfViewers({ ...platform, redis: redis.client }, viewers, { log: false, isDisturbed: true })).toEqual([])
}

async function counts(): Promise<Record<'reopened' | 'jobs' | 'gaps' | 'deaths', number>> {
  const { url } = platform
  return {
    reopened: await metric(url, 'rivulet_logs_reopened_total'),
    jobs: await metric(url, 'rivulet_reconciler_repairs_total', { kind: 'job' }),
    gaps: await metric(url, 'rivulet_snapshots_sent_total', { reason: 'gap' }),
    deaths: await metric(url, 'rivulet_worker_deaths_total'),
  }
}

function linesSaying(message: string) {
  return platform.apis.flatMap(({ lines }) => lines.filter(({ msg }) => msg === message))
}
