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
  INTERNAL_HOST: optionalText,
  INTERNAL_PORT: z.coerce.number().int().min(0).max(65_535).optional(),
  REDIS_URL: z.string().regex(/^rediss?:\/\//, 'must be a redis:// URL'),
  DATABASE_URL: z.string().regex(/^postgres(ql)?:\/\//, 'must be a postgres:// URL'),
  RIVULET_KEY: optionalText,
  RIVULET_WORKER_KEY: optionalText,
  KEY_PEPPER: optionalText.refine(value => value === undefined || value.length >= 32, 'must have at least 32 characters'),
  CORS_ORIGINS: z
    .string()
    .default('')
    .transform(list => list.split(',').flatMap(origin => origin.trim() || []))
    .refine(list => list.every(isOrigin), 'must be a list of origins, with commas: https://app.example.com'),
  RATE_LIMIT_PER_SECOND: z.coerce.number().min(0.1).default(100),
  RATE_LIMIT_BURST: z.coerce.number().int().min(1).default(500),
  MAX_STREAMS_PER_KEY: z.coerce.number().int().min(1).default(2_000),
  MAX_STREAMS: z.coerce.number().int().min(1).default(20_000),
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
  const env = parse(schema.superRefine(refuseOpenDoors), environment)
  return {
    host: env.HOST,
    port: env.PORT,
    /** Where `/internal` listens by itself; null when it is where everything else is. */
    internal: env.INTERNAL_PORT === undefined ? null : { host: env.INTERNAL_HOST ?? env.HOST, port: env.INTERNAL_PORT },
    redisUrl: env.REDIS_URL,
    databaseUrl: env.DATABASE_URL,
    key: env.RIVULET_KEY,
    workerKey: env.RIVULET_WORKER_KEY,
    pepper: env.KEY_PEPPER,
    /** Whether no key is asked for, of clients and of workers. */
    isOpen: !env.RIVULET_KEY && !env.KEY_PEPPER,
    isInternalOpen: !env.RIVULET_KEY && !env.KEY_PEPPER && !env.RIVULET_WORKER_KEY,
    origins: new Set(env.CORS_ORIGINS),
    rateLimit: { perSecond: env.RATE_LIMIT_PER_SECOND, burst: env.RATE_LIMIT_BURST },
    streamLimits: { perKey: env.MAX_STREAMS_PER_KEY, perProcess: env.MAX_STREAMS },
    migrate: env.MIGRATE === 'on',
    leaseMs: env.LEASE_MS,
    reconcileMs: env.RECONCILE_MS,
    logRetentionMs: env.LOG_RETENTION_MS,
    redisPrefix: env.REDIS_PREFIX,
    logLevel: env.LOG_LEVEL,
  }
}

export function readKeyPepper(environment: Environment): string {
  return parse(
    z.object({ KEY_PEPPER: schema.shape.KEY_PEPPER.pipe(z.string(`is needed: a secret of this installation, ${howToMakeOne}`)) }),
    environment,
  ).KEY_PEPPER
}

/** As a browser sends it; `*` is none. */
function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** Without a key, only this machine may ask. */
function refuseOpenDoors(env: z.output<typeof schema>, context: z.RefinementCtx): void {
  const { HOST, INTERNAL_HOST = HOST, RIVULET_KEY, RIVULET_WORKER_KEY, KEY_PEPPER } = env
  if (!isLoopback(HOST) && !RIVULET_KEY && !KEY_PEPPER) {
    const how = `set RIVULET_KEY, or KEY_PEPPER and create keys with \`rivulet keys create\` (${howToMakeOne})`
    context.addIssue({ code: 'custom', path: ['HOST'], message: `others than this machine could call without a key: ${how}` })
  } else if (!isLoopback(INTERNAL_HOST) && !RIVULET_KEY && !KEY_PEPPER && !RIVULET_WORKER_KEY) {
    const how = `set RIVULET_WORKER_KEY (${howToMakeOne})`
    context.addIssue({ code: 'custom', path: ['INTERNAL_HOST'], message: `others than this machine could pose as workers: ${how}` })
  }
  for (const name of ['RIVULET_KEY', 'RIVULET_WORKER_KEY'] as const) {
    const isShort = (env[name]?.length ?? minKeyLength) < minKeyLength
    if (isShort && !(isLoopback(HOST) && isLoopback(INTERNAL_HOST)))
      context.addIssue({ code: 'custom', path: [name], message: `must have at least ${minKeyLength} characters where others can call` })
  }
}

const minKeyLength = 16
const howToMakeOne = 'for instance `openssl rand -base64 32`'

/** Throws one readable list of everything that is wrong. */
function parse<S extends z.ZodType>(shape: S, environment: Environment): z.output<S> {
  const parsed = shape.safeParse(environment)
  if (parsed.success) return parsed.data
  const lines = parsed.error.issues.map(issue => `  ${issue.path.join('.')}: ${issue.message}`)
  throw new Error(`The environment of this API process does not fit:\n${lines.join('\n')}`)
}
