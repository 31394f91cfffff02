/** A platform for the tests of a project: real engines, API and worker on a free port, with data in a temporary folder. */

import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AgentDefinition, createWorker, type Logger } from '@rivulet/worker'
import { type Platform, startPlatform, type WorkerPlace } from '../platform/platform.ts'

export type TestPlatform = { url: string; stop(): Promise<void> }

export type TestPlatformOptions = {
  /** Agents that run in the process of the test, where a test can look at what they do. */
  agents?: readonly AgentDefinition[]
  /** Files whose agents a process of their own runs, from the working folder. Without `agents` and files it runs the example agents. */
  agentFiles?: readonly string[]
  /** For every process. Its servers are left alone: a test has its own. */
  environment: Record<string, string | undefined>
  /** How long it may take until an agent is there. Default 60,000. */
  readyMs?: number
}

/** Resolves when a task would be run; rejects with what the processes said when that takes too long. */
export async function startTestPlatform({
  agents,
  agentFiles = [],
  environment,
  readyMs = 60_000,
}: TestPlatformOptions): Promise<TestPlatform> {
  const dataDir = mkdtempSync(join(tmpdir(), 'rivulet-'))
  // Postgres runs as another user when this is root.
  chmodSync(dataDir, 0o755)
  const lines: string[] = []
  const log = linesLogger(line => lines.push(line))
  const platform = await start().catch(error => {
    removeData()
    throw error
  })
  const impatience = setTimeout(() => void stop(), readyMs)
  const agent = await Promise.race([platform.ready, platform.failed.catch(stop)])
  clearTimeout(impatience)
  if (!agent) throw new Error(`No agent was ready after ${readyMs} ms, or its file cannot be loaded:\n${lines.slice(-30).join('\n')}`)
  return { url: platform.url, stop }

  async function start(): Promise<Platform> {
    const { REDIS_URL: _, DATABASE_URL: __, RIVULET_KEY: ___, RIVULET_WORKER_KEY: ____, ...own } = environment
    return startPlatform({
      ...{ host: '127.0.0.1', port: await freePort(), dataDir, environment: own, agentFiles, isWatching: false, inspectPort: null },
      ...(agents && { startWorker: (place: WorkerPlace) => createWorker({ ...place, agents, log, drainMs: 1_000, watchdogMs: null }) }),
      write: line => lines.push(line),
      hear: (program, line) => lines.push(`${program} ${line}`),
    })
  }

  async function stop(): Promise<void> {
    await platform.stop()
    removeData()
  }

  function removeData(): void {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}

/** What the worker in this process would log, for the message of a start that fails. */
function linesLogger(write: (line: string) => void): Logger {
  const line = (fields: object, message = '') => write(`worker ${message} ${JSON.stringify(fields)}`)
  const logger: Logger = { debug: () => {}, info: line, warn: line, error: line, child: () => logger }
  return logger
}
