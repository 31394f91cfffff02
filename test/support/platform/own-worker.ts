/** A worker in the test's own process, for agents whose insides a test wants to see: when their signal fires, what they hold on to. */
import { type AgentDefinition, createWorker, type Logger, type Worker, type WorkerOptions } from '@rivulet/worker'
import { inject, onTestFinished } from 'vitest'
import { until } from '../until.ts'
import type { Platform } from './platform.ts'

export type OwnWorkerOptions = Partial<Pick<WorkerOptions, 'redisUrl' | 'transport' | 'url' | 'heartbeatMs' | 'concurrency' | 'key'>> & {
  /** Of a caller that may list agents, for a platform with keys. */
  callerKey?: string
}

/** Ready when this resolves; stopped when the test is over. Without a watchdog: it would end the tests. */
export async function startOwnWorker(
  { url, client, keys }: Platform,
  agents: readonly AgentDefinition[],
  { callerKey, ...options }: OwnWorkerOptions = {},
): Promise<Worker> {
  const headers = callerKey === undefined ? {} : { authorization: `Bearer ${callerKey}` }
  const redisPrefix = keys.queuePrefix.slice(1, -':queue}'.length)
  const worker = createWorker({
    ...{ agents, url, redisPrefix, redisUrl: inject('redisUrl'), heartbeatMs: 500, watchdogMs: null, drainMs: 0, log: silent },
    // As the worker processes of the platform.
    transport: process.env.RIVULET_TRANSPORT === 'http' ? 'http' : 'redis',
    ...options,
  })
  onTestFinished(() => worker.stop())
  await until('the agents of the test are known', async () => {
    // A test that has computed for long finds its connection closed by the server once.
    const reply = await client.get<{ data: { name: string; workers: number }[] }>('/v1/agents', headers).catch(() => null)
    const body = reply?.body ?? { data: [] }
    return agents.every(({ name }) => body.data.some(known => known.name === name && known.workers > 0))
  })
  return worker
}

const silent: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => silent }

function ignore(): void {}
