/**
 * Everything in one terminal: engines, API and a worker with the example agents, or with those of the given files. A program that dies is restarted;
 * what is stopped is stopped in order, the engines last.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@rivulet/client'
import type { Engine } from '@rivulet/engines'
import { RivuletError } from '@rivulet/protocol'
import { openPostgres, openRedis, type RunOptions } from './engines.ts'
import { listeningUrl } from './listening-url.ts'
import { environmentFor } from './program-environment.ts'
import { argumentsOf, isCheckout, type Program, programsOf, root } from './programs.ts'
import { forgetRunning, noteRunning } from './running-note.ts'
import { foldersOf, watchSources } from './source-watch.ts'
import { type SupervisedProcess, superviseProcess } from './supervised-process.ts'

export type PlatformOptions = RunOptions & {
  host: string
  port: number
  key?: string | undefined
  /** Files whose agents the worker runs in place of the examples. */
  agentFiles: readonly string[]
  /** Restart what a change of the sources touches. */
  isWatching: boolean
  /** A line that a program wrote. */
  hear: (program: Program, line: string) => void
}

export type Platform = {
  url: string
  /** An agent that would run a task; null when everything was stopped before. */
  ready: Promise<string | null>
  stop(): Promise<void>
}

export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const { environment, host, port, key, agentFiles, isWatching, dataDir, write, hear } = options
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
  const url = listeningUrl(host, port)
  // Where clients need a key, so do workers. Theirs opens `/internal` alone, because agents can read it.
  const hasKeys = Boolean(key || environment.KEY_PEPPER)
  const workerKey = environment.RIVULET_WORKER_KEY || (hasKeys ? randomBytes(32).toString('base64url') : undefined)
  const shared = {
    ...environment,
    ...{ REDIS_URL: redis?.url, DATABASE_URL: postgres?.url, HOST: host, PORT: String(port), RIVULET_URL: url },
    // A platform for one's own machine; files with agents come first.
    RIVULET_EXAMPLE_AGENTS: environment.RIVULET_EXAMPLE_AGENTS || 'on',
    RIVULET_WORKER_KEY: workerKey,
    // After a change of the sources, old turns are not worth a wait: they go on in the new worker.
    WORKER_DRAIN_MS: environment.WORKER_DRAIN_MS || (isWatching ? '1000' : undefined),
  }
  const running: Record<Program, SupervisedProcess> = { api: supervise('api', []), worker: supervise('worker', agentFiles) }
  const unwatch = isWatching ? [...watchCheckout(), ...watchAgents()] : []
  noteRunning(dataDir, {
    ...{ pid: process.pid, url, redisUrl: redis?.url ?? '' },
    ...(postgres && { databaseUrl: postgres.url }),
    ...(workerKey && { workerKey }),
  })
  return { url, ready: untilReady(), stop }

  function supervise(name: Program, args: readonly string[]): SupervisedProcess {
    const isWanted = () => !stopping.signal.aborted
    const own = environmentFor(name, shared)
    // Longer than a worker lets its turns finish.
    const stopMs = 20_000 + (Number(own.WORKER_DRAIN_MS) || 30_000)
    return superviseProcess({
      name,
      args: argumentsOf(name, args),
      environment: own,
      write,
      hear: line => hear(name, line),
      isWanted,
      stopMs,
    })
  }

  function watchCheckout(): (() => void)[] {
    return isCheckout ? [watchSources([`${root}apps`, `${root}packages`], restartTouched)] : []
  }

  function watchAgents(): (() => void)[] {
    return agentFiles.length > 0 ? [watchSources(foldersOf(agentFiles), () => restart('worker'))] : []
  }

  function stop(): Promise<void> {
    stopped ??= windDown()
    return stopped
  }

  async function windDown(): Promise<void> {
    stopping.abort()
    for (const stopWatching of unwatch) stopWatching()
    forgetRunning(dataDir, process.pid)
    await running.worker.stop()
    await running.api.stop()
    await stopEngines()
  }

  async function stopEngines(): Promise<void> {
    for (const engine of engines.reverse()) await engine.stop()
  }

  function restartTouched(files: string[]): void {
    for (const name of new Set(files.flatMap(programsOf))) restart(name)
  }

  function restart(name: Program): void {
    write(`${name.padEnd(6)} changed; restarting`)
    void running[name].restart()
  }

  async function untilReady(): Promise<string | null> {
    for (;;) {
      if (stopping.signal.aborted) return null
      const agent = await findAgent()
      if (agent) return agent
      await sleep(100)
    }
  }

  async function findAgent(): Promise<string | null> {
    try {
      const agents = await createClient({ url, key, maxRetries: 0 }).agents.list()
      return agents.find(({ workers }) => workers > 0)?.name ?? null
    } catch (error) {
      // It has keys, and none of them is ours.
      return error instanceof RivuletError && error.code === 'unauthorized' ? 'echo' : null
    }
  }
}
