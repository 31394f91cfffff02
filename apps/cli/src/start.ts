/**
 * Everything in one terminal: engines, API and a worker with the example agents. What dies is started again; what is stopped is stopped in
 * order, the engines last.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from '@rivulet/engines'
import { openPostgres, openRedis, type RunOptions } from './engines.ts'
import { type Program, programs, programsOf } from './programs.ts'
import { watchSources } from './source-watch.ts'
import { type SupervisedProcess, superviseProcess } from './supervised-process.ts'

export type StartOptions = RunOptions & {
  host: string
  port: number
  key?: string | undefined
  /** Restart what a change of the sources touches. */
  isWatching: boolean
}

export type Started = { url: string /** Resolves when a task would be run. */; ready: Promise<void>; stop(): Promise<void> }

export async function start(options: StartOptions): Promise<Started> {
  const { environment, host, port, key, isWatching, write } = options
  const engines: Engine[] = []
  const stopping = new AbortController()
  let stopped: Promise<void> | null = null
  try {
    engines.push(await openRedis(options))
    engines.push(await openPostgres(options))
  } catch (error) {
    await stopEngines()
    throw error
  }
  const [redis, postgres] = engines
  const url = `http://${host === '0.0.0.0' ? '127.0.0.1' : host}:${port}`
  const shared = { ...environment, REDIS_URL: redis?.url, DATABASE_URL: postgres?.url, HOST: host, PORT: String(port), RIVULET_URL: url }
  const running: Record<Program, SupervisedProcess> = { api: supervise('api'), worker: supervise('worker') }
  const unwatch = isWatching ? watchSources(restartTouched) : () => {}
  return { url, ready: untilReady(), stop }

  function supervise(name: Program): SupervisedProcess {
    return superviseProcess({ name, entry: programs[name], environment: shared, write, isWanted: () => !stopping.signal.aborted })
  }

  function stop(): Promise<void> {
    stopped ??= windDown()
    return stopped
  }

  async function windDown(): Promise<void> {
    stopping.abort()
    unwatch()
    await running.worker.stop()
    await running.api.stop()
    await stopEngines()
  }

  async function stopEngines(): Promise<void> {
    for (const engine of engines.reverse()) await engine.stop()
  }

  function restartTouched(files: string[]): void {
    for (const name of new Set(files.flatMap(programsOf))) {
      write(`${name.padEnd(6)} changed; restarting`)
      void running[name].restart()
    }
  }

  async function untilReady(): Promise<void> {
    while (!stopping.signal.aborted && !(await hasWorkers())) await sleep(100)
  }

  async function hasWorkers(): Promise<boolean> {
    try {
      const response = await fetch(`${url}/v1/agents`, { headers: key ? { authorization: `Bearer ${key}` } : {} })
      const { data } = (await response.json()) as { data: { workers: number }[] }
      return data.some(agent => agent.workers > 0)
    } catch {
      return false
    }
  }
}
