/** The schema of the scripts of the `scripted` agent. */
import { contentSchema, deltaSchema, jsonObjectSchema, jsonSchema } from '@rivulet/protocol'
import { z } from 'zod'

const index = z.int().min(0)
const metadata = jsonObjectSchema.optional()

const stateChange = z.union([z.strictObject({ value: jsonSchema }), z.strictObject({ patch: jsonObjectSchema })])

export type Step =
  | { start: { index: number; content: z.output<typeof contentSchema>; metadata?: z.output<typeof metadata> } }
  | { delta: { index: number; delta: z.output<typeof deltaSchema> } }
  | { full: { index: number; content: z.output<typeof contentSchema>; metadata?: z.output<typeof metadata> } }
  | { done: { index: number; usage?: Record<string, number> | undefined; model?: string | undefined } }
  | { custom: { name: string; data: z.output<typeof jsonSchema> } }
  | { state: z.output<typeof stateChange> }
  | { sleep: number }
  | { ask: { name: string; title?: string | undefined; holdMs?: number | undefined } }
  | {
      spawn: {
        name: string
        agent: string
        input?: string | undefined
        params?: z.output<typeof jsonSchema> | undefined
        detached?: boolean | undefined
      }
    }
  | { repeat: { times: number; steps: Step[] } }
  | { throw: string }
  | { exit: number }

const stepSchema: z.ZodType<Step> = z.lazy(() =>
  z.union([
    z.strictObject({ start: z.strictObject({ index, content: contentSchema, metadata }) }),
    z.strictObject({ delta: z.strictObject({ index, delta: deltaSchema }) }),
    z.strictObject({ full: z.strictObject({ index, content: contentSchema, metadata }) }),
    z.strictObject({
      done: z.strictObject({ index, usage: z.record(z.string(), z.number()).optional(), model: z.string().max(200).optional() }),
    }),
    z.strictObject({ custom: z.strictObject({ name: z.string(), data: jsonSchema }) }),
    z.strictObject({ state: stateChange }),
    z.strictObject({ sleep: z.number().min(0).max(86_400_000) }),
    z.strictObject({ ask: z.strictObject({ name: z.string(), title: z.string().optional(), holdMs: z.int().min(0).optional() }) }),
    z.strictObject({
      spawn: z.strictObject({
        ...{ name: z.string(), agent: z.string(), input: z.string().optional() },
        ...{ params: jsonSchema.optional(), detached: z.boolean().optional() },
      }),
    }),
    z.strictObject({ repeat: z.strictObject({ times: z.int().min(0).max(10_000_000), steps: z.array(stepSchema) }) }),
    z.strictObject({ throw: z.string() }),
    z.strictObject({ exit: z.int().min(0).max(255) }),
  ]),
)

const mode = z.enum(['generator', 'autoSend', 'manual']).default('generator')
const steps = z.array(stepSchema)

/** One script for all attempts, or one for each; attempts beyond the last repeat it. */
export const scriptSchema = z.union([
  z.strictObject({ mode, steps }),
  z.strictObject({ mode, attempts: z.record(z.string().regex(/^[1-9]\d{0,3}$/), steps) }),
])

export type Script = z.output<typeof scriptSchema>

export function stepsOf(script: Script, attempt: number): readonly Step[] {
  if ('steps' in script) return script.steps
  const numbers = Object.keys(script.attempts).map(Number)
  const earlier = numbers.filter(number => number <= attempt)
  return script.attempts[String(Math.max(...(earlier.length > 0 ? earlier : numbers)))] ?? []
}
