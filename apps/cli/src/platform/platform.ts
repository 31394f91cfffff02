/**
 * Everything in one terminal: engines, API and a worker with the example agents, or with those of the given files. A program that dies is restarted;
 * what is stopped is stopped in order, the engines last.
 */

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@rivulet/client'
import { keepSecretsKey } from '@rivulet/engines'
import { RivuletError } from '@rivulet/protocol'
import { superviseWorkers } from './agents/agent-workers.ts'
import { openEngines, type RunOptions } from './engines.ts'
import { listeningUrl } from './listening-url.ts'
import { hasKeys, platformSettings } from './platform-settings.ts'
import { environmentFor, requireValidEnvironment } from './program-environment.ts'
import { argumentsOf, isCheckout, type Program, programsOf, root } from './programs.ts'
import { forgetRunning, noteRunning } from './running-note.ts'
import { foldersOf, watchSources } from './source-watch.ts'
import { reloadDrainMs, stopMsFor } from './stop-time.ts'
import { type ProcessSpec, type SupervisedProcess, superviseProcess, waitsForChange } from './supervised-process.ts'

export type PlatformOptions = RunOptions & {
  host: string
  port: number
  key?: string | undefined
  /** Files whose agents the worker runs in place of the examples. */
  agentFiles: readonly string[]
  /** Runs agents in this process, in place of the worker's. */
  startWorker?: ((place: WorkerPlace) => OwnWorker) | undefined
  /** Restart what a change of the sources touches. */
  isWatching: boolean
  /** The port for a debugger of the worker; null: none. */
  inspectPort: number | null
  /** A line that a program wrote. */
  hear: (program: Program, line: string) => void
}

/** What a worker needs to reach the platform. */
export type WorkerPlace = { redisUrl: string; url: string; key: string | undefined }

type OwnWorker = { refused: Promise<never>; stop(): Promise<void> }

export type Platform = {
  url: string
  /** An agent that would run a task; null when everything was stopped before. */
  ready: Promise<string | null>
  /** Rejects when the worker cannot run its agents and no change of a file is waited for. */
  failed: Promise<never>
  stop(): Promise<void>
}

const unusable: Record<Program, string> = {
  api: 'The API cannot start, for the reason above',
  worker: 'The worker cannot load its agents, for the reason above; with rivulet dev it tries again when a file changes',
}

/** A turn at a breakpoint keeps its lease, and does not count as blocked. */
function timeToThink({ LEASE_MS }: RunOptions['environment']): Record<string, string> {
  return { LEASE_MS: String(Math.max(Number(LEASE_MS) || 0, 600_000)), WATCHDOG_MS: '0' }
}

export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const { environment, host, port, key, agentFiles, startWorker, isWatching, inspectPort, dataDir, write, hear } = options
  const stopping = new AbortController()
  let stopped: Promise<void> | null = null
  const url = listeningUrl(host, port)
  // Where clients need a key, so do workers. Theirs opens `/internal` alone, because agents can read it.
  const workerKey = environment.RIVULET_WORKER_KEY || (hasKeys(environment) ? randomBytes(32).toString('base64url') : undefined)
  const settings = {
    ...environment,
    ...{ HOST: host, PORT: String(port), RIVULET_URL: url },
    ...platformSettings(environment, host),
    RIVULET_WORKER_KEY: workerKey,
    WORKER_DRAIN_MS: isWatching ? reloadDrainMs(environment) : environment.WORKER_DRAIN_MS,
    ...(inspectPort !== null && timeToThink(environment)),
  }
  for (const program of ['api', 'worker'] as const) requireValidEnvironment(program, settings)
  const [redis, postgres] = await openEngines(options)
  // Our own database has its own key, so that secrets work without a setting.
  const secretsKey = environment.SECRETS_KEY || (options.databaseUrl ? undefined : keepSecretsKey(dataDir))
  const shared = { ...settings, REDIS_URL: redis.url, DATABASE_URL: postgres.url, SECRETS_KEY: secretsKey }
  let fail: (error: Error) => void = () => {}
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  failed.catch(() => {})
  const running: Record<Program, SupervisedProcess> = {
    api: superviseProcess({ ...specOf('api'), args: argumentsOf('api') }),
    worker: worker(),
  }
  const unwatch = isWatching ? [...watchCheckout(), ...watchAgents()] : []
  noteRunning(dataDir, {
    ...{ pid: process.pid, url, redisUrl: redis.url, databaseUrl: postgres.url },
    ...(workerKey && { workerKey }),
  })
  return { url, ready: untilReady(), failed, stop }

  function worker(): SupervisedProcess {
    const nodeOptions = inspectPort === null ? [] : [`--inspect=127.0.0.1:${inspectPort}`]
    if (!startWorker) return superviseWorkers({ ...specOf('worker'), files: agentFiles, nodeOptions })
    const { refused, stop } = startWorker({ redisUrl: redis.url, url, key: workerKey })
    refused.catch(fail)
    return { restart: () => {}, stop }
  }

  function specOf(name: Program): Omit<ProcessSpec, 'args'> {
    const own = environmentFor(name, shared)
    return {
      name,
      environment: own,
      write,
      hear: line => hear(name, line),
      onUnusable: () => (isWatching && name === 'worker' ? write(waitsForChange) : fail(new Error(unusable[name]))),
      isWanted: () => !stopping.signal.aborted,
      stopMs: stopMsFor(own, name === 'worker' && inspectPort !== null),
    }
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
    await postgres.stop()
    await redis.stop()
  }

  function restartTouched(files: string[]): void {
    for (const name of new Set(files.flatMap(programsOf))) restart(name)
  }

  function restart(name: Program): void {
    write(`${name.padEnd(6)} changed; restarting`)
    running[name].restart()
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
