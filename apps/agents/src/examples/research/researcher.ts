/** An agent that thinks and uses several tools at once: viewers see the reasoning, and each call with its progress. */
import { type AgentDefinition, defineAgent } from '@rivulet/worker'
import { chooseModel, type ProviderSettings } from '../model-choice.ts'
import { researchOffline } from './offline-research.ts'
import { createResearchTools } from './research-tools.ts'

const instructions =
  'You research questions about Rivulet. Search for each part of the question at once, read all notes that look useful in parallel, then answer.'

export function createResearcher(provider: ProviderSettings): AgentDefinition {
  const model = chooseModel(provider, researchOffline)
  const tools = createResearchTools()
  return defineAgent(
    'researcher',
    async turn => {
      await turn.run({ model, tools, system: instructions })
    },
    { description: 'Researches a question about Rivulet with several tools at once' },
  )
}
