/**
 * Tools that the caller of an agent sends with its request and runs itself, as pages of AG-UI and clients of OpenAI do. The turn waits for each result.
 *
 * The caller knows the schema of its tools, so it checks the arguments, not this process.
 */
import { isObject, type JsonObject, RivuletError } from '@rivulet/protocol'
import { requireName, runsElsewhere, type Tool } from './tool.ts'

/** @param given a list of `{ name, description?, parameters? }`, as `turn.params.tools` has it; absent if the caller has none */
export function clientTools(given: unknown): Tool[] {
  if (given === undefined || given === null) return []
  if (!Array.isArray(given)) throw new RivuletError('validation_failed', 'The tools of a caller must be a list')
  return given.map(toolOf)
}

function toolOf(given: unknown): Tool {
  const { name, description, parameters } = isObject(given) ? given : {}
  if (typeof name !== 'string') throw new RivuletError('validation_failed', 'A tool of a caller must have a name')
  requireName(name)
  return {
    ...{ name, description: typeof description === 'string' ? description : '', sequential: false, where: 'client' },
    // Params are JSON.
    parameters: isObject(parameters) ? (parameters as JsonObject) : { type: 'object', properties: {} },
    check: async () => ({ isValid: true, run: runsElsewhere }),
  }
}
