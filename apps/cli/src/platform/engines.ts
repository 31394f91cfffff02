/** The engines of a run: the configured servers, or embedded ones. */
import { type Engine, type EngineOptions, startPostgres, startRedis } from '@rivulet/engines'

export type RunOptions = {
  environment: Record<string, string | undefined>
  dataDir: string
  redisUrl?: string | undefined
  databaseUrl?: string | undefined
  write: (line: string) => void
}

export async function openRedis(options: RunOptions): Promise<Engine> {
  return open('redis', startRedis, options.redisUrl, options)
}

export async function openPostgres(options: RunOptions): Promise<Engine> {
  return open('postgres', startPostgres, options.databaseUrl, options)
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
