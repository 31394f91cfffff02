/**
 * The params that a request has for its agent beside an input: tools of the caller, the choice of one of them, and a format of the output.
 *
 * An agent gets them as params if it has announced that it accepts them. For any other agent the request is rejected, so that nothing is silently
 * done otherwise.
 */
import type { AgentSettings } from '@rivulet/contract/internal'
import { isObject, type Json, type JsonObject } from '@rivulet/protocol'
import { wrong } from '../openai-input.ts'
import { serverLabel } from './output-item.ts'

export type Requested = {
  tools?: JsonObject[] | null | undefined
  toolChoice?: Json | undefined
  format?: JsonObject | null | undefined
  /** The field of the request that has the format, for the error. */
  formatField: 'text/format' | 'response_format'
}

/** An agent that accepts a field always gets it, because those of an earlier request do not count for this one. */
export function requestedParams(settings: AgentSettings, { tools, toolChoice, format, formatField }: Requested): JsonObject {
  const { accepts = {}, params } = settings
  const functions = functionsOf(tools ?? [])
  const used = toolChoice === 'none' ? [] : functions
  const names = isObject(params?.properties) ? Object.keys(params.properties) : []
  if (used.length > 0 && !accepts.tools && !names.includes('tools')) throw wrong('tools', noTools)
  const choice = choiceOf(toolChoice, functions)
  if (choice && !accepts.tools) throw wrong('tool_choice', noTools)
  const wanted = formatOf(format, formatField)
  if (wanted && !accepts.format) throw wrong(formatField, noFormat)
  return {
    ...((accepts.tools || used.length > 0) && { tools: used }),
    ...(choice && { tool_choice: choice }),
    ...(accepts.format && { format: wanted ?? { type: 'text' } }),
  }
}

/**
 * In chat completions the fields of a function are one level deeper; an agent gets them as those of responses. The server `rivulet` stands for the tools that the
 * agent runs itself: some SDKs need it to let a person approve their calls.
 */
function functionsOf(tools: readonly JsonObject[]): JsonObject[] {
  return tools.flatMap((tool, place) => {
    if (tool.type === 'mcp' && tool.server_label === serverLabel) return []
    const flat: JsonObject = isObject(tool.function) ? { type: tool.type ?? null, ...tool.function } : tool
    if (flat.type !== 'function' || typeof flat.name !== 'string') throw wrong(`tools/${place}`, noTools)
    return [flat]
  })
}

/** Null where the agent decides. */
function choiceOf(choice: Json | undefined, functions: readonly JsonObject[]): Json {
  if (choice === undefined || choice === null || choice === 'auto' || choice === 'none') return null
  if (choice === 'required') return choice
  const named = isObject(choice) && isObject(choice.function) ? choice.function : choice
  if (!isObject(choice) || choice.type !== 'function' || !isObject(named) || typeof named.name !== 'string')
    throw wrong('tool_choice', 'Use none, auto, required, or a function by its name')
  if (!functions.some(({ name }) => name === named.name)) throw wrong('tool_choice', 'The request has no function of this name')
  return { type: 'function', name: named.name }
}

/** Null for a text. In chat completions the fields of a schema are one level deeper. */
function formatOf(format: JsonObject | null | undefined, field: Requested['formatField']): JsonObject | null {
  const { type = 'text' } = format ?? {}
  if (type === 'text') return null
  if (type === 'json_object') return { type }
  const { type: _, json_schema: nested, ...flat } = format ?? {}
  const fields = isObject(nested) ? nested : flat
  if (type !== 'json_schema' || !isObject(fields.schema)) throw wrong(field, 'Use text, json_object, or json_schema with a schema')
  return { type, ...fields }
}

const noTools =
  'The agent uses its own tools. One that is defined with accepts: { tools: true } also takes functions of the caller, and no other tools'
const noFormat = 'The agent decides the format of its output. One that is defined with accepts: { format: true } follows the caller'
