/** A model with two tools: what most agents are. Without a key or an address of a provider a scripted stand-in answers. */
import { type Model, openaiModel, runAgent, scriptedModel } from '@rivulet/agent'
import { type AgentDefinition, defineAgent } from '@rivulet/worker'
import { createAssistantTools } from './assistant-tools.ts'
import { offlineReply } from './offline-replies.ts'

export type AssistantOptions = { baseUrl?: string | undefined; apiKey?: string | undefined; model?: string | undefined }

const instructions = 'You are a helpful assistant. Be brief. Use your tools for the time and for calculations.'

export function createAssistant(options: AssistantOptions): AgentDefinition {
  const model = modelFor(options)
  const tools = createAssistantTools()
  return defineAgent(
    'assistant',
    async turn => {
      const messages = await turn.history()
      await turn.autoSend(runAgent({ model, tools, system: instructions, messages, signal: turn.signal }))
    },
    { description: 'Answers with a model that can tell the time and calculate' },
  )
}

export function modelFor({ baseUrl, apiKey, model = 'gpt-4.1-mini' }: AssistantOptions): Model {
  if (baseUrl || apiKey) return openaiModel({ baseUrl, apiKey, model })
  // Calls are named by the seed, and a conversation outlives a process.
  return scriptedModel(offlineReply, { chunks: 'words', delayMs: 20, seed: Date.now() })
}
