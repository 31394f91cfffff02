/** The environment of a worker process, read once and checked whole. */
import { type Environment, readEnvironment, sharedVariables, wholeNumber } from '@rivulet/runtime/environment'
import { z } from 'zod'

const { REDIS_URL, REDIS_PREFIX, RIVULET_URL, RIVULET_WORKER_KEY, LOG_LEVEL } = sharedVariables

/** What a worker process reads. */
export const variables = z.object({
  ...{ REDIS_URL, REDIS_PREFIX, RIVULET_URL, RIVULET_WORKER_KEY },
  WORKER_CONCURRENCY: wholeNumber(20, 1, 10_000).describe('turns at a time in one worker process'),
  HEARTBEAT_MS: wholeNumber(5_000).describe('how often a worker renews its leases; a few times within `LEASE_MS`'),
  WATCHDOG_MS: wholeNumber(30_000, 0).describe(
    'how long a turn may block the event loop of its worker, before the worker gives its other turns back and ends; 0: for ever',
  ),
  MAX_ISOLATED_TURNS: wholeNumber(2, 1, 1_000).describe(
    'processes of their own that a worker has at a time, for turns that lost two workers; the others of them wait',
  ),
  BACKPRESSURE_MS: wholeNumber(30_000).describe('how long a worker waits for a Redis that is out of memory, before the attempt fails'),
  WORKER_METRICS_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65_535)
    .optional()
    .describe('a port for the metrics of a worker process, at `/metrics`; unset: none'),
  WORKER_METRICS_HOST: z
    .string()
    .default('127.0.0.1')
    .describe('where that listens; whoever reaches it may read the names of agents and how busy they are'),
  AGENT_FILES: z
    .string()
    .default('')
    .transform(list => list.split(',').flatMap(file => file.trim() || []))
    .describe('files with agents, with commas, where none are named on the command line'),
  RIVULET_EXAMPLE_AGENTS: z
    .enum(['on', 'off'])
    .default('off')
    .describe(
      'whether a worker without files has the example agents, which run what callers send; `npm start` and docker-compose.yml set it. Off: a worker without files does not start',
    ),
  OPENAI_BASE_URL: z
    .string()
    .optional()
    .describe('a server with the API of OpenAI that the example agents ask (with a key, unset means OpenAI)'),
  OPENAI_API_KEY: z.string().optional().describe('the key for it; with neither of the two, the example agents follow a script'),
  OPENAI_MODEL: z.string().optional().describe('the model that the example agents ask for (default: `gpt-4.1-mini`)'),
  LOG_LEVEL,
  RIVULET_ALLOW_EXIT: z
    .enum(['0', '1'])
    .default('0')
    .meta({ description: 'lets the `scripted` example agent kill its worker: for tests', isInternal: true }),
  RIVULET_ISOLATED_TURN: z
    .string()
    .optional()
    .meta({ description: 'set by a worker for the process of one turn, never by hand', isInternal: true }),
})

export type Config = ReturnType<typeof readConfig>

export function readConfig(environment: Environment) {
  return readEnvironment('this worker process', variables, environment)
}
