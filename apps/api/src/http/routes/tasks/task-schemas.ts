/** Schemas, scopes and token rights that several routes of tasks have. */
import { messageSchema, taskIdSchema, taskSchema, turnSchema, waitSchema } from '@rivulet/protocol'
import { z } from 'zod'

export const params = z.object({ id: taskIdSchema })
export const accepted = z.object({ task: taskSchema, turn: turnSchema.optional() })
export const turnAccepted = z.object({ turn: turnSchema })
/** What a response has besides if it waited for the end of a turn, and what it has if that did not come in time. */
export const finished = { messages: z.array(messageSchema).optional(), nextCursor: z.int().nullish() }
export const underWay = z.object({ task: taskSchema, turn: turnSchema, cursor: z.string() })
export const waiting = z.strictObject({ wait: waitSchema.optional() })

export const reading = { access: { scope: 'tasks:read', ofAgents: true } } as const
export const readingOne = { access: { scope: 'tasks:read', token: 'read' } } as const
export const writing = { access: { scope: 'tasks:write', ofAgents: true } } as const
export const forking = { ...writing, addsWork: true } as const
export const creating = { access: { ...writing.access, echoes: 201 }, addsWork: true } as const
export const sending = { access: { scope: 'tasks:write', token: 'send' }, addsWork: true } as const
/** A retry discards what the turn said. */
export const retrying = { access: { scope: 'tasks:write', token: 'rewind' }, addsWork: true } as const
export const canceling = { access: { scope: 'tasks:write', token: 'cancel' } } as const

export function pageOf<T extends z.ZodType, C extends z.ZodType>(item: T, cursor: C) {
  return z.object({ data: z.array(item), nextCursor: cursor.nullable() })
}
