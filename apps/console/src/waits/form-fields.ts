/**
 * A wait's schema as the fields of a form, and what the person typed as the content of the answer. The server decides what fits: this module only
 * converts texts to the types of the schema, so one rule is in one place.
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
  const fields = (schema.properties ?? {}) as Record<string, JsonObject>
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, { default: value }]) => (value === undefined ? [] : [[name, asTyped(value)]])),
  )
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

/** The browser's field has no time zone: the person means their own. */
function momentOf(text: string): string {
  const at = new Date(text)
  return Number.isNaN(at.getTime()) ? text : at.toISOString()
}
