/** What an MCP server asks its caller for, as the questions of a turn, and what people say to them as responses. */
import { formSchemaFault, type Json, type JsonObject } from '@rivulet/protocol'
import { AgentError } from '../agent-error.ts'
import type { ToolAnswer } from '../loop/durable.ts'
import type { RoundQuestion } from '../tools/round.ts'
import { isObject } from './mcp-client.ts'

export function questionsOf(inputRequests: Json | undefined): Record<string, RoundQuestion> {
  const entries = isObject(inputRequests) ? Object.entries(inputRequests) : []
  return Object.fromEntries(entries.map(([key, request]) => [key, questionOf(request)]))
}

function questionOf(request: Json): RoundQuestion {
  if (!isObject(request) || request.method !== 'elicitation/create' || !isObject(request.params))
    throw new AgentError('The MCP server asks for something that a turn cannot give')
  const { message, url, requestedSchema } = request.params
  const title = typeof message === 'string' && message !== '' ? message : 'The tool needs an answer'
  if (typeof url === 'string') return { title, detail: url }
  const schema = formOf(requestedSchema)
  return Object.keys(schema.properties as JsonObject).length === 0 ? { title } : { title, schema }
}

export function responsesOf(answers: Record<string, ToolAnswer>): JsonObject {
  const entries = Object.entries(answers).map(([key, { action, content }]): [string, JsonObject] => {
    if (action === 'decline') return [key, { action: 'decline' }]
    return [key, { action: 'accept', content: isObject(content as Json) ? (content as JsonObject) : {} }]
  })
  return Object.fromEntries(entries)
}

/** MCP's forms have choices with titles, and patterns, which ours do not have. The server checks the answer, and may ask again. */
function formOf(requested: Json | undefined): JsonObject {
  const given = isObject(requested) ? requested : {}
  const fields = Object.entries(isObject(given.properties) ? given.properties : {})
  const properties = Object.fromEntries(fields.map(([name, field]) => [name, fieldOf(field)]))
  const form: JsonObject = { type: 'object', properties, ...(given.required !== undefined && { required: given.required }) }
  const fault = formSchemaFault(form)
  if (fault) throw new AgentError(`The MCP server asks with a form that cannot be drawn, at ${fault.path}: ${fault.reason}`)
  return form
}

function fieldOf(field: Json): Json {
  if (!isObject(field)) return field
  const { oneOf, anyOf, enumNames: _, pattern: __, items, ...rest } = field
  const choices = choicesOf(oneOf ?? anyOf)
  const own = choices ? { ...rest, type: rest.type ?? 'string', enum: choices } : rest
  if (!isObject(items)) return own
  const { oneOf: one, anyOf: any, ...ofItems } = items
  const listed = choicesOf(one ?? any)
  return { ...own, items: listed ? { ...ofItems, type: 'string', enum: listed } : ofItems }
}

function choicesOf(titled: Json | undefined): Json[] | null {
  return Array.isArray(titled) ? titled.map(choice => (isObject(choice) ? (choice.const ?? null) : choice)) : null
}
