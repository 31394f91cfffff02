/** The schema of a run's output: what the model is sent, and the check of the text that it returns. */
import { checkOf, type Json, type JsonObject, objectSchemaOf } from '@rivulet/protocol'
import { z } from 'zod'
import { AgentError, messageOf } from '../agent-error.ts'

/** Of zod, or a JSON Schema. An object, because models write nothing else. */
export type OutputSchema = z.ZodType | JsonObject

/** The value that a run with this schema returns. */
export type OutputOf<S> = S extends z.ZodType ? z.output<S> : S extends JsonObject ? Json : undefined

export function jsonSchemaOf(schema: OutputSchema): JsonObject {
  return isZod(schema) ? objectSchemaOf(schema) : schema
}

/** Throws `validation_failed` for a text that does not match, because the stored response would be the same in the next attempt. */
export async function parseOutput(schema: OutputSchema, text: string): Promise<unknown> {
  const value = jsonOf(text)
  if (isZod(schema)) {
    const parsed = await schema.safeParseAsync(value)
    if (!parsed.success) throw mismatch(z.prettifyError(parsed.error))
    return parsed.data
  }
  const [first] = checkOf(schema, '')?.(value) ?? []
  if (first) throw mismatch(`${first.path || '/'} ${first.reason}`)
  return value
}

function jsonOf(text: string): Json {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw mismatch(messageOf(error))
  }
}

function mismatch(reason: string): AgentError {
  const publicMessage = 'The response of the model does not match the schema'
  return new AgentError(`${publicMessage}: ${reason}`, { code: 'validation_failed', publicMessage })
}

function isZod(schema: OutputSchema): schema is z.ZodType {
  return '_zod' in schema
}
