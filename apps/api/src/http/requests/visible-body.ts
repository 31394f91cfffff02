/**
 * Removes from a response what its caller may not read. A caller that may change but not read a task gets the ids and the state of what it
 * changed, without the name, params and metadata of the task and without the input and result of a turn. A task that it has just created
 * contains only its own data, so it gets that task complete.
 */
import type { Json, JsonObject } from '@rivulet/protocol'
import { mayRead, type Principal } from '../../access/principal.ts'
import type { StoredResponse } from '../../store/access/idempotency.ts'

export function visibleBody({ status, body }: StoredResponse, principal: Principal): Json {
  if (mayRead(principal) || status === 201 || !isObject(body)) return body
  const { task, turn } = body
  return { ...body, ...(isObject(task) && { task: withoutContents(task) }), ...(isObject(turn) && { turn: withoutInput(turn) }) }
}

/** These two have to be there. */
function withoutContents({ name: _name, budget: _budget, ...task }: JsonObject): JsonObject {
  return { ...task, params: null, metadata: {} }
}

function withoutInput(turn: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(turn).filter(([name]) => !contents.has(name)))
}

const contents = new Set(['input', 'inputs', 'params', 'usage', 'usageTotal', 'cost', 'error'])

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
