/** An agent that thinks and uses several tools at once: viewers see the reasoning, and each call with its progress. The researcher sends it. */
import { type AgentDefinition, defineAgent } from '@rivulet/worker'
import { chooseModel, type ProviderSettings } from '../model-choice.ts'
import { scoutOffline } from './offline-scout.ts'
import { createResearchTools } from './research-tools.ts'

const instructions =
  'You look up questions about Rivulet in notes. Search for each part of the question at once, only on the page that you were given, if any. ' +
  'Read all notes that look useful in parallel, then report what they say.'

export function createScout(provider: ProviderSettings): AgentDefinition {
  const model = chooseModel(provider, scoutOffline)
  const tools = createResearchTools()
  return defineAgent(
    'scout',
    async turn => {
      await turn.run({ model, tools, system: instructions })
    },
    { description: 'Looks a question up in notes about Rivulet, with several tools at once' },
  )
}
