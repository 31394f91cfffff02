/** The environment of an API process, read once and checked whole. */
import { readFileSync } from 'node:fs'
import { defaultLimits, type Limits } from '@rivulet/protocol'
import {
  type Environment,
  isLoopback,
  longSecret,
  readEnvironment,
  rejectPlaintext,
  sharedVariables,
  wholeNumber,
} from '@rivulet/runtime/environment'
import { z } from 'zod'
import { builtInPrices, readPrices } from './prices/prices.ts'

const KiB = 1024
const { HOST, PORT, REDIS_URL, DATABASE_URL, REDIS_PREFIX, RIVULET_KEY, RIVULET_WORKER_KEY, KEY_PEPPER, ALLOW_PLAINTEXT, LOG_LEVEL } =
  sharedVariables

/** What an API process reads. */
export const variables = z.object({
  ...{ HOST, PORT },
  INTERNAL_HOST: z
    .string()
    .optional()
    .describe('the address of the separate listener for workers (`/internal`, `/worker/v1`), if `INTERNAL_PORT` is set (default: `HOST`)'),
  INTERNAL_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65_535)
    .optional()
    .describe('the port of a separate listener for workers (`/internal`, `/worker/v1`); unset: they use `PORT`'),
  INTERNAL_TLS_CERT: fileText('the file of the certificate, with its chain, in PEM: the listener of `INTERNAL_PORT` uses TLS; unset: HTTP'),
  INTERNAL_TLS_KEY: fileText('the file of the key of `INTERNAL_TLS_CERT`, in PEM'),
  ...{ REDIS_URL, DATABASE_URL, ALLOW_PLAINTEXT, REDIS_PREFIX, RIVULET_KEY, RIVULET_WORKER_KEY, KEY_PEPPER },
  KEY_PEPPER_OLD: longSecret.describe(
    'the `KEY_PEPPER` before the current one: its keys and tokens stay valid, and each key changes to the current one when it is used',
  ),
  SECRETS_KEY: longSecret.describe(
    'encrypts the `secrets` of tasks in Postgres, at least 32 characters; must be the same for all APIs; unset: requests with `secrets` of a task get 400, and the secrets of webhooks and of `onEnd` are stored in the clear',
  ),
  SECRETS_KEY_OLD: longSecret.describe(
    'the `SECRETS_KEY` before the current one: it decrypts until all secrets are encrypted with the current one',
  ),
  CORS_ORIGINS: z
    .string()
    .default('')
    .transform(list => list.split(',').flatMap(origin => origin.trim() || []))
    .refine(list => list.every(isOrigin), 'must be a comma-separated list of origins: https://app.example.com')
    .describe('origins whose pages may call the API, comma-separated'),
  ALLOWED_HOSTS: z
    .string()
    .default('')
    .transform(list => list.split(',').flatMap(host => host.trim().toLowerCase() || []))
    .refine(list => list.every(isHostName), 'must be a comma-separated list of host names without ports: api.example.com')
    .describe(
      'allowed names in the `Host` header, comma-separated; a request with another name gets 403; IP addresses and `localhost` are always allowed; unset: any name',
    ),
  RATE_LIMIT_PER_SECOND: z.coerce.number().min(0.1).default(100).describe('requests per second of one key'),
  RATE_LIMIT_BURST: wholeNumber(500).describe('requests that one idle key may send at once'),
  RATE_LIMIT_TENANT_PER_SECOND: z.coerce
    .number()
    .min(0.1)
    .default(1_000)
    .describe('requests per second of all keys and tokens of one tenant'),
  RATE_LIMIT_TENANT_BURST: wholeNumber(5_000).describe('requests that one idle tenant may send at once'),
  MAX_STREAMS_PER_TOKEN: wholeNumber(20).describe('open event streams of one token and its successors, or of one subject of a task'),
  MAX_STREAMS_PER_TASK: wholeNumber(10_000).describe('open event streams of one task'),
  MAX_STREAMS_PER_KEY: wholeNumber(2_000).describe('open event streams of one key and of all its tokens'),
  MAX_STREAMS_PER_TENANT: wholeNumber(10_000).describe('open event streams of all keys and tokens of one tenant'),
  MAX_STREAMS: wholeNumber(20_000).describe('open event streams of one API process'),
  MAX_CONNECTIONS: wholeNumber(25_000).describe(
    'open connections of one listener of an API process, including streams; further ones are closed at once; must be more than `MAX_STREAMS`',
  ),
  MAX_QUEUED_TURNS: wholeNumber(100_000).describe('due and waiting turns of all tasks; above it the API rejects new work'),
  MAX_TURNS_PER_TENANT: wholeNumber(50_000).describe('unfinished turns of one tenant; above it the API rejects new work of the tenant'),
  MAX_KEYS_PER_TENANT: wholeNumber(1_000).describe(
    'valid keys of one tenant; above it the API creates and rotates none; a command line on the database has no limit',
  ),
  MAX_REDIS_MEMORY_PERCENT: z.coerce
    .number()
    .min(1)
    .max(100)
    .default(80)
    .describe("share of Redis' `maxmemory` in use; above it the API rejects new work"),
  MAX_BODY_BYTES: wholeNumber(defaultLimits.bodyBytes, 64 * KiB).describe('size of the body of one request'),
  MAX_JSON_DEPTH: wholeNumber(defaultLimits.jsonDepth, 8, 1_000).describe(
    'levels of nesting in the JSON of a request; the output of agents may always have 64',
  ),
  MAX_JSON_ITEMS: wholeNumber(defaultLimits.jsonItems, 1_000).describe('keys and items in the JSON of one request'),
  MAX_QUEUED_TURNS_PER_TASK: wholeNumber(defaultLimits.queuedTurns).describe('waiting turns of one task'),
  MAX_DELTA_BYTES: wholeNumber(defaultLimits.deltaBytes, KiB).describe('size of one delta; the worker splits longer ones'),
  MAX_TURN_BYTES: wholeNumber(defaultLimits.turnBytes, KiB, 4 * defaultLimits.turnBytes).describe(
    'size of the output of one turn; above it the turn fails',
  ),
  MAX_STEPS_BYTES: wholeNumber(defaultLimits.stepsBytes, KiB, 4 * defaultLimits.stepsBytes).describe(
    'size of the stored results of the steps of one turn; above it the turn fails',
  ),
  MAX_VIEWER_BYTES: wholeNumber(defaultLimits.viewerBytes, 64 * KiB).describe(
    'unread bytes of one viewer; above it the API skips the viewer ahead with a snapshot',
  ),
  MAX_VIEWER_STALL_MS: wholeNumber(defaultLimits.viewerStallMs, 1_000).describe(
    'how long a client may read nothing of a response or a stream before the API closes its connection',
  ),
  MAX_SNAPSHOT_BYTES: wholeNumber(defaultLimits.snapshotBytes, KiB).describe(
    'messages of ended turns in one snapshot, and as much again of params, metadata and inputs; older ones are left out',
  ),
  MAX_PAGE_BYTES: wholeNumber(defaultLimits.pageBytes, 64 * KiB).describe(
    'size of one page of tasks or messages; a larger page ends earlier. Also the inputs and params of the turns of one task; older ones are left out',
  ),
  MAX_CHILD_DEPTH: wholeNumber(3).describe('levels of children below one task'),
  MAX_CHILD_ALIVE: wholeNumber(16).describe('children of one task that have not ended, with theirs'),
  MAX_CHILD_TOTAL: wholeNumber(100).describe('children of one task in all, with theirs'),
  MAX_FILE_BYTES: wholeNumber(defaultLimits.fileBytes, KiB).describe('size of one file'),
  MAX_FILE_BYTES_PER_TENANT: wholeNumber(100 * 1024 ** 3, KiB).describe('size of all files of one tenant together'),
  MAX_FILE_TRANSFERS: wholeNumber(64, 4).describe(
    'uploads and downloads of files at once, in one API process, which tenants share; one caller may have a quarter',
  ),
  FILES_S3_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('the bucket for the bytes of new files, on an S3-compatible server: `https://storage.example.com/bucket`; unset: Postgres'),
  FILES_S3_REGION: z.string().min(1).default('us-east-1').describe('the region of the bucket'),
  FILES_S3_ACCESS_KEY_ID: z.string().min(1).optional().describe('the id of the key for the bucket'),
  FILES_S3_SECRET_ACCESS_KEY: z.string().min(1).optional().describe('the secret of the key for the bucket'),
  MIGRATE: z.enum(['on', 'off']).default('on').describe('whether an API migrates the schema when it starts'),
  ALLOW_NEWER_SCHEMA: z
    .enum(['on', 'off'])
    .default('off')
    .describe('allows an API to start on the schema of a newer version, to go back to the previous version'),
  WEBHOOK_ALLOW_PRIVATE: z
    .enum(['on', 'off'])
    .default('off')
    .describe(
      'allows webhooks to addresses that are not on the public internet, such as 127.0.0.1; unset: `npm start`, `rivulet start` and `rivulet dev` allow them if `HOST` is this machine and no key is set',
    ),
  MAX_WEBHOOKS_PER_TENANT: wholeNumber(100).describe('webhooks of one tenant'),
  MAX_STORE_BYTES_PER_TENANT: wholeNumber(1_024 * 1_024 * 1_024).describe('bytes of the values in the store of one tenant'),
  MAX_SCHEDULES_PER_TENANT: wholeNumber(1_000).describe('schedules of one tenant'),
  LEASE_MS: wholeNumber(30_000).describe('how long a silent worker keeps its turn'),
  PIN_GRACE_MS: wholeNumber(60_000, 0).describe(
    'how long a turn of an agent with `pin` waits for its version after the last heartbeat of a worker of that version; then other versions may run it',
  ),
  RECONCILE_MS: wholeNumber(5_000).describe('how often the reconciler looks for work to repair'),
  LOG_RETENTION_MS: wholeNumber(600_000).describe('how long the log of an ended turn stays in Redis; Postgres keeps the messages'),
  TASK_RETENTION_DAYS: z.coerce
    .number()
    .positive()
    .max(36_500)
    .optional()
    .describe('tasks that ended longer ago are removed with their messages; unset: never'),
  USAGE_RETENTION_DAYS: z.coerce
    .number()
    .min(1)
    .max(36_500)
    .default(400)
    .describe('how long the usage of each response is kept for `GET /v1/usage`, also of tasks that are gone'),
  AUDIT_RETENTION_DAYS: z.coerce.number().min(1).max(36_500).default(400).describe('how long the entries of the audit log are kept'),
  MODEL_PRICES: z
    .string()
    .optional()
    .transform((given, context) => {
      try {
        return given === undefined ? builtInPrices : readPrices(given)
      } catch (error) {
        context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : String(error) })
        return z.NEVER
      }
    })
    .describe(
      'prices of models in US dollars per million tokens, as JSON or as the path of a JSON file: added to the built-in ones, and instead of them for the same model',
    ),
  LOG_LEVEL,
})

/** A variable that names a file; its value is what the file contains. */
function fileText(description: string) {
  return z
    .string()
    .optional()
    .transform((path, context) => {
      try {
        return path === undefined ? undefined : readFileSync(path, 'utf8')
      } catch {
        context.addIssue({ code: 'custom', message: 'must be the path of a file that this process can read' })
        return z.NEVER
      }
    })
    .describe(description)
}

export type Config = ReturnType<typeof readConfig>

export function readDatabaseUrl(environment: Environment): string {
  return parse(variables.pick({ DATABASE_URL: true, ALLOW_PLAINTEXT: true }).superRefine(rejectPlaintext), environment).DATABASE_URL
}

export function readConfig(environment: Environment) {
  const env = parse(
    variables
      .superRefine(rejectPlaintext)
      .superRefine(rejectUnguardedHosts)
      .superRefine(rejectFewConnections)
      .superRefine(rejectBucketWithoutKey)
      .superRefine(rejectOldWithoutCurrent)
      .superRefine(rejectHalfTls),
    environment,
  )
  return {
    host: listenerOf(env.HOST),
    port: env.PORT,
    /** Where `/internal` listens by itself; null when it is where everything else is. */
    internal: env.INTERNAL_PORT === undefined ? null : { host: listenerOf(env.INTERNAL_HOST ?? env.HOST), port: env.INTERNAL_PORT },
    /** Null: it has no TLS. */
    internalTls: env.INTERNAL_TLS_CERT && env.INTERNAL_TLS_KEY ? { cert: env.INTERNAL_TLS_CERT, key: env.INTERNAL_TLS_KEY } : null,
    redisUrl: env.REDIS_URL,
    databaseUrl: env.DATABASE_URL,
    key: env.RIVULET_KEY,
    workerKey: env.RIVULET_WORKER_KEY,
    pepper: env.KEY_PEPPER,
    oldPepper: env.KEY_PEPPER_OLD,
    secretsKeys: { key: env.SECRETS_KEY, oldKey: env.SECRETS_KEY_OLD },
    /** Whether no key is asked for, of clients and of workers. */
    isOpen: !env.RIVULET_KEY && !env.KEY_PEPPER,
    isInternalOpen: !env.RIVULET_KEY && !env.KEY_PEPPER && !env.RIVULET_WORKER_KEY,
    origins: new Set(env.CORS_ORIGINS),
    /** Empty: any. */
    allowedHosts: new Set(env.ALLOWED_HOSTS),
    maxKeysPerTenant: env.MAX_KEYS_PER_TENANT,
    rateLimits: {
      key: { perSecond: env.RATE_LIMIT_PER_SECOND, burst: env.RATE_LIMIT_BURST },
      tenant: { perSecond: env.RATE_LIMIT_TENANT_PER_SECOND, burst: env.RATE_LIMIT_TENANT_BURST },
    },
    streamLimits: {
      perToken: env.MAX_STREAMS_PER_TOKEN,
      perTask: env.MAX_STREAMS_PER_TASK,
      perKey: env.MAX_STREAMS_PER_KEY,
      perTenant: env.MAX_STREAMS_PER_TENANT,
      perProcess: env.MAX_STREAMS,
    },
    /** Null: the bytes of files are in Postgres. */
    bucket: bucketOf(env),
    maxFileBytesPerTenant: env.MAX_FILE_BYTES_PER_TENANT,
    maxFileTransfers: env.MAX_FILE_TRANSFERS,
    maxConnections: env.MAX_CONNECTIONS,
    limits: {
      bodyBytes: env.MAX_BODY_BYTES,
      jsonDepth: env.MAX_JSON_DEPTH,
      jsonItems: env.MAX_JSON_ITEMS,
      queuedTurns: env.MAX_QUEUED_TURNS_PER_TASK,
      deltaBytes: env.MAX_DELTA_BYTES,
      turnBytes: env.MAX_TURN_BYTES,
      stepsBytes: env.MAX_STEPS_BYTES,
      viewerBytes: env.MAX_VIEWER_BYTES,
      viewerStallMs: env.MAX_VIEWER_STALL_MS,
      snapshotBytes: env.MAX_SNAPSHOT_BYTES,
      pageBytes: env.MAX_PAGE_BYTES,
      fileBytes: env.MAX_FILE_BYTES,
    } satisfies Limits,
    /** Beyond these, new work is refused. */
    capacityLimits: {
      queuedTurns: env.MAX_QUEUED_TURNS,
      turnsPerTenant: env.MAX_TURNS_PER_TENANT,
      redisMemory: env.MAX_REDIS_MEMORY_PERCENT / 100,
    },
    migrate: env.MIGRATE === 'on',
    allowNewerSchema: env.ALLOW_NEWER_SCHEMA === 'on',
    webhooks: { allowPrivate: env.WEBHOOK_ALLOW_PRIVATE === 'on', perTenant: env.MAX_WEBHOOKS_PER_TENANT },
    childLimits: { childDepth: env.MAX_CHILD_DEPTH, childAlive: env.MAX_CHILD_ALIVE, childTotal: env.MAX_CHILD_TOTAL },
    maxSchedules: env.MAX_SCHEDULES_PER_TENANT,
    maxStoreBytes: env.MAX_STORE_BYTES_PER_TENANT,
    leaseMs: env.LEASE_MS,
    pinGraceMs: env.PIN_GRACE_MS,
    reconcileMs: env.RECONCILE_MS,
    logRetentionMs: env.LOG_RETENTION_MS,
    /** Null: ended tasks stay. */
    taskRetentionMs: env.TASK_RETENTION_DAYS === undefined ? null : env.TASK_RETENTION_DAYS * 86_400_000,
    usageRetentionMs: env.USAGE_RETENTION_DAYS * 86_400_000,
    auditRetentionMs: env.AUDIT_RETENTION_DAYS * 86_400_000,
    prices: env.MODEL_PRICES,
    redisPrefix: env.REDIS_PREFIX,
    logLevel: env.LOG_LEVEL,
  }
}

export function readKeyPepper(environment: Environment): string {
  const needed = z.string(`is required: a secret of this installation, ${howToMakeOne}`).pipe(KEY_PEPPER.unwrap())
  return readEnvironment('this command', z.object({ KEY_PEPPER: needed }), environment).KEY_PEPPER
}

/** As a browser sends it; `*` is not an origin. */
function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}

/** In lower case; neither a wildcard nor a URL. */
function isHostName(text: string): boolean {
  return text.length <= 253 && /^[a-z\d_-]+(\.[a-z\d_-]+)*$/.test(text)
}

/** `localhost` is 127.0.0.1 here, because Fastify opens a second listener for its other address, without our limits and error responses. */
function listenerOf(host: string): string {
  return host === 'localhost' ? '127.0.0.1' : host
}

/** Without a key, only this machine may ask. */
function rejectUnguardedHosts(env: z.output<typeof variables>, context: z.RefinementCtx): void {
  const { HOST, INTERNAL_HOST = HOST, RIVULET_KEY, RIVULET_WORKER_KEY, KEY_PEPPER } = env
  if (!isLoopback(HOST) && !RIVULET_KEY && !KEY_PEPPER) {
    const how = `set RIVULET_KEY, or KEY_PEPPER and create keys with \`rivulet keys create\` (${howToMakeOne})`
    context.addIssue({ code: 'custom', path: ['HOST'], message: `other machines could call without a key: ${how}` })
  } else if (!isLoopback(INTERNAL_HOST) && !RIVULET_KEY && !KEY_PEPPER && !RIVULET_WORKER_KEY) {
    const how = `set RIVULET_WORKER_KEY (${howToMakeOne})`
    context.addIssue({ code: 'custom', path: ['INTERNAL_HOST'], message: `other machines could pose as workers: ${how}` })
  }
  for (const name of ['RIVULET_KEY', 'RIVULET_WORKER_KEY'] as const) {
    const isShort = (env[name]?.length ?? minKeyLength) < minKeyLength
    if (isShort && !(isLoopback(HOST) && isLoopback(INTERNAL_HOST)))
      context.addIssue({
        code: 'custom',
        path: [name],
        message: `must have at least ${minKeyLength} characters, because other machines can call`,
      })
  }
}

/** Streams alone must not be able to use up every connection: health checks and callers need some, too. */
function rejectFewConnections({ MAX_CONNECTIONS, MAX_STREAMS }: z.output<typeof variables>, context: z.RefinementCtx): void {
  if (MAX_CONNECTIONS > MAX_STREAMS) return
  context.addIssue({ code: 'custom', path: ['MAX_CONNECTIONS'], message: `must be more than MAX_STREAMS, which is ${MAX_STREAMS}` })
}

function rejectBucketWithoutKey(env: z.output<typeof variables>, context: z.RefinementCtx): void {
  if (!env.FILES_S3_URL) return
  for (const name of ['FILES_S3_ACCESS_KEY_ID', 'FILES_S3_SECRET_ACCESS_KEY'] as const)
    if (!env[name]) context.addIssue({ code: 'custom', path: [name], message: 'is required, because FILES_S3_URL is set' })
}

function rejectOldWithoutCurrent(env: z.output<typeof variables>, context: z.RefinementCtx): void {
  for (const name of ['KEY_PEPPER', 'SECRETS_KEY'] as const)
    if (env[`${name}_OLD`] && !env[name])
      context.addIssue({ code: 'custom', path: [name], message: `is required, because ${name}_OLD is set` })
}

/** A certificate without its key, or without a listener, would leave the port without TLS. */
function rejectHalfTls(env: z.output<typeof variables>, context: z.RefinementCtx): void {
  const names = ['INTERNAL_TLS_CERT', 'INTERNAL_TLS_KEY'] as const
  const set = names.find(name => env[name])
  if (!set) return
  for (const name of [...names, 'INTERNAL_PORT'] as const)
    if (env[name] === undefined) context.addIssue({ code: 'custom', path: [name], message: `is required, because ${set} is set` })
}

function bucketOf(env: z.output<typeof variables>) {
  const { FILES_S3_URL: url, FILES_S3_REGION: region, FILES_S3_ACCESS_KEY_ID, FILES_S3_SECRET_ACCESS_KEY } = env
  return url ? { url, region, accessKeyId: FILES_S3_ACCESS_KEY_ID ?? '', secretAccessKey: FILES_S3_SECRET_ACCESS_KEY ?? '' } : null
}

const minKeyLength = 16
const howToMakeOne = 'for instance `openssl rand -base64 32`'

function parse<S extends z.ZodType>(shape: S, environment: Environment): z.output<S> {
  return readEnvironment('this API process', shape, environment)
}
