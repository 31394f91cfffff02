/** A worker process: its configuration, log, metrics, traces and end. `main.ts` runs it with agents of files, `rivulet build` with agents of its bundle. */
import { type ChildProcess, spawn } from 'node:child_process'
import { configurationExitCode, InvalidEnvironment } from '@rivulet/runtime/environment'
import { describeTracing, openTelemetryTracer } from '@rivulet/runtime/open-telemetry'
import { type AgentDefinition, createWorker, type Logger, type WorkerObserver } from '@rivulet/worker'
import { pino } from 'pino'
import { UnusableFile } from './agent-file.ts'
import { type Config, readConfig } from './config.ts'
import { createWorkerMetrics } from './metrics.ts'
import { serveRegistry } from './metrics-server.ts'

/**
 * Runs until SIGTERM. A process that cannot start, or whose key the API rejects, exits with 1 and the reason; with 78 if its environment is invalid or a
 * file exports no agents.
 */
export async function runWorker(environment: NodeJS.ProcessEnv, agentsFor: (config: Config) => Promise<AgentDefinition[]>): Promise<void> {
  let stop = (): void => process.exit(1)
  // The parent process has exited: also while this one loads its agents.
  process.once('disconnect', () => stop())
  // It may have exited while this program was loaded; a process without a parent's channel has no `connected`.
  if (process.connected === false) stop()
  try {
    const config = readConfig(environment)
    const log = pino({ level: config.LOG_LEVEL })
    const worker = createWorker({
      agents: await agentsFor(config),
      transport: config.RIVULET_TRANSPORT,
      redisUrl: config.REDIS_URL,
      redisPrefix: config.REDIS_PREFIX,
      url: config.RIVULET_URL,
      key: config.RIVULET_WORKER_KEY,
      name: config.WORKER_NAME,
      version: config.WORKER_VERSION,
      concurrency: config.WORKER_CONCURRENCY,
      heartbeatMs: config.HEARTBEAT_MS,
      watchdogMs: config.WATCHDOG_MS || null,
      backpressureMs: config.BACKPRESSURE_MS,
      drainMs: config.WORKER_DRAIN_MS,
      log,
      tracer: openTelemetryTracer(),
      observer: await serveMetrics(config, log),
      isolation: {
        turnId: config.RIVULET_ISOLATED_TURN,
        start: turnId => startAgain(turnId, environment),
        maxTurns: config.MAX_ISOLATED_TURNS,
      },
    })
    log.info(describeTracing())
    // A second call has no effect, because the worker is already stopping.
    stop = () => void worker.stop().then(() => process.exit(0))
    for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, stop)
    worker.refused.catch(exitWith)
  } catch (error) {
    exitWith(error)
  }
}

/** The process of one turn has none: its port is taken. */
async function serveMetrics(config: Config, log: Logger): Promise<WorkerObserver | undefined> {
  const { WORKER_METRICS_PORT: port, WORKER_METRICS_HOST: host, RIVULET_ISOLATED_TURN: turnId } = config
  if (port === undefined || turnId !== undefined) return undefined
  const { registry, observer } = createWorkerMetrics(config.WORKER_CONCURRENCY)
  const url = await serveRegistry(registry, { host, port })
  log.info({ url }, 'serving metrics')
  return observer
}

function exitWith(error: unknown): never {
  console.error(error instanceof Error ? error.message : error)
  const isConfiguration = error instanceof UnusableFile || error instanceof InvalidEnvironment
  process.exit(isConfiguration ? configurationExitCode : 1)
}

/** This program once more, for one turn. Without the debugger, because its port is taken. */
function startAgain(turnId: string, environment: NodeJS.ProcessEnv): ChildProcess {
  const env = { ...environment, RIVULET_ISOLATED_TURN: turnId }
  const flags = process.execArgv.filter(flag => !flag.startsWith('--inspect'))
  return spawn(process.execPath, [...flags, ...process.argv.slice(1)], { env, stdio: ['ignore', 'inherit', 'inherit'] })
}
