/** `npm run worker`: one worker process with the example agents, until it is told to stop. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createWorker } from '@rivulet/worker'
import { pino } from 'pino'
import { createAssistant } from './assistant.ts'
import { readConfig } from './config.ts'
import { echo } from './echo.ts'
import { createScripted } from './scripted.ts'

try {
  const config = readConfig(process.env)
  const assistant = createAssistant({ baseUrl: config.OPENAI_BASE_URL, apiKey: config.OPENAI_API_KEY, model: config.OPENAI_MODEL })
  const worker = createWorker({
    agents: [echo, createScripted({ allowExit: config.RIVULET_ALLOW_EXIT === '1' }), assistant],
    redisUrl: config.REDIS_URL,
    redisPrefix: config.REDIS_PREFIX,
    url: config.RIVULET_URL,
    key: config.RIVULET_WORKER_KEY,
    concurrency: config.WORKER_CONCURRENCY,
    heartbeatMs: config.HEARTBEAT_MS,
    log: pino({ level: config.LOG_LEVEL }),
    isolation: { turn: config.RIVULET_ISOLATED_TURN, start: startAgain },
  })
  // 'disconnect': whoever started this process is gone. A second call finds the worker stopping already.
  for (const signal of ['SIGTERM', 'SIGINT', 'disconnect']) process.on(signal, () => void worker.stop().then(() => process.exit(0)))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}

/** This program once more, for one turn. */
function startAgain(turn: string): ChildProcess {
  const env = { ...process.env, RIVULET_ISOLATED_TURN: turn }
  return spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], { env, stdio: ['ignore', 'inherit', 'inherit'] })
}
