/** `npm run worker [files]`: one worker process with the agents of these files, or with the example agents where they are enabled, until SIGTERM. */
import { type ChildProcess, spawn } from 'node:child_process'
import { openTelemetryTracer } from '@rivulet/runtime/open-telemetry'
import { type AgentDefinition, createWorker, type Logger, type WorkerObserver } from '@rivulet/worker'
import { pino } from 'pino'
import { loadAgents } from './agent-file.ts'
import { type Config, readConfig } from './config.ts'
import { createWorkerMetrics } from './metrics.ts'
import { serveRegistry } from './metrics-server.ts'

try {
  const config = readConfig(process.env)
  const log = pino({ level: config.LOG_LEVEL })
  const files = process.argv.length > 2 ? process.argv.slice(2) : config.AGENT_FILES
  // To collect traces, start this process with an OpenTelemetry SDK; without one the spans are discarded.
  const openTelemetry = await import('@opentelemetry/api').catch(() => null)
  const worker = createWorker({
    agents: await agentsOf(config, files),
    redisUrl: config.REDIS_URL,
    redisPrefix: config.REDIS_PREFIX,
    url: config.RIVULET_URL,
    key: config.RIVULET_WORKER_KEY,
    concurrency: config.WORKER_CONCURRENCY,
    heartbeatMs: config.HEARTBEAT_MS,
    watchdogMs: config.WATCHDOG_MS || null,
    backpressureMs: config.BACKPRESSURE_MS,
    log,
    ...(openTelemetry && { tracer: openTelemetryTracer(openTelemetry) }),
    observer: await serveMetrics(config, log),
    isolation: { turn: config.RIVULET_ISOLATED_TURN, start: startAgain, maxTurns: config.MAX_ISOLATED_TURNS },
  })
  // 'disconnect': the parent process has exited. A second call has no effect, because the worker is already stopping.
  for (const signal of ['SIGTERM', 'SIGINT', 'disconnect']) process.on(signal, () => void worker.stop().then(() => process.exit(0)))
  worker.refused.catch(exitWith)
} catch (error) {
  exitWith(error)
}

/** The process of one turn has none: its port is taken. */
async function serveMetrics(config: Config, log: Logger): Promise<WorkerObserver | undefined> {
  const { WORKER_METRICS_PORT: port, WORKER_METRICS_HOST: host, RIVULET_ISOLATED_TURN: turn } = config
  if (port === undefined || turn !== undefined) return undefined
  const { registry, observer } = createWorkerMetrics(config.WORKER_CONCURRENCY)
  const url = await serveRegistry(registry, { host, port })
  log.info({ url }, 'serving metrics')
  return observer
}

function exitWith(error: unknown): never {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}

async function agentsOf(config: Config, files: readonly string[]): Promise<AgentDefinition[]> {
  if (files.length > 0) return loadAgents(files)
  if (config.RIVULET_EXAMPLE_AGENTS === 'off') {
    const how = 'name files with agents, on the command line or in AGENT_FILES, or set RIVULET_EXAMPLE_AGENTS=on for the example agents'
    throw new Error(`This worker has no agents: ${how}`)
  }
  return (await import('./example-agents.ts')).exampleAgents(config)
}

/** This program once more, for one turn. */
function startAgain(turn: string): ChildProcess {
  const env = { ...process.env, RIVULET_ISOLATED_TURN: turn }
  return spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], { env, stdio: ['ignore', 'inherit', 'inherit'] })
}
