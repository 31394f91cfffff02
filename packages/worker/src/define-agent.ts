/**
 * Declares an agent: a name, and a function that handles one turn. A generator function yields updates; any other function sends output through
 * its turn.
 */
import { agentNameSchema, helloBody, nameRule, RivuletError, toStorableText, type Update } from '@rivulet/protocol'
import type { Turn } from './turn.ts'

export type AgentHandler = (turn: Turn) => Promise<void> | AsyncGenerator<Update, void, void>

export type AgentDefinition = { name: string; description: string; run: AgentHandler }

export function defineAgent(name: string, run: AgentHandler, options: { description?: string } = {}): AgentDefinition {
  const checked = agentNameSchema.safeParse(name)
  if (!checked.success) throw new RivuletError('validation_failed', `An agent cannot be named ${JSON.stringify(name)}: ${nameRule}`)
  if (typeof run !== 'function') throw new RivuletError('validation_failed', `Agent ${name} needs a function that handles a turn`)
  const described = { name, description: toStorableText(options.description ?? '') }
  // Here, and not where the server refuses it: a worker would ask for ever.
  if (!helloBody.shape.agents.element.safeParse(described).success)
    throw new RivuletError('validation_failed', `The description of agent ${name} is too long`)
  return { ...described, run }
}
