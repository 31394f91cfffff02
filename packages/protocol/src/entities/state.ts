/** The state of a task: a JSON value that its agent keeps from turn to turn, beside the messages. Its version grows with each change. */
import { z } from 'zod'
import { jsonObjectSchema, jsonSchema } from '../values/json-schema.ts'

export const stateSchema = z.object({ version: z.int().min(0), value: jsonSchema })

/** A new value, or a merge patch of the one before (RFC 7396). */
export const stateChangeSchema = z.union([z.strictObject({ value: jsonSchema }), z.strictObject({ patch: jsonObjectSchema })])

export type State = z.output<typeof stateSchema>
export type StateChange = z.output<typeof stateChangeSchema>
