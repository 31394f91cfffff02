/**
 * A schema of a wait, of an agent's params or of a tool's arguments as the fields of a form, and what the person typed as the value. The server decides what
 * fits: this module only converts texts to the types of the schema, so one rule is in one place.
 */
import type { Json, JsonObject } from '@rivulet/client'

type Named = { name: string; label: string; note: string; isRequired: boolean }

export type FormField =
  | (Named & { kind: 'text'; type: 'text' | 'email' | 'url' | 'date' | 'time' | 'datetime-local'; isLong: boolean })
  | (Named & { kind: 'number'; step: string })
  | (Named & { kind: 'boolean' })
  | (Named & { kind: 'choice'; options: readonly string[] })
  | (Named & { kind: 'choices'; options: readonly string[] })

/** What the person typed, by the name of the field. */
export type Draft = Readonly<Record<string, string | boolean | readonly string[]>>

const inputTypes = { email: 'email', uri: 'url', date: 'date', time: 'time', 'date-time': 'datetime-local' } as const
const longText = 200

/** Whether each field is a text, a number, a switch or a choice. The schemas of waits always are; others are edited as JSON where they are not. */
export function canDraw(schema: JsonObject | undefined): schema is JsonObject {
  const { type, properties, additionalProperties = false } = schema ?? {}
  if (type !== 'object' || additionalProperties !== false || typeof properties !== 'object' || properties === null) return false
  const fields = Object.values(properties as Record<string, JsonObject>)
  return (
    fields.length > 0 &&
    fields.every(({ type, items, enum: choices, const: only }) => {
      if (type === 'array') return areTexts((items as JsonObject | undefined)?.enum)
      if (type === 'string') return choices === undefined || areTexts(choices)
      return ['number', 'integer', 'boolean'].includes(String(type)) && choices === undefined && only === undefined
    })
  )
}

function areTexts(choices: Json | undefined): boolean {
  return Array.isArray(choices) && choices.every(choice => typeof choice === 'string')
}

export function fieldsOf(schema: JsonObject): FormField[] {
  const required = (schema.required ?? []) as string[]
  return Object.entries((schema.properties ?? {}) as Record<string, JsonObject>).map(([name, field]) => {
    const { title, description } = field
    const label = typeof title === 'string' ? title : name
    return fieldOf(field, { name, label, note: typeof description === 'string' ? description : '', isRequired: required.includes(name) })
  })
}

function fieldOf(field: JsonObject, named: Named): FormField {
  const { type, format, enum: choices, const: only, items, multipleOf, maxLength } = field
  switch (type) {
    case 'boolean':
      return { ...named, kind: 'boolean' }
    case 'number':
    case 'integer':
      return { ...named, kind: 'number', step: String(multipleOf ?? (type === 'integer' ? 1 : 'any')) }
    case 'array':
      return { ...named, kind: 'choices', options: (items as { enum: string[] }).enum }
    default: {
      if (Array.isArray(choices)) return { ...named, kind: 'choice', options: choices as string[] }
      if (typeof only === 'string') return { ...named, kind: 'choice', options: [only] }
      const known = typeof format === 'string' && Object.hasOwn(inputTypes, format)
      const isLong = format === undefined && (typeof maxLength !== 'number' || maxLength > longText)
      return { ...named, kind: 'text', type: known ? inputTypes[format as keyof typeof inputTypes] : 'text', isLong }
    }
  }
}

/** The defaults of the schema; what is required and has no default is left to the person. */
export function draftOf(schema: JsonObject): Draft {
  const properties = (schema.properties ?? {}) as Record<string, JsonObject>
  const defaults = Object.entries(properties).flatMap(([name, { default: value }]) => (value === undefined ? [] : [[name, value]]))
  return typedFrom(fieldsOf(schema), Object.fromEntries(defaults))
}

/** A value as if it had been typed; what has no field is left out. */
export function typedFrom(fields: readonly FormField[], value: Json): Draft {
  const given = objectIn(value)
  return Object.fromEntries(
    fields.flatMap(field => {
      const each = given[field.name]
      if (each === undefined) return []
      const isMoment = field.kind === 'text' && field.type === 'datetime-local' && typeof each === 'string'
      return [[field.name, isMoment ? localOf(each) : asTyped(each)]]
    }),
  )
}

/** The names that a value has and the form does not draw, if the schema allows them: JSON Schema does unless it says otherwise. */
export function undrawnIn(schema: JsonObject, value: Json): string[] {
  if (schema.additionalProperties === false) return []
  return Object.keys(objectIn(value)).filter(name => !Object.hasOwn((schema.properties ?? {}) as JsonObject, name))
}

/**
 * A value as the person edited it. A field that still shows what the value had keeps that, because a field may show less: a moment without its time zone,
 * an empty text as nothing. What the form does not draw stays too.
 */
export function editedFrom(schema: JsonObject, value: Json, draft: Draft): JsonObject {
  const given = objectIn(value)
  const fields = fieldsOf(schema)
  const typed = typedFrom(fields, given)
  const isKept = ({ name }: FormField) => Object.hasOwn(typed, name) && JSON.stringify(typed[name]) === JSON.stringify(draft[name])
  const kept = [...undrawnIn(schema, given), ...fields.filter(isKept).map(({ name }) => name)]
  return {
    ...Object.fromEntries(kept.map(name => [name, given[name] as Json])),
    ...contentOf(
      fields.filter(field => !isKept(field)),
      draft,
    ),
  }
}

function objectIn(value: Json): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}

function asTyped(value: Json): string | boolean | readonly string[] {
  if (typeof value === 'boolean') return value
  return Array.isArray(value) ? value.map(String) : String(value)
}

/** An optional field that is empty is left out. A number that cannot be read stays text, because the server names what is wrong. */
export function contentOf(fields: readonly FormField[], draft: Draft): JsonObject {
  const content: JsonObject = {}
  for (const field of fields) {
    const value = readingOf(field, draft[field.name])
    if (value !== undefined) content[field.name] = value
  }
  return content
}

function readingOf(field: FormField, typed: Draft[string] | undefined): Json | undefined {
  switch (field.kind) {
    case 'boolean':
      return typed === undefined && !field.isRequired ? undefined : typed === true
    case 'choices': {
      const chosen = Array.isArray(typed) ? [...typed] : []
      return chosen.length > 0 || field.isRequired ? chosen : undefined
    }
    default: {
      const text = typeof typed === 'string' ? typed : ''
      if (text === '') return field.isRequired && field.kind === 'text' && field.type === 'text' ? '' : undefined
      if (field.kind === 'number') return Number.isFinite(Number(text)) ? Number(text) : text
      return field.kind === 'text' && field.type === 'datetime-local' ? momentOf(text) : text
    }
  }
}

/** A moment as the browser's field takes it, to the last digit that it has. */
function localOf(moment: string): string {
  const at = new Date(moment)
  if (Number.isNaN(at.getTime())) return moment
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().replace(/(:00)?\.000Z$|Z$/, '')
}

/** The browser's field has no time zone: the person means their own. */
function momentOf(text: string): string {
  const at = new Date(text)
  return Number.isNaN(at.getTime()) ? text : at.toISOString()
}
