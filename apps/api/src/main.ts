/** `npm run api`: one API process, until it is told to stop. With `migrate` as its argument: brings the database up to date, and ends. */
import { pino } from 'pino'
import { startApi } from './api.ts'
import { readConfig, readDatabaseUrl } from './config.ts'
import { migrate } from './store/migrate.ts'

try {
  if (process.argv[2] === 'migrate') await migrate(readDatabaseUrl(process.env))
  else await run()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}

async function run(): Promise<void> {
  const config = readConfig(process.env)
  const logger = pino({ level: config.logLevel, redact: ['req.headers.authorization'] })
  const api = await startApi(config, logger)
  logger.info({ url: api.url }, 'api is listening')
  // 'disconnect': whoever started this process is gone.
  for (const signal of ['SIGTERM', 'SIGINT', 'disconnect']) process.on(signal, () => void api.close().then(() => process.exit(0)))
}
