/** The environment of the command line, read once and checked whole. Programs that it starts check their own. */
import { type Environment, readEnvironment, rejectPlaintext, sharedVariables } from '@rivulet/runtime/environment'
import { z } from 'zod'

const { HOST, PORT, REDIS_URL, DATABASE_URL, ALLOW_PLAINTEXT, RIVULET_URL, RIVULET_KEY, RIVULET_WORKER_KEY, KEY_PEPPER } = sharedVariables

const needed = z.object({
  ...{ HOST, PORT: PORT.refine(port => port > 0, 'must be a port from 1 to 65535') },
  ...{ REDIS_URL: REDIS_URL.optional(), DATABASE_URL: DATABASE_URL.optional(), ALLOW_PLAINTEXT },
  RIVULET_KEY,
  DATA_DIR: z.string().default('.rivulet').describe('the data folder of the engines that the command starts'),
})

/** What the command line reads: also where options of a command are missing, and what it hands on. */
export const variables = needed.extend({ RIVULET_URL, RIVULET_WORKER_KEY, KEY_PEPPER })

/** For commands that need nothing else, and must not fail because of the rest. */
export function readDataDir({ DATA_DIR }: Environment): string {
  return needed.shape.DATA_DIR.parse(DATA_DIR || undefined)
}

export function readConfig(environment: Environment) {
  const env = readEnvironment('this command', needed.superRefine(rejectPlaintext), environment)
  return {
    ...{ host: env.HOST, port: env.PORT, dataDir: env.DATA_DIR },
    ...{ redisUrl: env.REDIS_URL, databaseUrl: env.DATABASE_URL, key: env.RIVULET_KEY },
  }
}
