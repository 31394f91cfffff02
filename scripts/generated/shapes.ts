/** The JSON types of what clients receive, from the schemas: packages/client checks by them, without the validation library. */
import { entities } from '@rivulet/contract/entities'
import { tokenResponse } from '@rivulet/contract/tokens'
import { contentSchema, deltaSchema, eventSchema, wireEventSchema } from '@rivulet/protocol'
import { z } from 'zod'

/** What only operators read is not checked, so that a browser gets no table of it. */
const checked = {
  task: entities.Task,
  summary: entities.TaskSummary,
  turn: entities.Turn,
  message: entities.Message,
  agent: entities.Agent,
  file: entities.File,
  token: tokenResponse,
  key: entities.Key,
  caller: entities.Caller,
  attempt: entities.Attempt,
  step: entities.Step,
  feedEntry: entities.FeedEntry,
  webhook: entities.Webhook,
  limits: entities.AgentLimits,
  schedule: entities.Schedule,
  wait: entities.Wait,
  state: entities.State,
}

type Fields = Record<string, z.ZodType>
const named = new Map<z.ZodType, string>(
  Object.entries({ ...checked, content: contentSchema, delta: deltaSchema }).map(([name, schema]) => [schema, name]),
)

export function shapesText(): string {
  const tables = {
    contents: optionsOf(contentSchema),
    deltas: optionsOf(deltaSchema),
    events: [...optionsOf(eventSchema), ...optionsOf(wireEventSchema)],
    entities: Object.entries(checked).map(([name, { shape }]) => [name, shape] as const),
  }
  const texts = Object.entries(tables).map(([name, rows]) => `export const ${name} = {\n${rows.map(lineOf).join('')}} as const\n`)
  return ['/** The JSON types of what a client receives. Written by `npm run generate`. */\n', ...texts].join('\n')
}

/** A union by `type`: the fields of each type. */
function optionsOf(union: z.ZodType): (readonly [string, Fields])[] {
  const { options } = union as unknown as { options: { shape: Fields }[] }
  return options.map(({ shape: { type, ...fields } }) => [String((type as z.ZodLiteral).value), fields])
}

function lineOf([name, fields]: readonly [string, Fields]): string {
  return `  '${name}': '${Object.entries(fields).map(fieldOf).join(' ')}',\n`
}

/** Of the body of a response: nothing to check for an entity that is not checked, and `-` if there is no body. */
export function fieldsOfBody(body: z.ZodType): string {
  if (!(body instanceof z.ZodObject)) return '-'
  const isChecked = named.has(body) || !Object.values<z.ZodType>(entities).includes(body)
  return isChecked
    ? Object.entries(body.shape as Fields)
        .map(fieldOf)
        .join(' ')
    : ''
}

function fieldOf([name, field]: [string, z.ZodType]): string {
  const kind = kindOf(field)
  return `${name}${isOptional(field) ? '?' : ''}${kind === 'string' ? '' : `:${kind}`}`
}

function isOptional(field: z.ZodType): field is z.ZodOptional | z.ZodDefault {
  return field instanceof z.ZodOptional || field instanceof z.ZodDefault
}

function kindOf(field: z.ZodType): string {
  const name = named.get(field)
  if (name !== undefined) return name
  if (isOptional(field)) return kindOf(field.unwrap() as z.ZodType)
  if (field instanceof z.ZodArray) return `${kindOf(field.element as z.ZodType)}[]`
  if (field instanceof z.ZodRecord || field instanceof z.ZodObject) return 'object'
  if (field instanceof z.ZodEnum || field instanceof z.ZodString || field instanceof z.ZodStringFormat) return 'string'
  if (field instanceof z.ZodNumber) return 'number'
  if (field instanceof z.ZodBoolean) return 'boolean'
  return 'json'
}
