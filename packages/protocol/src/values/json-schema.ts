/** Schemas of JSON values. Apart from `json.ts`, so that a reader of events needs no validation library. */
import { z } from 'zod'
import type { Json, JsonObject } from './json.ts'

export const jsonSchema = z.unknown().refine(value => value !== undefined, 'Required') as z.ZodType<Json>
export const jsonObjectSchema = z.record(z.string(), jsonSchema) as z.ZodType<JsonObject>
