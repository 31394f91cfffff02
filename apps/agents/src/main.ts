/** `npm run worker [files]`: one worker process with the agents of these files, else with the example agents, until it is told to stop. */
import { type ChildProcess, spawn } from 'node:child_process'
import { type AgentDefinition, createWorker } from '@rivulet/worker'
import { pino } from 'pino'
import { loadAgents } from './agent-file.ts'
import { createAssistant } from './assistant.ts'
import { createCited } from './cited.ts'
import { readConfig } from './config.ts'
import { echo } from './echo.ts'
import { createResearcher } from './researcher.ts'
import { createScripted } from './scripted.ts'

try {
  const config = readConfig(process.env)
  const files = process.argv.length > 2 ? process.argv.slice(2) : config.AGENT_FILES
  const worker = createWorker({
    agents: files.length > 0 ? await loadAgents(files) : exampleAgents(config),
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

function exampleAgents(config: ReturnType<typeof readConfig>): AgentDefinition[] {
  const provider = { baseUrl: config.OPENAI_BASE_URL, apiKey: config.OPENAI_API_KEY, model: config.OPENAI_MODEL }
  const scripted = createScripted({ allowExit: config.RIVULET_ALLOW_EXIT === '1' })
  return [echo, scripted, createAssistant(provider), createCited(provider), createResearcher(provider)]
}

/** This program once more, for one turn. */
function startAgain(turn: string): ChildProcess {
  const env = { ...process.env, RIVULET_ISOLATED_TURN: turn }
  return spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], { env, stdio: ['ignore', 'inherit', 'inherit'] })
}
