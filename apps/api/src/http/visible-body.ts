/**
 * What a caller is shown of an answer. One that may change a task and not read it, by its token or by its key, gets the ids and the state of what it
 * changed: not the name, the params and the metadata of the task, nor what a turn was given and came to. A task that it has just created
 * holds what it sent itself, and is shown whole.
 */
import type { Json, JsonObject } from '@rivulet/protocol'
import { mayRead, type Principal } from '../access/principal.ts'
import type { Answer } from '../store/access/idempotency.ts'

export function visibleBody({ status, body }: Answer, principal: Principal): Json {
  if (mayRead(principal) || status === 201 || !isObject(body)) return body
  const { task, turn } = body
  return { ...body, ...(isObject(task) && { task: withoutContents(task) }), ...(isObject(turn) && { turn: withoutInput(turn) }) }
}

/** These two have to be there. */
function withoutContents({ name: _, ...task }: JsonObject): JsonObject {
  return { ...task, params: null, metadata: {} }
}

function withoutInput({ input: _input, params: _params, usage: _usage, error: _error, ...turn }: JsonObject): JsonObject {
  return turn
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
