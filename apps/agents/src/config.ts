/** The environment of a worker process, read once and checked whole. */
import { z } from 'zod'

const optionalText = z
  .string()
  .optional()
  .transform(value => value || undefined)

const schema = z.object({
  REDIS_URL: z.string().regex(/^rediss?:\/\//, 'must be a redis:// URL'),
  RIVULET_URL: z.url().default('http://127.0.0.1:4000'),
  RIVULET_WORKER_KEY: optionalText,
  WORKER_CONCURRENCY: z.coerce.number().int().min(1).max(10_000).default(20),
  HEARTBEAT_MS: z.coerce.number().int().min(1).default(5_000),
  /** Files with agents, separated by commas, where none are named on the command line. */
  AGENT_FILES: z
    .string()
    .default('')
    .transform(list => list.split(',').flatMap(file => file.trim() || [])),
  /** Set by a worker for the process of one turn, never by hand. */
  RIVULET_ISOLATED_TURN: optionalText,
  RIVULET_ALLOW_EXIT: z.enum(['0', '1', '']).default('0'),
  REDIS_PREFIX: z
    .string()
    .regex(/^[\w:-]{1,64}$/)
    .default('rivulet'),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  OPENAI_BASE_URL: optionalText,
  OPENAI_API_KEY: optionalText,
  OPENAI_MODEL: optionalText,
})

/** Throws one readable list of everything that is wrong. */
export function readConfig(environment: Record<string, string | undefined>) {
  const parsed = schema.safeParse(environment)
  if (parsed.success) return parsed.data
  const lines = parsed.error.issues.map(issue => `  ${issue.path.join('.')}: ${issue.message}`)
  throw new Error(`The environment of this worker process does not fit:\n${lines.join('\n')}`)
}
