/** Rivulet: tasks over HTTP, a worker that runs them, Redis, and an API process that serves the viewers. */
import { randomUUID } from 'node:crypto'
import { until } from '../../test/support/until.ts'
import type { Contestant, Prepared, Start, World } from '../contestant.ts'
import { requestFor, requestForMany } from '../crowd.ts'
import { familyOf } from '../measure/cpu.ts'
import type { Plan } from '../measure/speech.ts'
import { authorization, type Platform, startPlatform } from '../platform.ts'

export const rivulet: Start = { name: 'Rivulet', start }

/** How many tasks start together, because ten thousand claims at once would be another workload. */
const atATime = 200
const patience = { timeoutMs: 300_000, intervalMs: 10 }

async function start(world: World): Promise<Contestant> {
  const platform = await startPlatform(world, { concurrency: 1_000 })
  return contestantOf(platform, world)
}

export function contestantOf(platform: Platform, { redisPid, postgresPid }: World): Contestant {
  return {
    name: rivulet.name,
    pids: {
      server: () => platform.apis.map(({ pid }) => pid),
      speaker: () => platform.workers.map(({ pid }) => pid),
      ...(redisPid && { redis: () => [redisPid] }),
      ...(postgresPid && { postgres: () => familyOf(postgresPid) }),
    },
    prepare: plan => prepareTasks(platform, plan),
    runWhole: plan => runWhole(platform, plan),
    close: platform.close,
  }
}

/** Tasks whose turns have started and wait for `speak`. Their viewers are spread over the APIs. */
export async function prepareTasks(platform: Platform, plan: Plan): Promise<Prepared> {
  const { createTask, apis, workers } = platform
  const run = randomUUID()
  const tasks: string[] = []
  while (tasks.length < plan.tasks) {
    const first = tasks.length
    const more = Array.from({ length: Math.min(atATime, plan.tasks - first) }, (_, i) => createTask({ run, task: first + i, plan }))
    tasks.push(...(await Promise.all(more)))
    await until(`${tasks.length} turns have begun`, async () => (await count('waiting')) === tasks.length, patience)
  }
  return {
    requests: tasks.map((task, i) => requestFor(urlFor(i), `/v1/tasks/${task}/events?from=start`, authorization)),
    snapshot: tasks[0] ? requestFor(urlFor(0), `/v1/tasks/${tasks[0]}/events`, authorization) : undefined,
    together: () => requestForMany(urlFor(0), tasks, authorization),
    async speak() {
      await command('speak')
      await until('every delta is sent', async () => (await count('sentAll')) === plan.tasks, patience)
    },
    async clear() {
      await command('speak')
      await command('end')
      await until('every turn has ended', async () => (await unfinished(platform)) === 0, patience)
    },
  }

  function urlFor(i: number): string {
    return apis[i % apis.length]?.url ?? ''
  }

  async function command(what: string): Promise<void> {
    await Promise.all(workers.map(worker => worker.ask(what, run)))
  }

  async function count(what: string): Promise<number> {
    const counts = await Promise.all(workers.map(worker => worker.ask<number>(what, run)))
    return counts.reduce((sum, each) => sum + each, 0)
  }
}

/** Without a run that would wait for `speak`. The platform has as many connections for POSTs as are in flight. */
async function runWhole(platform: Platform, plan: Plan): Promise<void> {
  await Promise.all(Array.from({ length: plan.tasks }, (_, task) => platform.createTask({ task, plan })))
  await until('every turn has ended', async () => (await unfinished(platform)) === 0, { ...patience, intervalMs: 50 })
}

/** Turns of the platform that have not ended. */
async function unfinished({ pg }: Platform): Promise<number> {
  const { rows } = await pg.query<{ count: string }>("select count(*) from turns where status not in ('completed', 'failed', 'canceled')")
  return Number(rows[0]?.count)
}
