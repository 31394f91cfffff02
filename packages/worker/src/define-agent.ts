/**
 * Declares an agent: a name, and a function that handles one turn. A generator function yields updates; any other function sends output through
 * its turn.
 */
import type { Accepts, Skill } from '@rivulet/contract/agents'
import { type AgentSettings, helloBody } from '@rivulet/contract/internal'
import { isObject, type Json, nameRule, objectSchemaOf, RivuletError, toStorableText, type Update } from '@rivulet/protocol'
import { z } from 'zod'
import { type Requested, requestedFields, requestedOf } from './turn/requested.ts'
import type { Turn } from './turn/turn.ts'
import type { DeltaMode } from './writer/unsent-events.ts'

export type AgentHandler<Params = Json> = (turn: Turn<Params>) => Promise<void> | AsyncGenerator<Update, void, void>

export type AgentOptions = {
  name: string
  description?: string
  /** How many of its turns one worker runs at a time. Default: as many as the worker has room for. */
  concurrency?: number
  /** Defaults for tasks whose caller does not say. */
  maxAttempts?: number
  timeoutMs?: number
  /** A turn stays with the version of the worker that began it (`version` of `createWorker`), as long as workers of that version run. */
  pin?: boolean
  /** What it can do, for its A2A card. Default: one skill, its description. */
  skills?: Skill[]
  /** The media types that it takes, for its A2A card. Default: all. */
  inputModes?: string[]
  /** What of a request it follows, as `turn.requested`: a format of the output, and tools of the caller. Default: nothing; the API rejects such a request. */
  accepts?: Accepts
  /**
   * How deltas reach the log. `merged` (default): at once, and merged while an append is on its way. `each`: every delta is an event. `off`: whole messages
   * only, when they are closed. What is stored is the same.
   */
  deltas?: DeltaMode
}

/** An agent whose params have a schema: callers get 400 for others, and `turn.params` has its type. */
export type AgentWithParams<S extends z.ZodObject> = AgentOptions & { params: S; run: AgentHandler<z.output<S>> }

export type AgentDefinition = {
  name: string
  description: string
  /** What workers announce for its tasks. */
  settings: AgentSettings
  concurrency?: number
  deltas?: DeltaMode
  run: AgentHandler
}

export function defineAgent<S extends z.ZodObject>(options: AgentWithParams<S>): AgentDefinition
export function defineAgent(options: AgentOptions & { params?: undefined; run: AgentHandler }): AgentDefinition
export function defineAgent(name: string, run: AgentHandler, options?: { description?: string }): AgentDefinition
export function defineAgent(
  given: string | (AgentOptions & { params?: z.ZodObject | undefined; run: AgentHandler | AgentHandler<never> }),
  handler?: AgentHandler,
  more: { description?: string } = {},
): AgentDefinition {
  const options = typeof given === 'object' && given !== null ? given : { ...more, name: given, run: handler as AgentHandler }
  const { name, description = '', params, concurrency, maxAttempts, timeoutMs, pin, skills, inputModes, accepts, deltas, run } = options
  const refuse = (reason: string) => new RivuletError('validation_failed', reason)
  if (!announced.shape.name.safeParse(name).success) throw refuse(`An agent cannot be named ${JSON.stringify(name)}: ${nameRule}`)
  if (typeof run !== 'function') throw refuse(`Agent ${name} needs a function that handles a turn`)
  if (concurrency !== undefined && !(Number.isInteger(concurrency) && concurrency > 0))
    throw refuse(`concurrency of agent ${name} must be an integer of at least 1`)
  if (deltas !== undefined && !deltaModes.includes(deltas)) throw refuse(`deltas of agent ${name} must be one of ${deltaModes.join(', ')}`)
  const settings = {
    ...(params && { params: schemaOf(name, params, accepts) }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(maxAttempts !== undefined && { maxAttempts }),
    ...(pin !== undefined && { pin }),
    ...(skills && { skills }),
    ...(inputModes && { inputModes }),
    ...(accepts && { accepts }),
  }
  const described = { name, description: toStorableText(description) }
  // Here, and not where the server refuses it: a worker would ask for ever.
  const checked = announced.safeParse({ ...described, ...settings })
  const [issue] = checked.error?.issues ?? []
  if (issue) throw refuse(`The ${String(issue.path[0])} of agent ${name} cannot be announced: ${issue.message}`)
  // The params that reach the handler are those of its schema.
  const typed = (params || accepts ? (turn: Turn) => run(withParams(turn, params, accepts) as Turn<never>) : run) as AgentHandler
  return { ...described, settings, ...(concurrency !== undefined && { concurrency }), ...(deltas && { deltas }), run: typed }
}

const deltaModes: readonly DeltaMode[] = ['merged', 'each', 'off']
const announced = helloBody.shape.agents.element

/** The API refuses a field that the schema does not have, because zod would drop it and its caller would not notice. A loose object takes any field. */
function schemaOf(name: string, params: z.ZodObject, accepts: Accepts = {}) {
  try {
    const { properties, ...schema } = objectSchemaOf(params, { isClosed: true })
    return { ...schema, properties: { ...requestedFields(accepts), ...(isObject(properties) && properties) } }
  } catch (cause) {
    throw new RivuletError('validation_failed', `params of agent ${name} ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}

/** Params may have been accepted before this version of the agent, so they are checked here too, and their defaults are filled in. */
function withParams(turn: Turn, schema: z.ZodObject | undefined, accepts: Accepts = {}): Turn<unknown> {
  const requested = requestedOf(turn.params, accepts)
  if (!schema) return Object.assign(turn, { requested })
  const added = Object.keys(requestedFields(accepts)).filter(name => !Object.hasOwn(schema.shape, name))
  const given = isObject(turn.params) ? Object.entries(turn.params).filter(([name]) => !added.includes(name)) : null
  const parsed = schema.safeParse(given ? Object.fromEntries(given) : (turn.params ?? {}))
  if (parsed.success) return Object.assign<Turn, { params: unknown; requested: Requested }>(turn, { params: parsed.data, requested })
  throw new RivuletError('validation_failed', `The params do not fit the agent: ${z.prettifyError(parsed.error)}`)
}
