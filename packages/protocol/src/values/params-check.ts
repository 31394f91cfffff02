/**
 * Checks params against the JSON Schema that an agent has announced. The schema is another program's, so it is bounded: its size, its alternatives,
 * no references, which could repeat each other without end, and no patterns, which could take forever. The agent itself checks everything.
 */
import { z } from 'zod'
import type { ErrorDetail } from '../errors.ts'
import type { Json, JsonObject } from './json.ts'
import { jsonObjectSchema } from './json-schema.ts'
import { isObject } from './merge-patch.ts'
import { detailsOf } from './validation-details.ts'

export const maxParamsSchemaChars = 16 * 1024
const maxAlternatives = 50

const listsOfSchemas = ['anyOf', 'oneOf', 'allOf', 'prefixItems'] as const
const schemas = ['items', 'additionalProperties', 'not', 'contains'] as const
const costly = ['pattern', 'patternProperties', 'propertyNames'] as const

/** What a worker may announce. */
export const paramsSchemaSchema = jsonObjectSchema.superRefine((schema, context) => {
  const refuse = (message: string) => context.addIssue({ code: 'custom', message })
  const text = JSON.stringify(schema)
  if (text.length > maxParamsSchemaChars) refuse(`The schema may have at most ${maxParamsSchemaChars} characters`)
  else if (schema.type !== 'object') refuse('The schema must be of type object')
  else if (text.includes('"$ref"')) refuse('The schema may not have references')
  else if (alternativesIn(schema) > maxAlternatives) refuse(`The schema may have at most ${maxAlternatives} alternatives`)
  else if (!checkOf(schema)) refuse('The schema has a keyword that is not supported')
})

export type ParamsCheck = (params: Json) => ErrorDetail[]

/** Null for a schema that cannot be checked here. Paths begin with `at`. */
export function checkOf(schema: JsonObject, at = '/params'): ParamsCheck | null {
  try {
    const converted = z.fromJSONSchema(withoutPatterns(schema) as z.core.JSONSchema.BaseSchema)
    return params => {
      const parsed = converted.safeParse(params)
      return parsed.success ? [] : detailsOf(parsed.error).map(({ path, reason }) => ({ path: `${at}${path}`, reason }))
    }
  } catch {
    return null
  }
}

function withoutPatterns(schema: Json): Json {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return schema
  const kept: JsonObject = { ...schema }
  for (const name of costly) delete kept[name]
  if (isObject(kept.properties))
    kept.properties = Object.fromEntries(Object.entries(kept.properties).map(([name, inner]) => [name, withoutPatterns(inner)]))
  for (const name of schemas) if (kept[name] !== undefined) kept[name] = withoutPatterns(kept[name])
  for (const name of listsOfSchemas) if (Array.isArray(kept[name])) kept[name] = kept[name].map(withoutPatterns)
  return kept
}

/** Counts what looks like alternatives, wherever it stands: too many rather than too few. */
function alternativesIn(value: Json): number {
  if (typeof value !== 'object' || value === null) return 0
  const own = Array.isArray(value)
    ? 0
    : listsOfSchemas.reduce((sum, name) => sum + (Array.isArray(value[name]) ? value[name].length : 0), 0)
  return own + Object.values(value).reduce((sum: number, inner) => sum + alternativesIn(inner), 0)
}
