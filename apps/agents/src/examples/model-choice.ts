/** The model of an example agent: a provider's model if a key or URL is configured, otherwise a scripted model that plays `offline`. */
import { type Model, openaiModel, type ScriptFactory, scriptedModel } from '@rivulet/agent'

export type ProviderSettings = { baseUrl?: string | undefined; apiKey?: string | undefined; model?: string | undefined }

export function chooseModel({ baseUrl, apiKey, model = 'gpt-4.1-mini' }: ProviderSettings, offline: ScriptFactory): Model {
  if (baseUrl || apiKey) return openaiModel({ baseUrl, apiKey, model })
  // Calls are named by the seed, and a conversation outlives a process.
  return scriptedModel(offline, { chunks: 'words', delayMs: 20, seed: Date.now() })
}
