/** The engines of a run: the configured servers, or embedded ones. */
import { type Engine, type EngineOptions, startPostgres, startRedis } from '@rivulet/engines'

export type RunOptions = {
  environment: Record<string, string | undefined>
  dataDir: string
  redisUrl?: string | undefined
  databaseUrl?: string | undefined
  write: (line: string) => void
}

export async function openPostgres(options: RunOptions): Promise<Engine> {
  return open('postgres', startPostgres, options.databaseUrl, options)
}

/** Both start at the same time. If one cannot, the other is stopped. */
export async function openEngines(options: RunOptions): Promise<[redis: Engine, postgres: Engine]> {
  const opening = [open('redis', startRedis, options.redisUrl, options), openPostgres(options)] as const
  try {
    return await Promise.all(opening)
  } catch (error) {
    for (const outcome of await Promise.allSettled(opening)) if (outcome.status === 'fulfilled') await outcome.value.stop()
    throw error
  }
}

async function open(
  name: string,
  startEngine: (options: EngineOptions) => Promise<Engine>,
  url: string | undefined,
  { dataDir, environment, write }: RunOptions,
): Promise<Engine> {
  const engine = await startEngine({ dataDir, url, path: environment.PATH })
  write(`${name.padEnd(8)} ${engine.description}`)
  return engine
}
