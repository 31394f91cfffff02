/** What the user typed, as the request body that the server accepts. */
import type { CreateTaskInput, Json } from '@rivulet/client'

export type TaskDraft = { agent: string; input: string; isJson: boolean; params: string; name: string }

/** Throws a sentence for malformed JSON. */
export function bodyOf({ agent, input, isJson, params, name }: TaskDraft): CreateTaskInput {
  return {
    agent,
    ...(input.trim() !== '' && { input: isJson ? { type: 'data', data: parsed('The input', input) } : input }),
    ...(params.trim() !== '' && { params: parsed('The parameters', params) }),
    ...(name.trim() !== '' && { name: name.trim() }),
  } as CreateTaskInput

  function parsed(what: string, text: string): Json {
    try {
      return JSON.parse(text)
    } catch (reason) {
      throw new Error(`${what}: ${reason instanceof Error ? reason.message : 'not JSON'}`)
    }
  }
}
