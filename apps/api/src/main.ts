/** `npm run api`: one API process, until a signal stops it. With the argument `migrate`: migrates the database and exits. */
import { configurationExitCode, InvalidEnvironment } from '@rivulet/runtime/environment'
import { describeTracing, openTelemetryTracer } from '@rivulet/runtime/open-telemetry'
import { pino } from 'pino'
import { startApi } from './api.ts'
import { readConfig, readDatabaseUrl } from './config.ts'
import { migrate } from './store/connection/migrate.ts'
import { describeError } from './telemetry/log-error.ts'

// Not awaited here, because then this file could only be a module.
start().catch(exitWith)

async function start(): Promise<void> {
  if (process.argv[2] === 'migrate') await migrate(readDatabaseUrl(process.env), { onBlocked: reason => console.error(reason) })
  else await run()
}

async function run(): Promise<void> {
  const config = readConfig(process.env)
  const logger = pino({
    level: config.logLevel,
    redact: ['req.headers.authorization'],
    serializers: { req: describeRequest, err: describeError },
  })
  let stop = (): void => process.exit(1)
  // The parent process has exited: also while this one starts, which lasts until the databases respond.
  process.once('disconnect', () => stop())
  // It may have exited while this program was loaded; a process without a parent's channel has no `connected`.
  if (process.connected === false) stop()
  const api = await startApi(config, logger, { tracer: openTelemetryTracer() })
  logger.info({ url: api.url, ...(api.internalUrl && { internalUrl: api.internalUrl }) }, 'api is listening')
  logger.info(describeTracing())
  if (config.isOpen) logger.info('no key is required; only this machine can call')
  stop = () => void api.close().then(() => process.exit(0))
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, stop)
  api.refused.catch(exitWith)
}

function exitWith(error: unknown): never {
  console.error(error instanceof Error ? error.message : error)
  process.exit(error instanceof InvalidEnvironment ? configurationExitCode : 1)
}

/** Without keys and passwords. */
function describeRequest({ method, url }: { method: string; url: string }) {
  return { method, url: url.replace(/([?&]token=)[^&]*/g, '$1[redacted]') }
}
