/** The environment of `npm start`, read once and checked whole. Programs that it starts check their own. */
import { z } from 'zod'

const schema = z.object({
  HOST: z.string().default('127.0.0.1'),
  PORT: z.coerce.number().int().min(1).max(65_535).default(4000),
  DATA_DIR: z.string().min(1).default('.rivulet'),
  REDIS_URL: z.string().optional(),
  DATABASE_URL: z.string().optional(),
  RIVULET_KEY: z.string().optional(),
})

/** Throws one readable list of everything that is wrong. */
export function readConfig(environment: Record<string, string | undefined>) {
  const parsed = schema.safeParse(environment)
  if (!parsed.success) {
    const lines = parsed.error.issues.map(issue => `  ${issue.path.join('.')}: ${issue.message}`)
    throw new Error(`The environment does not fit:\n${lines.join('\n')}`)
  }
  const { HOST, PORT, DATA_DIR, REDIS_URL, DATABASE_URL, RIVULET_KEY } = parsed.data
  return {
    ...{ host: HOST, port: PORT, dataDir: DATA_DIR },
    redisUrl: REDIS_URL || undefined,
    databaseUrl: DATABASE_URL || undefined,
    key: RIVULET_KEY || undefined,
  }
}
