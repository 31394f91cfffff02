/** The environment of an API process, read once and checked whole. */
import { z } from 'zod'

const milliseconds = (byDefault: number) => z.coerce.number().int().min(1).default(byDefault)
const optionalText = z
  .string()
  .optional()
  .transform(value => value || undefined)

const schema = z.object({
  HOST: z.string().default('127.0.0.1'),
  PORT: z.coerce.number().int().min(0).max(65_535).default(4000),
  REDIS_URL: z.string().regex(/^rediss?:\/\//, 'must be a redis:// URL'),
  DATABASE_URL: z.string().regex(/^postgres(ql)?:\/\//, 'must be a postgres:// URL'),
  RIVULET_KEY: optionalText,
  RIVULET_WORKER_KEY: optionalText,
  MIGRATE: z.enum(['on', 'off']).default('on'),
  LEASE_MS: milliseconds(30_000),
  RECONCILE_MS: milliseconds(5_000),
  LOG_RETENTION_MS: milliseconds(600_000),
  REDIS_PREFIX: z
    .string()
    .regex(/^[\w:-]{1,64}$/)
    .default('rivulet'),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
})

export type Config = ReturnType<typeof readConfig>

type Environment = Record<string, string | undefined>

export function readDatabaseUrl(environment: Environment): string {
  return parse(schema.pick({ DATABASE_URL: true }), environment).DATABASE_URL
}

export function readConfig(environment: Environment) {
  const env = parse(schema, environment)
  return {
    host: env.HOST,
    port: env.PORT,
    redisUrl: env.REDIS_URL,
    databaseUrl: env.DATABASE_URL,
    key: env.RIVULET_KEY,
    workerKey: env.RIVULET_WORKER_KEY,
    migrate: env.MIGRATE === 'on',
    leaseMs: env.LEASE_MS,
    reconcileMs: env.RECONCILE_MS,
    logRetentionMs: env.LOG_RETENTION_MS,
    redisPrefix: env.REDIS_PREFIX,
    logLevel: env.LOG_LEVEL,
  }
}

/** Throws one readable list of everything that is wrong. */
function parse<S extends z.ZodType>(shape: S, environment: Environment): z.output<S> {
  const parsed = shape.safeParse(environment)
  if (parsed.success) return parsed.data
  const lines = parsed.error.issues.map(issue => `  ${issue.path.join('.')}: ${issue.message}`)
  throw new Error(`The environment of this API process does not fit:\n${lines.join('\n')}`)
}
