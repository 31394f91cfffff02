/** JSON Schemas of objects, as tools, agents and questions announce them. */
import { z } from 'zod'
import { RivuletError } from '../errors.ts'
import type { JsonObject } from './json.ts'

/**
 * The JSON Schema of what a zod schema accepts. Throws `validation_failed`, with a reason, for one that is not an object.
 *
 * @param isClosed objects refuse the fields that zod would drop, at any depth. Not those of an intersection, because each has only a part of the fields.
 */
export function objectSchemaOf(schema: z.ZodType, { isClosed = false }: { isClosed?: boolean } = {}): JsonObject {
  const { $schema: _, ...converted } = convert(schema, isClosed)
  if (converted.type !== 'object') throw new RivuletError('validation_failed', 'must be an object schema, such as z.object({})')
  // It is JSON by construction; undefined fields are dropped.
  return JSON.parse(JSON.stringify(converted))
}

function convert(schema: z.ZodType, isClosed: boolean): z.core.JSONSchema.BaseSchema {
  try {
    return z.toJSONSchema(schema, { io: 'input', ...(isClosed && { override: close }) })
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new RivuletError('validation_failed', `cannot be converted to a JSON schema: ${reason}`, { cause })
  }
}

/** An intersection has copies of its parts, because zod shares what it made of a part with every place where that schema stands. */
function close({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  const { def } = zodSchema._zod
  if (def.type === 'object' && def.catchall === undefined) jsonSchema.additionalProperties = false
  if (def.type !== 'intersection') return
  for (const [index, part] of (jsonSchema.allOf ?? []).entries()) {
    if (part.type !== 'object' || (part.additionalProperties ?? false) !== false || !jsonSchema.allOf) continue
    const { additionalProperties: _, ...open } = part
    jsonSchema.allOf[index] = open
  }
}
