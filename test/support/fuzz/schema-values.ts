/** Values that fit a JSON schema, as the API describes itself with: what a request is made of before it is spoiled. */
import fc from 'fast-check'

export type JsonSchema = {
  type?: string
  enum?: unknown[]
  const?: unknown
  format?: string
  pattern?: string
  minimum?: number
  maximum?: number
  maxLength?: number
  items?: JsonSchema
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: JsonSchema | boolean
  propertyNames?: JsonSchema
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
}

/** What the schema alone cannot know: texts, and ids and names that mean something. */
export type Vocabulary = Record<'text' | 'id' | 'keyId' | 'name', fc.Arbitrary<string>>

export function valuesOf(schema: JsonSchema, words: Vocabulary): fc.Arbitrary<unknown> {
  const alternatives = schema.anyOf ?? schema.oneOf
  if (alternatives) return fc.oneof(...alternatives.map(each => valuesOf(each, words)))
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  switch (schema.type) {
    case 'object':
      return objectsOf(schema, words)
    case 'array':
      return fc.array(valuesOf(schema.items ?? {}, words), { maxLength: 3 })
    case 'string':
      return stringsOf(schema, words)
    case 'integer':
    case 'number':
      return integersOf(schema)
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return fc.oneof(
        words.text,
        fc.integer(),
        fc.constant(null),
        fc.array(words.text, { maxLength: 2 }),
        fc.dictionary(words.text, fc.nat()),
      )
  }
}

/** Small ones are often right: numbers of turns, of attempts, of epochs. */
function integersOf({ minimum: least = 0, maximum = 100 }: JsonSchema): fc.Arbitrary<number> {
  const minimum = Math.ceil(least)
  const small = fc.integer({ min: minimum, max: Math.min(minimum + 3, maximum) })
  return fc.oneof(small, fc.integer({ min: minimum, max: maximum }))
}

function objectsOf(
  { properties, required = [], additionalProperties, propertyNames }: JsonSchema,
  words: Vocabulary,
): fc.Arbitrary<unknown> {
  if (!properties) {
    const names = propertyNames?.format ? stringsOf(propertyNames, words) : words.text
    return fc.dictionary(names, valuesOf(typeof additionalProperties === 'object' ? additionalProperties : {}, words))
  }
  const fields = Object.fromEntries(Object.entries(properties).map(([key, each]) => [key, valuesOf(each, words)]))
  return fc.record(fields, { requiredKeys: required, noNullPrototype: true })
}

function stringsOf({ format, pattern = '', maxLength }: JsonSchema, { text, id, keyId, name }: Vocabulary): fc.Arbitrary<string> {
  if (format === 'uuid') return id
  if (pattern.startsWith('^[0-9a-f]{16}')) return keyId
  if (format === 'byte' || format === 'base64') return fc.base64String({ maxLength: 40 })
  if (format === 'date-time') return fc.constant('2026-01-01T00:00:00.000Z')
  if (pattern.startsWith('^[a-z0-9_-]')) return name
  if (pattern.includes('(ms|s)')) return fc.nat({ max: 50 }).map(ms => `${ms}ms`)
  if (/\\d/.test(pattern)) return fc.nat({ max: 200 }).map(String)
  return maxLength === undefined ? text : text.map(value => value.slice(0, maxLength))
}
