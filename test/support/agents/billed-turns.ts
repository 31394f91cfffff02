/** Turns that crash, fail, are refused and are canceled, and what their provider has billed for them. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { UsageReport } from '@rivulet/contract/usage'
import { sumUsage, type Usage } from '@rivulet/protocol'
import { onTestFinished } from 'vitest'
import type { Platform } from '../platform/platform.ts'
import type { PlatformProcess } from '../platform/platform-process.ts'
import { until } from '../until.ts'
import type { BilledEnd } from './billed-agent.ts'

const billedAgentFile = fileURLToPath(new URL('./billed-agent.ts', import.meta.url))

/** So many tasks at a time. */
const waveSize = 40
const patience = { timeoutMs: 180_000 }

/** One turn each, because a turn that kills its worker would also kill those beside it, between a response and the report of it. */
export function startBilledWorker({ startWorker }: Platform): Promise<PlatformProcess> {
  return startWorker({ AGENT_FILES: billedAgentFile, WORKER_CONCURRENCY: '1' })
}

/** Resolves when every turn has ended, with the ids of their tasks. Workers that crash are replaced, as a supervisor would. */
export async function playBilledTurns(platform: Platform, plans: readonly BilledEnd[][], bill: string): Promise<string[]> {
  const tasks: string[] = []
  let isOver = false
  const replacing = replaceWorkers(platform, () => isOver)
  try {
    for (let at = 0; at < plans.length; at += waveSize)
      tasks.push(...(await Promise.all(plans.slice(at, at + waveSize).map((ends, i) => playOne(platform, { ends, bill, number: at + i })))))
  } finally {
    isOver = true
    await replacing
  }
  return tasks
}

type Billed = { ends: BilledEnd[]; bill: string; number: number }

async function playOne(platform: Platform, { ends, bill, number }: Billed): Promise<string> {
  const params = { bill, rounds: 1 + (number % 3), ends }
  const { task } = await platform.client.createTask({ agent: 'billed', input: 'go', params, concurrencyKey: `customer ${number % 4}` })
  await endOf(platform, task.id, ends)
  return task.id
}

async function endOf(platform: Platform, task: string, ends: readonly BilledEnd[]): Promise<void> {
  if (ends.some(end => end === 'hang' || end === 'slow')) {
    await until('it waits to be canceled', async () => (await platform.client.messages(task)).length > 2, patience)
    await platform.client.post(`/v1/tasks/${task}/cancel`, {})
  }
  await platform.client.waitForEnd(task, patience)
}

async function replaceWorkers(platform: Platform, isOver: () => boolean): Promise<void> {
  const replaced = new Set(platform.workers.filter(({ hasExited }) => hasExited()))
  const look = async () => {
    for (const worker of platform.workers) {
      if (!worker.hasExited() || replaced.has(worker)) continue
      replaced.add(worker)
      await startBilledWorker(platform)
    }
    return isOver()
  }
  await until('the turns are over', look, { timeoutMs: 3_600_000, intervalMs: 200 })
}

type Bill = { path: string; total(): Usage }

export function openBill(): Bill {
  const folder = mkdtempSync(join(tmpdir(), 'bill-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'bill.jsonl')
  return {
    path,
    total: () =>
      sumUsage(
        readFileSync(path, 'utf8')
          .trim()
          .split('\n')
          .map(line => JSON.parse(line)),
      ) ?? {},
  }
}

export async function reportOf({ client }: Platform, query = 'by=model'): Promise<UsageReport> {
  return (await client.get<UsageReport>(`/v1/usage?${query}`)).body
}
