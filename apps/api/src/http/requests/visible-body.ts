/**
 * Removes from a response what its caller may not read, for every route that changes something: a caller that may change but not read a task gets the ids and
 * the state of what it changed, in whatever protocol. An entity shows the fields that are listed here, and no other.
 *
 * A route whose response of one status has only what its caller has just sent declares that status as `echoes`. The name and the size of a file that the
 * caller refers to by its id are not of them, because another caller may have uploaded it.
 */
import { isObject, type Json, type JsonObject, taskIdSchema } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { mayRead, type Principal } from '../../access/principal.ts'

export function hideContents(scope: FastifyInstance): void {
  scope.addHook('preSerialization', async ({ principal, routeOptions: { config } }, reply, payload) => {
    const { scope: needed, echoes } = config.contract ?? {}
    if (needed !== 'tasks:write' || reply.statusCode >= 400 || mayRead(principal) || !isJsonObject(payload)) return payload
    return reply.statusCode === echoes ? echoedBody(payload) : visibleBody(payload, principal)
  })
}

function echoedBody(body: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(body).map(([name, entity]) => {
      if (!isObject(entity)) return [name, entity]
      const { input, inputs } = entity
      const sent = {
        ...(input !== undefined && { input: sentContent(input) }),
        ...(Array.isArray(inputs) && { inputs: inputs.map(sentContent) }),
      }
      return [name, { ...entity, ...sent }]
    }),
  )
}

function sentContent(content: Json): Json {
  if (!isObject(content) || content.type !== 'media' || content.file === undefined) return content
  const { name: _, size: _size, ...sent } = content
  return sent
}

function visibleBody(body: JsonObject, principal: Principal): JsonObject {
  if (body.object === 'response') return shownOf(body, shown.response)
  if ('contextId' in body) return a2aTask(body)
  return Object.fromEntries(
    Object.entries(body).flatMap(([name, value]): [string, Json][] => {
      if (!isObject(value)) return Array.isArray(value) ? [] : [[name, value]]
      if ('contextId' in value) return [[name, a2aTask(value)]]
      if (name === 'wait' && principal.token?.can.includes('answer')) return [[name, value]]
      return Object.hasOwn(shown, name) ? [[name, shownOf(value, shown[name as keyof typeof shown])]] : []
    }),
  )
}

/** A field that an entity has to have is empty, as `blank` has it. */
type Shown = { fields: readonly string[]; blank?: JsonObject }

const shown = {
  task: {
    fields: ['id', 'agent', 'parent', 'concurrencyKey', 'status', 'createdAt', 'updatedAt'],
    blank: { params: null, metadata: {} },
  },
  turn: {
    fields: ['id', 'task', 'number', 'status', 'attempt', 'joinedTo', 'joinIndex', 'stopReason', 'queuedAt', 'startedAt', 'finishedAt'],
  },
  wait: {
    fields: ['id', 'task', 'turn', 'agent', 'name', 'kind', 'actions', 'status', 'createdAt', 'expiresAt'],
    blank: { title: '', metadata: {} },
  },
  schedule: { fields: ['id', 'agent', 'cron', 'timezone', 'overlap', 'missed', 'status', 'createdAt', 'nextAt'] },
  run: { fields: ['at', 'task', 'turn', 'skipReason', 'createdAt'] },
  webhook: { fields: ['id', 'events', 'agent', 'status', 'createdAt', 'oldSecretUntil'], blank: { url: '' } },
  delivery: { fields: ['id', 'type', 'task', 'status', 'attempts', 'createdAt', 'nextAt', 'deliveredAt'] },
  /** OpenAI's. */
  response: {
    fields: [
      ...['id', 'object', 'created_at', 'completed_at', 'status', 'model', 'parallel_tool_calls', 'background'],
      ...['previous_response_id', 'conversation'],
    ],
    blank: {
      ...{ output: [], tools: [], tool_choice: 'auto', text: { format: { type: 'text' } }, metadata: {} },
      ...{ instructions: null, usage: null, error: null, incomplete_details: null },
    },
  },
  /** A2A's. */
  status: { fields: ['state', 'timestamp'] },
} as const satisfies Record<string, Shown>

function shownOf(entity: JsonObject, { fields, blank }: Shown): JsonObject {
  return { ...Object.fromEntries(Object.entries(entity).filter(([name]) => fields.includes(name))), ...blank }
}

function a2aTask({ id, contextId, status }: JsonObject): JsonObject {
  // A context of the client's own is the name of its task, which is a content.
  const known = { ...(id !== undefined && { id }), ...(taskIdSchema.safeParse(contextId).success && { contextId }) }
  return { ...known, status: isObject(status) ? shownOf(status, shown.status) : null, artifacts: [], history: [] }
}

/** A route sends only JSON, by construction. */
function isJsonObject(payload: unknown): payload is JsonObject {
  return isObject(payload as Json)
}
