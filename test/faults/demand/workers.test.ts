/** Workers that run out of memory, block themselves, are killed with all they run or get no processor; and a queue that is faster than the commit. */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repeat, rest, say, scripted } from '../../support/agents/scripts.ts'
import { type Platform, withPlatform } from '../../support/platform/platform.ts'
import { type Client, createClient } from '../../support/platform/platform-client.ts'
import { until } from '../../support/until.ts'
import { type Bench, startBench } from '../bench.ts'

const greedy = `
import { defineAgent } from '@rivulet/worker'
export const hoarder = defineAgent('hoarder', async turn => {
  await turn.send('before')
  if (turn.attempt > 1) return
  const kept = []
  for (;;) kept.push(new Array(100_000).fill(Math.random()))
})
export const spinner = defineAgent('spinner', async turn => {
  await turn.send('before')
  while (turn.attempt === 1);
  await turn.send('after')
})
`

let bench: Bench
let client: Client

beforeAll(async () => {
  bench = await startBench({ apis: 1, workers: 0 })
  client = createClient(() => bench.urls[0] ?? '')
})
afterAll(() => bench.close())

test('a worker that runs out of memory is a worker that died, and so is one that a turn blocks', {
  timeout: 180_000,
}, async () => {
  const file = join(bench.tree.root, 'greedy.ts')
  writeFileSync(file, greedy)
  const env = { AGENT_FILES: file, WATCHDOG_MS: '2000', NODE_OPTIONS: '--max-old-space-size=200' }
  const greedyWorker = () => bench.startWorker(env)
  const first = await greedyWorker()
  const spinning = await client.createTask({ agent: 'spinner' })
  await client.waitForTask(spinning.task.id, ({ turns: [turn] }) => turn?.status === 'running')
  await first.exited
  await Promise.all([greedyWorker(), greedyWorker()])
  expect((await client.waitForEnd(spinning.task.id, { timeoutMs: 90_000 })).turns).toMatchObject([{ status: 'completed', attempt: 2 }])
  expect(await client.messages(spinning.task.id)).toMatchObject([{ content: { text: 'before' } }, { content: { text: 'after' } }])
  const hoarding = await client.createTask({ agent: 'hoarder' })
  expect((await client.waitForEnd(hoarding.task.id, { timeoutMs: 90_000 })).turns).toMatchObject([{ status: 'completed', attempt: 2 }])
  await Promise.all(bench.workers().map(worker => worker.kill()))
})

test(
  'forty turns of a killed worker speak again within seconds of the end of their leases, in the programs that are there',
  { timeout: 300_000 },
  () =>
    withPlatform({ workers: 2, env: { LEASE_MS: '5000', RECONCILE_MS: '60000', WORKER_CONCURRENCY: '40' } }, async platform => {
      const { victim, survivor, tasks } = await startTalking(platform, 40)
      await victim.kill()
      const { worker } = await victim.said('worker is ready')
      const { rows: leases } = await platform.pg.query<{ ends: Date }>('select max(lease_until) as ends from turns where worker = $1', [
        worker,
      ])
      for (const task of tasks) expect((await platform.client.waitForEnd(task, patience)).turns).toMatchObject([{ status: 'completed' }])
      const again = survivor.lines.filter(({ msg, attempt }) => msg === 'attempt ended' && attempt === 2)
      expect(again.length).toBeGreaterThan(5)
      expect(new Set(again.map(({ pid }) => pid))).toEqual(new Set([survivor.pid]))
      const firstWords = again.map(({ time, ranMs, firstDeltaMs }) => Number(time) - Number(ranMs) + Number(firstDeltaMs))
      const lateMs = [Math.min(...firstWords), Math.max(...firstWords)].map(at => at - (leases[0]?.ends.getTime() ?? 0))
      console.log(`${again.length} turns of a killed worker spoke again ${lateMs.join(' to ')} ms after the end of the last lease`)
      // A second on an idle machine; a round of the reconciler would take a minute here.
      expect(Math.max(...lateMs)).toBeLessThan(20_000)
    }),
)

test('on a machine that others keep busy, a killed worker costs its turns one death, and no other turn any', { timeout: 300_000 }, () =>
  withPlatform({ workers: 2, env: { LEASE_MS: '6000', HEARTBEAT_MS: '1000', WORKER_CONCURRENCY: '36' } }, async platform => {
    const { victim, tasks } = await startTalking(platform, 36)
    const others = Array.from({ length: 6 * availableParallelism() }, () => spawn(process.execPath, ['-e', 'for (;;);']))
    try {
      await victim.kill()
      for (const task of tasks) expect((await platform.client.waitForEnd(task, patience)).turns).toMatchObject([{ status: 'completed' }])
      const { rows } = await platform.pg.query('select max(deaths) as deaths from turns')
      expect(rows).toEqual([{ deaths: 1 }])
    } finally {
      await Promise.all(others.map(end))
    }
  }),
)

const patience = { timeoutMs: 120_000 }

/** So many turns of ten seconds, in two workers that are idle otherwise. */
async function startTalking(platform: Platform, count: number) {
  const talk = scripted([say(0, 'begin'), repeat(100, say(0, '.'), rest(100))])
  const created = await Promise.all(Array.from({ length: count }, () => platform.client.createTask(talk)))
  const running = "select count(*)::int as running from turns where status = 'running'"
  await until('all of them run', async () => (await platform.pg.query(running)).rows[0]?.running === count, patience)
  const [victim, survivor] = platform.workers
  if (!victim || !survivor) throw new Error('There should be two workers')
  return { victim, survivor, tasks: created.map(({ task }) => task.id) }
}

async function end(child: ChildProcess): Promise<void> {
  const exited = new Promise(resolve => child.once('exit', resolve))
  child.kill('SIGKILL')
  await exited
}

test('no worker ever gets a job whose turn it cannot find', { timeout: 900_000 }, () =>
  // Nothing here is about leases.
  withPlatform({ workers: 2, env: { LEASE_MS: '60000' } }, async platform => {
    const count = 2_000
    for (let sent = 0; sent < count; sent += 20)
      await Promise.all(Array.from({ length: 20 }, () => platform.client.createTask({ agent: 'echo', input: 'x' })))
    const pending = "select from turns where status in ('queued', 'running') limit 1"
    await until('every turn has ended', async () => (await platform.pg.query(pending)).rowCount === 0, { timeoutMs: 120_000 })
    const { rows } = await platform.pg.query(
      'select status, count(*)::int, max(attempt) as attempts, max(dispatch) as dispatches from turns group by status',
    )
    // A job that came too early would have been dropped, and sent again by the reconciler.
    expect(rows).toEqual([{ status: 'completed', count, attempts: 1, dispatches: 1 }])
  }),
)
