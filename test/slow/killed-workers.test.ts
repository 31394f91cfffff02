/** Workers that die under their turns, one after the other. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { modes, repeat, rest, say, scripted, seededRandom, start } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { untilNothingIsPending } from '../support/platform/until-nothing-is-pending.ts'

let platform: Platform

beforeAll(async () => {
  // A turn whose worker died gets a process of its own: a few of those at a time are enough. The lease is long enough for a machine that is
  // busy with other tests: a turn is to be tried again because its worker died, not because it was slow.
  platform = await startPlatform({ workers: 4, env: { LEASE_MS: '6000', WORKER_CONCURRENCY: '3' } })
})
afterAll(() => platform.close())

test.each([1, 2, 3, 4, 5])(
  'workers that are killed at random leave no task unfinished and no row doubled (seed %i)',
  { timeout: 120_000 },
  async seed => {
    const random = seededRandom(seed)
    const tasks = await Promise.all(
      Array.from({ length: 24 }, async (_, i) => {
        const mode = modes[i % modes.length]
        const steps = [start(0, { type: 'text', text: '' }), repeat(10, say(0, `${i}.`), rest(20 + Math.floor(random() * 60)))]
        return (await platform.client.createTask(scripted(steps, { input: `task ${i}` }, mode))).task.id
      }),
    )
    const replacements: Promise<unknown>[] = []
    for (let kill = 0; kill < 3; kill += 1) {
      await sleep(100 + random() * 600)
      const alive = platform.workers.filter(({ hasExited, lines }) => !hasExited() && lines.some(({ msg }) => msg === 'worker is ready'))
      await alive[Math.floor(random() * alive.length)]?.kill()
      replacements.push(platform.startWorker())
    }
    await Promise.all(replacements)
    await untilNothingIsPending(platform)

    for (const id of tasks) expect(await faultsOf(platform, id)).toEqual([])
    const { rows } = await platform.pg.query('select task, status, deaths, failures from turns where task = any($1)', [tasks])
    // A turn that lost three workers has failed for that reason; no other turn has.
    for (const { status, deaths, failures } of rows)
      expect({ status, failures }).toEqual({ status: deaths < 3 ? 'completed' : 'failed', failures: 0 })
    for (const [i, id] of tasks.entries()) {
      const [input, reply] = await platform.client.messages(id)
      expect(input?.content).toMatchObject({ text: `task ${i}` })
      if (reply?.status === 'complete') expect(reply.content).toMatchObject({ text: `${i}.`.repeat(10) })
    }
  },
)
