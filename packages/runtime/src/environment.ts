/**
 * The environment of a program: how every program reads it, and the variables that more than one program reads.
 *
 * A program reads it once, at its start. An empty variable counts as not set. One error lists every invalid variable, without the values,
 * because some of them are secrets. `npm run generate` copies each description into docs/operations.md and .env.example.
 */
import { z } from 'zod'
import { parseRedisUrl, whyNotRedisUrl } from './redis-url.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** A restart in the same environment fails again. */
export class InvalidEnvironment extends Error {}

/** @param reader the program, as in "Invalid environment of …" */
export function readEnvironment<S extends z.ZodType>(reader: string, schema: S, environment: Environment): z.output<S> {
  const set = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''))
  const parsed = schema.safeParse(set)
  if (parsed.success) return parsed.data
  const lines = parsed.error.issues.map(issue => `  ${issue.path.join('.')}: ${reasonOf(issue)}`)
  throw new InvalidEnvironment(`Invalid environment of ${reader}:\n${lines.join('\n')}`)
}

function reasonOf({ message }: z.core.$ZodIssue): string {
  if (/received undefined$/.test(message)) return 'is required'
  if (/received NaN$/.test(message)) return 'must be a number'
  if (/expected int,/.test(message)) return 'must be a whole number'
  return message
}

/**
 * The exit code (EX_CONFIG of sysexits.h) of a program whose environment is invalid, or whose file of agents cannot be loaded: a supervisor should not
 * restart it before one of them changes.
 */
export const configurationExitCode = 78

export const defaultUrl = 'http://127.0.0.1:4000'

const httpUrl = z.url({ protocol: /^https?$/ })

/** For a duration, a limit or a count. */
export const wholeNumber = (byDefault: number, min = 1, max = Number.MAX_SAFE_INTEGER) =>
  z.coerce.number().int().min(min).max(max).default(byDefault)

/** Of an installation: programs send it nowhere, and no person types it. */
export const longSecret = z.string().min(32, 'must have at least 32 characters').optional()

export const sharedVariables = {
  HOST: z.string().default('127.0.0.1').describe('the address of the API; any address except this machine requires a key'),
  PORT: z.coerce.number().int().min(0).max(65_535).default(4000).describe('the port of the API'),
  REDIS_URL: z
    .string()
    .superRefine((url, context) => {
      const message = whyNotRedisUrl(url)
      if (message !== null) context.addIssue({ code: 'custom', message })
    })
    .meta({
      description:
        'Redis 6.2 or newer (a cluster: 7.0), or Valkey, with `maxmemory-policy noeviction`: one server, the servers of a cluster, or Sentinels (`redis+sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster`); if unset, `npm start` starts its own: the installed one, otherwise an embedded one',
      examples: ['redis://:change-me@127.0.0.1:6379'],
    }),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must be a postgres:// URL')
    .meta({
      description: 'Postgres; if unset, `npm start` starts its own: the installed one, otherwise an embedded one',
      examples: ['postgres://rivulet:change-me@127.0.0.1:5432/rivulet'],
    }),
  REDIS_PREFIX: z
    .string()
    .regex(/^[\w:-]{1,64}$/, 'must be 1 to 64 letters, digits, _, : or -')
    .default('rivulet')
    .describe('part of the name of every Redis key and channel; must be the same for all APIs and workers'),
  RIVULET_URL: z
    .string()
    .refine(
      list => list.split(',').every(url => httpUrl.safeParse(url.trim()).success),
      'must be an http:// or https:// URL, or several, separated by commas',
    )
    .default(defaultUrl)
    .describe(
      'the URL of the API, for workers and the command line; several, separated by commas: a worker calls the next when one fails, the command line calls the first',
    ),
  RIVULET_KEY: z
    .string()
    .optional()
    .describe('a key with every scope: the API accepts it, the command line sends it; at least 16 characters if other machines can call'),
  RIVULET_WORKER_KEY: z
    .string()
    .optional()
    .describe(
      'the key of workers: the API accepts it for `/internal`, a worker sends it; at least 16 characters if other machines can call',
    ),
  KEY_PEPPER: longSecret.describe(
    'the secret of the keys from `rivulet keys create`, at least 32 characters; must be the same for all APIs and that command',
  ),
  ALLOW_PLAINTEXT: z
    .enum(['on', 'off'])
    .default('off')
    .describe(
      'allows connections without TLS to a Redis and a Postgres on other machines, and of a worker to such an API, for a network that no other program can read; off: the program does not start',
    ),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('the lowest level of log lines, which are JSON on stdout'),
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

type EngineUrls = { REDIS_URL?: string | undefined; DATABASE_URL?: string | undefined; ALLOW_PLAINTEXT: 'on' | 'off' }

const engines = {
  REDIS_URL: { isSafe: isSafeRedis, how: 'use rediss://' },
  DATABASE_URL: { isSafe: isSafePostgres, how: 'add sslmode=verify-full' },
}

/** Without TLS, passwords and conversations would cross the network in the clear. */
export function rejectPlaintext(env: EngineUrls, context: z.RefinementCtx): void {
  if (env.ALLOW_PLAINTEXT === 'on') return
  for (const name of ['REDIS_URL', 'DATABASE_URL'] as const) {
    const url = env[name]
    const { isSafe, how } = engines[name]
    if (url === undefined || isSafe(url)) continue
    const message = `is on another machine, and without TLS: ${how}, or set ALLOW_PLAINTEXT=on if no other program can read that network`
    context.addIssue({ code: 'custom', path: [name], message })
  }
}

type WorkerUrls = { RIVULET_URL: string; ALLOW_PLAINTEXT: 'on' | 'off' }

/** A worker gets the secrets of tasks in the replies to its claims. */
export function rejectPlainApi({ RIVULET_URL: list, ALLOW_PLAINTEXT }: WorkerUrls, context: z.RefinementCtx): void {
  if (ALLOW_PLAINTEXT === 'on' || list.split(',').every(isSafeApi)) return
  const message =
    'leads to another machine without TLS, and the API sends secrets of tasks to workers: use https://, or set ALLOW_PLAINTEXT=on if no other program can read that network'
  context.addIssue({ code: 'custom', path: ['RIVULET_URL'], message })
}

function isSafeApi(url: string): boolean {
  const [, scheme, host = ''] = /^(https?):\/\/(?:[^/\\?#]*@)?(\[[^\]]*\]|[^:/\\?#]*)/.exec(url.trim().toLowerCase()) ?? []
  return scheme === 'https' || isLoopback(host.replace(/^\[(.*)\]$/, '$1'))
}

/** An invalid URL is reported by its variable. */
function isSafeRedis(url: string): boolean {
  if (whyNotRedisUrl(url) !== null) return true
  const { isTls, addresses } = parseRedisUrl(url)
  return isTls || addresses.every(({ host }) => isLoopback(host))
}

/** A parameter replaces the hosts, which are separated by commas. Without a host, or with the path of a socket, a URL leads to this machine. */
function isSafePostgres(url: string): boolean {
  if (/[?&]sslmode=(require|verify-ca|verify-full|no-verify)\b/.test(url)) return true
  const [, hosts = ''] = /[?&]host=([^&]*)/.exec(url) ?? /^\w+:\/\/(?:[^@/]*@)?([^/?]*)/.exec(url) ?? []
  const names = hosts.split(',').map(host => host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1'))
  return names.every(host => host === '' || /^(\/|%2f)/i.test(host) || isLoopback(host))
}
