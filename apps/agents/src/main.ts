/** `npm run worker [files]`: one worker process with the agents of these files, else with the example agents, until it is told to stop. */
import { type ChildProcess, spawn } from 'node:child_process'
import { openTelemetryTracer } from '@rivulet/protocol/open-telemetry'
import { type AgentDefinition, createWorker, type Logger, type WorkerObserver } from '@rivulet/worker'
import { pino } from 'pino'
import { loadAgents } from './agent-file.ts'
import { createAssistant } from './assistant.ts'
import { createCited } from './cited.ts'
import { type Config, readConfig } from './config.ts'
import { echo } from './echo.ts'
import { createWorkerMetrics } from './metrics.ts'
import { serveRegistry } from './metrics-server.ts'
import { createResearcher } from './researcher.ts'
import { createScripted } from './scripted.ts'

try {
  const config = readConfig(process.env)
  const log = pino({ level: config.LOG_LEVEL })
  const files = process.argv.length > 2 ? process.argv.slice(2) : config.AGENT_FILES
  // Whoever wants traces starts this process with an SDK; without one these go nowhere.
  const openTelemetry = await import('@opentelemetry/api').catch(() => null)
  const worker = createWorker({
    agents: files.length > 0 ? await loadAgents(files) : exampleAgents(config),
    redisUrl: config.REDIS_URL,
    redisPrefix: config.REDIS_PREFIX,
    url: config.RIVULET_URL,
    key: config.RIVULET_WORKER_KEY,
    concurrency: config.WORKER_CONCURRENCY,
    heartbeatMs: config.HEARTBEAT_MS,
    backpressureMs: config.BACKPRESSURE_MS,
    log,
    ...(openTelemetry && { tracer: openTelemetryTracer(openTelemetry) }),
    observer: await serveMetrics(config, log),
    isolation: { turn: config.RIVULET_ISOLATED_TURN, start: startAgain },
  })
  // 'disconnect': whoever started this process is gone. A second call finds the worker stopping already.
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
  log.info({ url }, 'metrics are served')
  return observer
}

function exitWith(error: unknown): never {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}

function exampleAgents(config: Config): AgentDefinition[] {
  const provider = { baseUrl: config.OPENAI_BASE_URL, apiKey: config.OPENAI_API_KEY, model: config.OPENAI_MODEL }
  const scripted = createScripted({ allowExit: config.RIVULET_ALLOW_EXIT === '1' })
  return [echo, scripted, createAssistant(provider), createCited(provider), createResearcher(provider)]
}

/** This program once more, for one turn. */
function startAgain(turn: string): ChildProcess {
  const env = { ...process.env, RIVULET_ISOLATED_TURN: turn }
  return spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], { env, stdio: ['ignore', 'inherit', 'inherit'] })
}
