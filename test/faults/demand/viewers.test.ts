/** Viewers whose API dies come back at once, to the other one: each hears the rest. The figures of ten thousand are printed, not judged. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { compareCursors, epochOf, origin } from '@rivulet/protocol'
import { defineAgent, delta } from '@rivulet/worker'
import { expect, onTestFinished, test } from 'vitest'
import { repeat, rest, say, scripted } from '../../support/agents/scripts.ts'
import { faultsOfViewers } from '../../support/judge/judge-viewers.ts'
import { metric } from '../../support/platform/metrics.ts'
import { startOwnWorker } from '../../support/platform/own-worker.ts'
import { type Platform, shortLease, withPlatform } from '../../support/platform/platform.ts'
import { openFileLimit } from '../../support/process/open-files.ts'
import { until } from '../../support/until.ts'
import { type Viewer, watch } from '../../support/viewers/viewer.ts'
import type { SwarmOrder, SwarmReport } from '../swarm.ts'

test('a thousand viewers come back at once', { timeout: 300_000 }, () =>
  withPlatform({ apis: 2, workers: 1, env: { LEASE_MS: '20000' } }, async platform => {
    const [first, second] = platform.apis
    const tasks = await createTasks(platform, 10, scripted([repeat(200, say(0, 'word '), rest(100))]))
    const viewers = tasks.flatMap(task => Array.from({ length: 100 }, () => watch(task, { urls: [second?.url ?? '', first?.url ?? ''] })))
    await Promise.all(viewers.map(viewer => viewer.until('hears it begin', ({ text }) => text() !== '', { timeoutMs: 120_000 })))
    await second?.kill()
    expect(await faultsOfViewers(platform, viewers)).toEqual([])
    for (const viewer of viewers) expect(viewer.text()).toBe('word '.repeat(200))
  }),
)

test(
  'viewers with cursors from the future, while workers die and epochs rise: ids only grow on each connection',
  { timeout: 300_000 },
  () =>
    withPlatform({ apis: 2, workers: 2, env: shortLease }, async platform => {
      const tasks = await createTasks(platform, 6, scripted([repeat(100, say(0, 'word '), rest(100))]))
      const viewers: Viewer[] = []
      for (let round = 0; round < 4; round += 1) {
        const worker = platform.workers[round]
        if (round > 0) await worker?.kill()
        if (round > 0) await platform.startWorker(shortLease)
        for (const task of tasks) {
          const epoch = epochOf((await platform.log(task)).at(-1)?.cursor ?? origin)
          // Behind the newest entry, in the epoch of the next attempt before and after its log begins, and far ahead.
          for (const after of [`${epoch}-9999`, `${epoch + 1}-0`, `${epoch + 1}-1`, `${epoch + 7}-9999`] as const)
            viewers.push(watch(task, { urls: platform.urls, after, cutAfter: () => 40 }))
        }
      }
      await Promise.all(viewers.map(({ ended }) => ended))
      for (const { journal, text } of viewers) {
        for (const { frames } of journal.connections) {
          const ids = frames.flatMap(({ id }) => id ?? [])
          expect(ids).toEqual(ids.toSorted(compareCursors))
        }
        expect(text()).toBe('word '.repeat(100))
      }
    }),
)

const count = 10_000
const needed = count + 500
const isTooLow = openFileLimit() < needed
if (isTooLow)
  console.log(`Ten thousand viewers are left out: ${needed} open files are needed, ${openFileLimit()} are allowed; see ulimit -n`)

/** Says numbered words for longer than all of it takes: it is canceled when everything was measured. */
const counter = defineAgent('counter', async function* () {
  for (let i = 0; i < 1_000; i += 1) {
    yield delta(0, `w${i} `)
    await new Promise(resolve => setTimeout(resolve, 2_000))
  }
})
const roomy = {
  LEASE_MS: '20000',
  ...{ MAX_STREAMS_PER_KEY: '20000', RATE_LIMIT_PER_SECOND: '100000', RATE_LIMIT_BURST: '100000' },
  ...{ MAX_STREAMS_PER_TENANT: '20000', RATE_LIMIT_TENANT_PER_SECOND: '100000', RATE_LIMIT_TENANT_BURST: '100000' },
}
const patience = { timeoutMs: 600_000, intervalMs: 100 }

test.skipIf(isTooLow)('ten thousand viewers come back at once', { timeout: 1_800_000 }, () =>
  withPlatform({ apis: 2, workers: 0, env: roomy }, async platform => {
    const [survivor = '', dying = ''] = platform.urls
    await startOwnWorker(platform, [counter])
    const tasks = await createTasks(platform, 20, { agent: 'counter' })
    const swarm = startSwarm({ tasks, urls: [dying, survivor], count })
    await until('all of them listen', async () => (await swarm.report()).up === count, patience)
    const { rejections: refusedBefore } = await swarm.report()
    const before = await transactions(platform)
    const killedAt = performance.now()
    await platform.apis.find(({ url }) => url === dying)?.kill()
    await until('all of them are with the other', async () => (await metric(survivor, 'rivulet_viewers')) === count, patience)
    await until('and up to date', async () => (await swarm.report()).up === count, patience)
    const backMs = performance.now() - killedAt
    const queries = (await transactions(platform)) - before
    swarm.forget()
    const { words: known } = await swarm.report()
    const { latencies, rejections } = await until(
      'each of them has heard more',
      async () => swarm.report().then(report => report.words >= known + 5 && report),
      patience,
    )
    const rss = await metric(survivor, 'process_resident_memory_bytes')
    console.log(
      `${count} viewers were back after ${(backMs / 1_000).toFixed(1)} s, which took ${queries} transactions and ${rejections - refusedBefore} refusals; then ${latencies.count} words, ` +
        `p50 ${latencies.p50} ms, p99 ${latencies.p99} ms, at most ${latencies.max} ms; the API has ${Math.round(rss / 2 ** 20)} MB`,
    )
    for (const task of tasks) await platform.client.post(`/v1/tasks/${task}/cancel`, {})
    const { faults } = await until(
      'all of them received the end',
      async () => swarm.report().then(report => report.ended === count && report),
      patience,
    )
    expect(faults).toEqual([])
    // One query for all viewers of a feed, and the API's own queries, which are fewer than 100 a second.
    expect(queries).toBeLessThan(count / 10 + backMs / 10)
    expect(rss).toBeLessThan(300 * 2 ** 20)
  }),
)

async function createTasks(platform: Platform, howMany: number, body: object): Promise<string[]> {
  const created = await Promise.all(Array.from({ length: howMany }, () => platform.client.createTask(body)))
  return created.map(({ task }) => task.id)
}

function startSwarm(order: SwarmOrder) {
  const swarm = fork(fileURLToPath(new URL('../swarm.ts', import.meta.url)), [], { execArgv: ['--import', import.meta.resolve('tsx')] })
  onTestFinished(() => void swarm.kill())
  swarm.send(order)
  return { report, forget: () => void swarm.send('forget') }

  async function report(): Promise<SwarmReport> {
    swarm.send('report')
    const [reply] = (await once(swarm, 'message')) as [SwarmReport]
    return reply
  }
}

async function transactions({ pg }: Platform): Promise<number> {
  const { rows } = await pg.query<{ count: number }>(
    'select xact_commit::int + xact_rollback::int as count from pg_stat_database where datname = current_database()',
  )
  return rows[0]?.count ?? 0
}
