/** The environment of a worker process, read once and checked whole. */
import {
  type Environment,
  readEnvironment,
  rejectPlainApi,
  rejectPlaintext,
  sharedVariables,
  wholeNumber,
} from '@rivulet/runtime/environment'
import { z } from 'zod'

const { REDIS_URL, ALLOW_PLAINTEXT, REDIS_PREFIX, RIVULET_URL, RIVULET_WORKER_KEY, LOG_LEVEL } = sharedVariables

/** What a worker process reads. */
export const variables = z.object({
  ...{ REDIS_URL: REDIS_URL.optional(), ALLOW_PLAINTEXT, REDIS_PREFIX, RIVULET_URL, RIVULET_WORKER_KEY },
  RIVULET_TRANSPORT: z
    .enum(['redis', 'http'])
    .default('redis')
    .describe(
      'how a worker gets its turns and writes their output: `redis`, or `http` by the API alone, for a worker that must not reach Redis and does not need `REDIS_URL`',
    ),
  WORKER_CONCURRENCY: wholeNumber(20, 1, 10_000).describe('turns that one worker process runs at a time'),
  WORKER_NAME: z
    .string()
    .regex(/^[\w.-]{1,70}$/, 'must be 1 to 70 letters, digits, _, . or -')
    .default('worker')
    .describe('what the id of a worker begins with, for the list of workers, which tenants of its agents see'),
  WORKER_VERSION: z
    .string()
    .max(100)
    .optional()
    .describe('the release of the agents, for the list of workers and for agents with `pin` (default: the version of Rivulet)'),
  HEARTBEAT_MS: wholeNumber(5_000).describe('how often a worker renews its leases; set it to a fraction of `LEASE_MS`'),
  WATCHDOG_MS: wholeNumber(30_000, 0).describe(
    'how long a turn may block the event loop of its worker before the worker releases its other turns and exits; 0: no limit',
  ),
  MAX_ISOLATED_TURNS: wholeNumber(2, 1, 1_000).describe(
    'isolated processes of one worker at a time, for turns that lost two workers; further such turns wait',
  ),
  WORKER_DRAIN_MS: wholeNumber(30_000, 0, 24 * 3_600_000).describe(
    'how long a stopping worker lets its turns finish, before it releases them for other workers; up to a day',
  ),
  BACKPRESSURE_MS: wholeNumber(30_000).describe('how long a worker waits for a Redis that is out of memory before the attempt fails'),
  WORKER_METRICS_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65_535)
    .optional()
    .describe('the port of `/metrics` of a worker process; unset: no metrics'),
  WORKER_METRICS_HOST: z
    .string()
    .default('127.0.0.1')
    .describe('the address of `/metrics` of a worker process; it requires no key and shows the names and load of agents'),
  AGENT_FILES: z
    .string()
    .default('')
    .transform(list => list.split(',').flatMap(file => file.trim() || []))
    .describe('files with agents, comma-separated, if the command line names none'),
  RIVULET_EXAMPLE_AGENTS: z
    .enum(['on', 'off'])
    .default('off')
    .describe(
      'whether a worker without files loads the example agents, which run scripts from callers; `npm start` and docker-compose.yml set it. Off: a worker without files does not start',
    ),
  OPENAI_BASE_URL: z
    .string()
    .optional()
    .describe('a server with the API of OpenAI, for the example agents (with a key, unset means OpenAI)'),
  OPENAI_API_KEY: z.string().optional().describe('the key of that server; with neither of the two, the example agents play a script'),
  OPENAI_MODEL: z.string().optional().describe('the model of the example agents (default: `gpt-4.1-mini`)'),
  LOG_LEVEL,
  RIVULET_ALLOW_EXIT: z
    .enum(['0', '1'])
    .default('0')
    .meta({ description: 'allows the `scripted` example agent to kill its worker, for tests', isInternal: true }),
  RIVULET_ISOLATED_TURN: z
    .string()
    .optional()
    .meta({ description: 'set by a worker for an isolated process; never set it yourself', isInternal: true }),
})

const checked = variables.refine(({ RIVULET_TRANSPORT: transport, REDIS_URL: url }) => transport === 'http' || url !== undefined, {
  path: ['REDIS_URL'],
  message: 'is required, unless RIVULET_TRANSPORT is http',
  // Also where another variable is invalid: one error lists all of them.
  when: () => true,
})

export type Config = ReturnType<typeof readConfig>

export function readConfig(environment: Environment) {
  return readEnvironment('this worker process', checked.superRefine(rejectPlaintext).superRefine(rejectPlainApi), environment)
}
