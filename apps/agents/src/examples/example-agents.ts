/**
 * The example agents of `npm start`. A worker loads them only with `RIVULET_EXAMPLE_AGENTS=on`, because `scripted` runs scripts from callers.
 */
import type { AgentDefinition } from '@rivulet/worker'
import type { Config } from '../config.ts'
import { createAssistant } from './assistant/assistant.ts'
import { clerk } from './clerk.ts'
import { echo } from './echo.ts'
import { createCited } from './research/cited.ts'
import { createResearcher } from './research/researcher.ts'
import { createScout } from './research/scout.ts'
import { createScripted } from './scripted/scripted.ts'

export function exampleAgents(config: Config): AgentDefinition[] {
  const provider = { baseUrl: config.OPENAI_BASE_URL, apiKey: config.OPENAI_API_KEY, model: config.OPENAI_MODEL }
  const scripted = createScripted({ allowExit: config.RIVULET_ALLOW_EXIT === '1' })
  return [echo, clerk, scripted, createAssistant(provider), createCited(provider), createResearcher(provider), createScout(provider)]
}
