/**
 * The environment of a program: how any of them reads it, and the variables that more than one of them reads.
 *
 * It is read once and checked whole. What is set to nothing counts as not set. What is wrong is said in one list, without the values: among them
 * are secrets. A variable's description is what docs/operations.md and .env.example say about it (`npm run docs:variables`).
 */
import { z } from 'zod'

export type Environment = Readonly<Record<string, string | undefined>>

/** @param reader whose environment it is, as in "The environment of … does not fit" */
export function readEnvironment<S extends z.ZodType>(reader: string, schema: S, environment: Environment): z.output<S> {
  const set = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''))
  const parsed = schema.safeParse(set)
  if (parsed.success) return parsed.data
  const lines = parsed.error.issues.map(issue => `  ${issue.path.join('.')}: ${reasonOf(issue)}`)
  throw new Error(`The environment of ${reader} does not fit:\n${lines.join('\n')}`)
}

function reasonOf({ message }: z.core.$ZodIssue): string {
  if (/received undefined$/.test(message)) return 'is needed'
  if (/received NaN$/.test(message)) return 'must be a number'
  if (/expected int,/.test(message)) return 'must be a whole number'
  return message
}

export const defaultUrl = 'http://127.0.0.1:4000'

/** A duration, a limit, a count. */
export const wholeNumber = (byDefault: number, min = 1, max = Number.MAX_SAFE_INTEGER) =>
  z.coerce.number().int().min(min).max(max).default(byDefault)

export const sharedVariables = {
  HOST: z.string().default('127.0.0.1').describe('where the API listens; anything but this machine needs a key'),
  PORT: z.coerce.number().int().min(0).max(65_535).default(4000).describe('the port it listens on'),
  REDIS_URL: z
    .string()
    .regex(/^rediss?:\/\//, 'must be a redis:// URL')
    .meta({
      description:
        'Redis 6.2 or newer, or Valkey, with `maxmemory-policy noeviction`; with `npm start`, unset means one of its own: the installed one, else an embedded one',
      examples: ['redis://127.0.0.1:6379'],
    }),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must be a postgres:// URL')
    .meta({
      description: 'Postgres; with `npm start`, unset means one of its own: the installed one, else an embedded one',
      examples: ['postgres://rivulet:rivulet@127.0.0.1:5432/rivulet'],
    }),
  REDIS_PREFIX: z
    .string()
    .regex(/^[\w:-]{1,64}$/, 'must be 1 to 64 letters, digits, _, : or -')
    .default('rivulet')
    .describe('stands in the name of every key and channel in Redis; the same for APIs and workers'),
  RIVULET_URL: z
    .url({ protocol: /^https?$/ })
    .default(defaultUrl)
    .describe('the API, as workers and the command line reach it'),
  RIVULET_KEY: z
    .string()
    .optional()
    .describe('a key with every scope, 16 characters or more where others can call: the API accepts it, the command line sends it'),
  RIVULET_WORKER_KEY: z
    .string()
    .optional()
    .describe('the key of workers, 16 characters or more where others can call: the API accepts it for `/internal`, a worker sends it'),
  KEY_PEPPER: z
    .string()
    .min(32, 'must have at least 32 characters')
    .optional()
    .describe('the secret behind the keys of `rivulet keys create`, 32 characters or more; the same for all APIs and for that command'),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('how much is logged, as lines of JSON on stdout'),
}
