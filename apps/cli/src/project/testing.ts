/** A platform for the tests of a project: real engines, API and worker on a free port, with data in a temporary folder. */
import { type AgentDefinition, createWorker, type Logger } from '@rivulet/worker'
import type { WorkerPlace } from '../platform/platform.ts'
import { startTemporaryPlatform } from '../platform/temporary-platform.ts'

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
  const ownLines: string[] = []
  const log = linesLogger(line => ownLines.push(line))
  const platform = await startTemporaryPlatform({
    ...{ environment, agentFiles },
    ...(agents && { startWorker: (place: WorkerPlace) => createWorker({ ...place, agents, log, drainMs: 1_000, watchdogMs: null }) }),
  })
  const { url, lines, ready, failed, stop } = platform
  const impatience = setTimeout(() => void stop(), readyMs)
  const agent = await Promise.race([ready, failed.catch(stop)])
  clearTimeout(impatience)
  const reason = [...lines, ...ownLines].slice(-30).join('\n')
  if (!agent) throw new Error(`No agent was ready after ${readyMs} ms, or its file cannot be loaded:\n${reason}`)
  return { url, stop }
}

/** What the worker in this process would log, for the message of a start that fails. */
function linesLogger(write: (line: string) => void): Logger {
  const line = (fields: object, message = '') => write(`worker ${message} ${JSON.stringify(fields)}`)
  const logger: Logger = { debug: () => {}, info: line, warn: line, error: line, child: () => logger }
  return logger
}
