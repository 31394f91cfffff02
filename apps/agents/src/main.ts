/** `npm run worker [files]`: one worker process with the agents of these files, or with the example agents where they are enabled, until SIGTERM. */
import type { AgentDefinition } from '@rivulet/worker'
import { loadAgents } from './agent-file.ts'
import type { Config } from './config.ts'
import { runWorker } from './run-worker.ts'

// Not awaited, because then this file could only be a module.
void runWorker(process.env, agentsFor)

async function agentsFor(config: Config): Promise<AgentDefinition[]> {
  const files = process.argv.length > 2 ? process.argv.slice(2) : config.AGENT_FILES
  if (files.length > 0) return loadAgents(files)
  if (config.RIVULET_EXAMPLE_AGENTS === 'off') {
    const how = 'name files with agents, on the command line or in AGENT_FILES, or set RIVULET_EXAMPLE_AGENTS=on for the example agents'
    throw new Error(`This worker has no agents: ${how}`)
  }
  return (await import('./examples/example-agents.ts')).exampleAgents(config)
}
