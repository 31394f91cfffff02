/** A model with two tools, like most agents. Without a key or URL of a provider, a scripted model replaces it. */
import { type AgentDefinition, defineAgent } from '@rivulet/worker'
import { chooseModel, type ProviderSettings } from '../model-choice.ts'
import { createAssistantTools } from './assistant-tools.ts'
import { offlineReply } from './offline-replies.ts'

const instructions = 'You are a helpful assistant. Be brief. Use your tools for the time and for calculations.'

export function createAssistant(provider: ProviderSettings): AgentDefinition {
  const model = chooseModel(provider, offlineReply)
  const tools = createAssistantTools()
  return defineAgent(
    'assistant',
    async turn => {
      await turn.run({ model, tools, system: instructions })
    },
    { description: 'Replies with a model that can tell the time and calculate' },
  )
}
