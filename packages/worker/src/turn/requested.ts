/**
 * What a request asks of an agent that accepts it: a format of the output, tools of the caller, and the choice of one of them.
 *
 * The names of the params are those of OpenAI's Responses API.
 */
import { clientTools, type RunSettings } from '@rivulet/agent'
import type { Accepts } from '@rivulet/contract/agents'
import { isObject, type Json, type JsonObject } from '@rivulet/protocol'

/** For `turn.run({ model, ...turn.requested })`. */
export type Requested = Pick<RunSettings, 'tools' | 'toolChoice'> & {
  /** JSON Schema of the output. */
  schema?: JsonObject
}

/** What the API checks params for; the fields that the params of the agent have are its own. */
export function requestedFields({ format, tools }: Accepts): JsonObject {
  return { ...(tools && { tools: { type: 'array' }, tool_choice: {} }), ...(format && { format: { type: 'object' } }) }
}

export function requestedOf(params: unknown, accepts: Accepts): Requested {
  if (!isObject(params)) return {}
  const schema = accepts.format && isObject(params.format) ? schemaOf(params.format as JsonObject) : null
  const toolChoice = accepts.tools ? choiceOf(params.tool_choice as Json | undefined) : undefined
  return {
    ...(accepts.tools && { tools: clientTools(params.tools) }),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(schema && { schema }),
  }
}

function schemaOf({ type, schema }: JsonObject): JsonObject | null {
  if (type === 'json_object') return { type: 'object' }
  return type === 'json_schema' && isObject(schema) ? (schema as JsonObject) : null
}

function choiceOf(choice: Json | undefined): Requested['toolChoice'] {
  if (choice === 'auto' || choice === 'none' || choice === 'required') return choice
  return isObject(choice) && typeof choice.name === 'string' ? { name: choice.name } : undefined
}
