/**
 * The JSON Schemas that every client can draw as a form: one flat object of strings, numbers, booleans, choices and lists of choices.
 *
 * A keyword that is not listed here is refused, because a client that ignored it would accept what the server rejects. `pattern` is refused, because
 * running an agent's regular expression on a person's text could block the server.
 */
import type { ErrorDetail } from '../errors.ts'
import { type Json, type JsonObject, pointerTo } from './json.ts'
import { isObject } from './merge-patch.ts'

/** The formats of a string, each with the check of its text. */
const formats: Record<string, (text: string) => boolean> = {
  email: text => /^[^\s@]{1,64}@[^\s@.]+(\.[^\s@.]+)+$/.test(text) && text.length <= 254,
  uri: text => /^[a-z][a-z\d+.-]*:\S+$/i.test(text),
  date: text =>
    /^\d{4}-\d\d-\d\d$/.test(text) && isMoment(`${text}T00:00:00Z`) && new Date(`${text}T00:00:00Z`).toISOString().startsWith(text),
  time: text => /^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?$/.test(text),
  'date-time': text => /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text) && isMoment(text),
  uuid: text => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text),
}

const described = ['type', 'title', 'description', 'default', 'examples']
const keywords: Record<string, readonly string[]> = {
  string: [...described, 'enum', 'const', 'format', 'minLength', 'maxLength'],
  number: [...described, 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  integer: [...described, 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  boolean: described,
  array: [...described, 'items', 'minItems', 'maxItems', 'uniqueItems'],
}
const ofObject = ['$schema', 'type', 'title', 'description', 'properties', 'required', 'additionalProperties']
const maxFields = 50

/** The first reason why a schema cannot be drawn, with its JSON pointer; null when it can. */
export function formSchemaFault(schema: Json): ErrorDetail | null {
  if (!isObject(schema) || schema.type !== 'object') return fault('/type', 'Use an object: { "type": "object", "properties": … }')
  const { properties, required = [], additionalProperties = false } = schema
  const unknown = unknownIn(schema, ofObject, '')
  if (unknown) return unknown
  if (additionalProperties !== false) return fault('/additionalProperties', 'A form has no fields beside its properties')
  if (!isObject(properties)) return fault('/properties', 'A form has properties')
  const names = Object.keys(properties)
  if (names.length > maxFields) return fault('/properties', `A form has at most ${maxFields} fields`)
  if (!isTextList(required) || !required.every(name => Object.hasOwn(properties, name)))
    return fault('/required', 'List the names of properties')
  for (const name of names) {
    const found = fieldFault(properties[name] as Json, `/properties${pointerTo(name)}`)
    if (found) return found
  }
  return null
}

/** What is wrong with the content of an answer, by JSON pointer. The schema is one without a fault. */
export function formFaults(schema: JsonObject, content: Json | undefined): ErrorDetail[] {
  if (!isObject(content)) return [fault('/', 'Expected an object')]
  const properties = schema.properties as JsonObject
  const required = (schema.required ?? []) as string[]
  const faults = required.filter(name => !Object.hasOwn(content, name)).map(name => fault(pointerTo(name), 'Required'))
  for (const [name, value] of Object.entries(content)) {
    const reason = Object.hasOwn(properties, name) ? valueFault(properties[name] as JsonObject, value) : 'Unknown field'
    if (reason) faults.push(fault(pointerTo(name), reason))
  }
  return faults
}

function fieldFault(field: Json, path: string): ErrorDetail | null {
  if (!isObject(field)) return fault(path, 'Expected a schema')
  const { type } = field
  const known = typeof type === 'string' && Object.hasOwn(keywords, type) ? keywords[type] : undefined
  if (!known) return fault(`${path}/type`, 'Use string, number, integer, boolean, or array of choices')
  const unknown = unknownIn(field, known, path)
  if (unknown) return unknown
  if (field.format !== undefined && (typeof field.format !== 'string' || !Object.hasOwn(formats, field.format)))
    return fault(`${path}/format`, `Use one of ${Object.keys(formats).join(', ')}`)
  if (field.enum !== undefined && !isChoice(field.enum)) return fault(`${path}/enum`, 'List one or more strings')
  if (type !== 'array') return null
  const { items } = field
  if (!isObject(items) || items.type !== 'string' || !isChoice(items.enum))
    return fault(`${path}/items`, 'Use { "type": "string", "enum": […] }')
  return unknownIn(items, [...described, 'enum'], `${path}/items`)
}

function unknownIn(schema: JsonObject, known: readonly string[], path: string): ErrorDetail | null {
  const name = Object.keys(schema).find(key => !known.includes(key))
  return name === undefined ? null : fault(path + pointerTo(name), 'No client can draw this keyword')
}

function valueFault(field: JsonObject, value: Json): string | null {
  switch (field.type) {
    case 'string':
      return typeof value === 'string' ? textFault(field, value) : 'Expected a string'
    case 'boolean':
      return typeof value === 'boolean' ? null : 'Expected true or false'
    case 'array':
      return listFault(field, value)
    default:
      return typeof value === 'number' ? numberFault(field, value) : 'Expected a number'
  }
}

function textFault({ enum: choices, const: only, format, minLength, maxLength }: JsonObject, text: string): string | null {
  if (isTextList(choices) && !choices.includes(text)) return 'Not one of the choices'
  if (only !== undefined && text !== only) return 'Not one of the choices'
  if (typeof minLength === 'number' && text.length < minLength) return `Use at least ${minLength} characters`
  if (typeof maxLength === 'number' && text.length > maxLength) return `Use at most ${maxLength} characters`
  return typeof format === 'string' && formats[format]?.(text) === false ? `Expected the format ${format}` : null
}

function numberFault(field: JsonObject, value: number): string | null {
  const { type, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = field
  if (type === 'integer' && !Number.isInteger(value)) return 'Expected an integer'
  if (typeof minimum === 'number' && value < minimum) return `Use at least ${minimum}`
  if (typeof maximum === 'number' && value > maximum) return `Use at most ${maximum}`
  if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum) return `Use more than ${exclusiveMinimum}`
  if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum) return `Use less than ${exclusiveMaximum}`
  return typeof multipleOf === 'number' && !isMultiple(value, multipleOf) ? `Use a multiple of ${multipleOf}` : null
}

function listFault({ items, minItems, maxItems, uniqueItems }: JsonObject, value: Json): string | null {
  if (!Array.isArray(value)) return 'Expected a list'
  const choices = (items as JsonObject).enum as string[]
  if (!value.every(item => typeof item === 'string' && choices.includes(item))) return 'Not one of the choices'
  if (typeof minItems === 'number' && value.length < minItems) return `Choose at least ${minItems}`
  if (typeof maxItems === 'number' && value.length > maxItems) return `Choose at most ${maxItems}`
  return (uniqueItems === true || value.length > choices.length) && new Set(value).size < value.length ? 'Choose each at most once' : null
}

function isMultiple(value: number, of: number): boolean {
  const times = value / of
  return Math.abs(times - Math.round(times)) < 1e-9
}

function isMoment(text: string): boolean {
  return !Number.isNaN(Date.parse(text))
}

function isChoice(value: Json | undefined): boolean {
  return isTextList(value) && value.length > 0
}

function isTextList(value: Json | undefined): value is string[] {
  return Array.isArray(value) && value.every(item => typeof item === 'string')
}

function fault(path: string, reason: string): ErrorDetail {
  return { path, reason }
}
