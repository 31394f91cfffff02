/** What a turn waits for without holding a worker: a person, a tool of the client, a child, an event or a time. */
import { z } from 'zod'
import { jsonObjectSchema, jsonSchema } from '../values/json-schema.ts'
import { agentNameSchema, idSchema, taskIdSchema } from './ids.ts'

export type WaitId = string & { readonly idOf?: 'wait' }

export const waitKinds = ['approval', 'form', 'tool', 'task', 'event', 'timer'] as const
export const waitStatuses = ['open', 'answered', 'expired', 'canceled'] as const
export const waitActions = ['accept', 'edit', 'decline'] as const

export const waitIdSchema = idSchema as unknown as z.ZodType<WaitId, string>
export const waitKindSchema = z.enum(waitKinds)
export const waitStatusSchema = z.enum(waitStatuses)
export const waitActionSchema = z.enum(waitActions)

export const waitAnswerSchema = z.object({
  action: waitActionSchema,
  content: jsonSchema.optional(),
  comment: z.string().optional(),
  /** The subject of the token that gave the answer. */
  by: z.string().optional(),
  at: z.iso.datetime(),
})

export const turnWaitSchema = z.object({
  id: waitIdSchema,
  task: taskIdSchema,
  turn: z.int().min(1),
  agent: agentNameSchema,
  /** Unique in its turn. */
  name: z.string(),
  kind: waitKindSchema,
  /** The index of the turn's next message when it was asked. */
  index: z.int().min(0).optional(),
  title: z.string(),
  /** Markdown. */
  detail: z.string().optional(),
  /** A flat JSON Schema, as `values/form-schema.ts` defines it. */
  schema: jsonObjectSchema.optional(),
  callId: z.string().optional(),
  tool: z.string().optional(),
  arguments: jsonSchema.optional(),
  /** The JSON Schema of the arguments, while they may be edited: an edit has to match it. */
  argumentsSchema: jsonObjectSchema.optional(),
  actions: z.array(waitActionSchema),
  assignee: z.string().optional(),
  metadata: jsonObjectSchema,
  status: waitStatusSchema,
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  /** The task that is waited for. */
  child: taskIdSchema.optional(),
  answer: waitAnswerSchema.optional(),
})

export type WaitKind = z.output<typeof waitKindSchema>
export type WaitStatus = z.output<typeof waitStatusSchema>
export type WaitAction = z.output<typeof waitActionSchema>
export type WaitAnswer = z.output<typeof waitAnswerSchema>
export type Wait = z.output<typeof turnWaitSchema>

/** The kinds that people and clients answer by a request. */
const answeredByRequest: readonly WaitKind[] = ['approval', 'form', 'tool']

export function isAnsweredByRequest(kind: WaitKind): boolean {
  return answeredByRequest.includes(kind)
}

/** Whether a turn with these waits needs the response of a person or a client. */
export function hasOpenQuestion(waits: readonly Pick<Wait, 'kind' | 'status'>[] | undefined): boolean {
  return waits?.some(({ kind, status }) => status === 'open' && isAnsweredByRequest(kind)) ?? false
}
