/** The waits of a turn as its handler asks for them: people, events and times, in the words of an agent. */

import type { WantedWait } from '@rivulet/contract/internal'
import {
  type Duration,
  defaultLimits,
  durationMs,
  formSchemaFault,
  type Json,
  type JsonObject,
  maxWaitName,
  RivuletError,
  toStorableJson,
  toStorableText,
  type Wait,
  type WaitAction,
  type WaitAnswer,
  type WaitKind,
  waitDays,
} from '@rivulet/protocol'
import { z } from 'zod'
import type { Waits } from './waits.ts'

export type AskOptions<S extends z.ZodType | undefined = undefined> = {
  title: string
  /** Markdown. */
  detail?: string
  /** What the answer has to contain: a flat object, so that every client can draw it as a form. */
  schema?: S | JsonObject
  /** Default: `form` with a schema, else `approval`. `tool`: the client runs it and responds with its result. */
  kind?: Extract<WaitKind, 'approval' | 'form' | 'tool'>
  /** What may be answered. Default `accept` and `decline`. */
  actions?: readonly WaitAction[]
  /** The call of a tool that is to be approved, or that the client runs. */
  tool?: string
  callId?: string
  arguments?: Json
  /** The JSON Schema of the arguments: an edit has to match it. An object of at most 16 KiB, without references. */
  argumentsSchema?: JsonObject
  assignee?: string
  metadata?: JsonObject
  /** Default seven days. */
  expiresIn?: Duration
  /** An answer that did not come in time is a decline, or fails the turn with `wait_expired`. Default `fail`. */
  onExpire?: 'decline' | 'fail'
  /** How long the worker keeps the turn for the answer before it parks. Default 20 s. */
  hold?: Duration
}

export type Answer<T = Json> = Partial<Pick<WaitAnswer, 'comment' | 'by' | 'at'>> & { action: WaitAction; content?: T }

type ContentOf<S> = S extends z.ZodType ? z.output<S> : Json

export type Ask = {
  ask<S extends z.ZodType | undefined = undefined>(name: string, options: AskOptions<S>): Promise<Answer<ContentOf<S>>>
  askAll<T extends Record<string, AskOptions<z.ZodType | undefined>>>(
    all: T,
  ): Promise<{ [K in keyof T]: Answer<T[K] extends AskOptions<infer S> ? ContentOf<S> : Json> }>
  sleep(name: string, time: { until: Date | string } | { for: Duration }): Promise<void>
  waitFor<T = Json>(name: string, options?: WaitForOptions): Promise<T>
}

export type WaitForOptions = { title?: string; expiresIn?: Duration; hold?: Duration; metadata?: JsonObject }

const holdMs = 20_000
const dayMs = 86_400_000

/** @param within the step that the calling code belongs to */
export function createAsk(waits: Waits, within: () => string | undefined): Ask {
  return { ask, askAll, sleep, waitFor }

  async function ask(name: string, options: AskOptions<z.ZodType | undefined>): Promise<Answer<never>> {
    const [answer] = await open({ [name]: options })
    return answer as Answer<never>
  }

  async function askAll<T extends Record<string, AskOptions<z.ZodType | undefined>>>(all: T): Promise<never> {
    const answers = await open(all)
    return Object.fromEntries(Object.keys(all).map((name, i) => [name, answers[i]])) as never
  }

  async function open(all: Record<string, AskOptions<z.ZodType | undefined>>): Promise<Answer[]> {
    const entries = Object.entries(all)
    if (entries.length === 0) return []
    const wanted = entries.map(([name, options]) => wantedOf(name, options))
    const held = Math.max(...entries.map(([name, { hold = holdMs }]) => lengthOf(name, 'hold', hold)))
    const closed = await openOutside(wanted, held)
    return closed.map((wait, i) => answerOf(wait, entries[i]?.[1] as AskOptions<z.ZodType | undefined>))
  }

  async function sleep(name: string, time: { until: Date | string } | { for: Duration }): Promise<void> {
    const expires = 'until' in time ? { at: momentOf(name, time.until).toISOString() } : { inMs: lengthOf(name, 'for', time.for) }
    const leftMs = 'at' in expires ? Date.parse(expires.at) - Date.now() : expires.inMs
    const wanted = { name: nameOf(name), kind: 'timer', title: `Until ${name}`, actions: [], metadata: {}, expires } as const
    // A short sleep is slept here. A long one needs no worker.
    await openOutside([{ ...wanted, actions: [] }], leftMs <= holdMs ? holdMs : 0)
  }

  async function waitFor<T>(name: string, options: WaitForOptions = {}): Promise<T> {
    const { title = `Waiting for ${name}`, expiresIn = waitDays * dayMs, hold = holdMs, metadata = {} } = options
    const expires = { inMs: lengthOf(name, 'expiresIn', expiresIn) }
    const wanted: WantedWait = {
      name: nameOf(name),
      kind: 'event',
      title,
      actions: [],
      metadata: storable(metadata) as JsonObject,
      expires,
    }
    const [wait] = await openOutside([wanted], lengthOf(name, 'hold', hold))
    if (wait?.status !== 'answered') throw expired(name)
    return wait.answer?.content as T
  }

  function openOutside(wanted: readonly WantedWait[], held: number): Promise<Wait[]> {
    const step = within()
    if (step !== undefined)
      throw new RivuletError(
        'bad_call',
        `Wait "${wanted[0]?.name}" is asked inside step "${step}": a step is stored when it ends, so ask outside`,
      )
    return waits.open(wanted, held)
  }
}

function wantedOf(name: string, options: AskOptions<z.ZodType | undefined>): WantedWait {
  const {
    title,
    detail,
    schema,
    actions = ['accept', 'decline'],
    tool,
    callId,
    assignee,
    metadata = {},
    expiresIn = waitDays * dayMs,
  } = options
  if (typeof title !== 'string' || title === '') throw new RivuletError('bad_call', `Wait "${name}" needs a title`)
  const form = schema === undefined ? undefined : formOf(name, schema)
  return {
    name: nameOf(name),
    kind: options.kind ?? (form ? 'form' : 'approval'),
    title: toStorableText(title),
    ...(detail !== undefined && { detail: toStorableText(detail) }),
    ...(form && { schema: form }),
    ...(tool !== undefined && { tool }),
    ...(callId !== undefined && { callId }),
    ...(options.arguments !== undefined && { arguments: storable(options.arguments) }),
    ...(options.argumentsSchema && { argumentsSchema: storable(options.argumentsSchema) as JsonObject }),
    actions: [...actions],
    ...(assignee !== undefined && { assignee }),
    metadata: storable(metadata) as JsonObject,
    expires: { inMs: lengthOf(name, 'expiresIn', expiresIn) },
  }
}

/** A schema of zod says with a pattern what its format says as well; the server checks the format. */
function formOf(name: string, schema: z.ZodType | JsonObject): JsonObject {
  const json = storable(schema instanceof z.ZodType ? z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) : schema)
  const form = isObject(json) ? withoutPatterns(json) : {}
  const fault = formSchemaFault(form)
  if (fault)
    throw new RivuletError('bad_call', `The schema of wait "${name}" cannot be drawn by every client, at ${fault.path}: ${fault.reason}`)
  return form
}

function withoutPatterns({ $schema: _, ...schema }: JsonObject): JsonObject {
  if (!isObject(schema.properties)) return schema
  const properties = Object.entries(schema.properties).map(([name, field]) => {
    if (!isObject(field) || field.format === undefined) return [name, field]
    const { pattern: __, ...rest } = field
    return [name, rest]
  })
  return { ...schema, properties: Object.fromEntries(properties) }
}

function answerOf(wait: Wait, { schema, onExpire = 'fail' }: AskOptions<z.ZodType | undefined>): Answer {
  if (wait.status === 'answered' && wait.answer) {
    const { content, ...answer } = wait.answer
    if (content === undefined) return answer
    return { ...answer, content: schema instanceof z.ZodType && answer.action !== 'decline' ? (schema.parse(content) as Json) : content }
  }
  if (onExpire === 'decline') return { action: 'decline', comment: 'expired' }
  throw expired(wait.name)
}

function expired(name: string): RivuletError {
  return new RivuletError('wait_expired', `Wait "${name}" was not answered in time`)
}

function nameOf(name: unknown): string {
  if (typeof name === 'string' && name !== '' && name.length <= maxWaitName && toStorableText(name) === name) return name
  throw new RivuletError('bad_call', `The name of a wait must have 1 to ${maxWaitName} characters`)
}

function lengthOf(name: string, field: string, value: Duration): number {
  const ms = durationMs(value)
  if (ms === null) throw new RivuletError('bad_call', `${field} of wait "${name}" is no length of time: use '20s', '3d' or milliseconds`)
  return ms
}

function momentOf(name: string, until: Date | string): Date {
  const moment = new Date(until)
  if (Number.isNaN(moment.getTime())) throw new RivuletError('bad_call', `until of wait "${name}" is no date`)
  return moment
}

function storable(value: unknown): Json {
  return toStorableJson(value, defaultLimits.jsonDepth)
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
