/** JSON Schemas of objects, as tools, agents and questions announce them. */
import { z } from 'zod'
import { RivuletError } from '../errors.ts'
import type { JsonObject } from './json.ts'

/** The JSON Schema of what a zod schema accepts. Throws `validation_failed`, with a reason, for one that is not an object. */
export function objectSchemaOf(schema: z.ZodType): JsonObject {
  const { $schema: _, ...converted } = convert(schema)
  if (converted.type !== 'object') throw new RivuletError('validation_failed', 'must be an object schema, such as z.object({})')
  // It is JSON by construction; undefined fields are dropped.
  return JSON.parse(JSON.stringify(converted))
}

function convert(schema: z.ZodType): z.core.JSONSchema.BaseSchema {
  try {
    return z.toJSONSchema(schema, { io: 'input' })
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new RivuletError('validation_failed', `cannot be converted to a JSON schema: ${reason}`, { cause })
  }
}
