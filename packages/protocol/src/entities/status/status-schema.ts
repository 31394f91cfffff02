/** The states of messages, turns and tasks, and every allowed transition between them. */
import { z } from 'zod'

export const messageStatusSchema = z.enum(['streaming', 'complete', 'aborted', 'failed'])
export const outcomeStatusSchema = z.enum(['completed', 'failed', 'canceled'])
export const taskStatusSchema = z.enum(['queued', 'running', 'waiting', ...outcomeStatusSchema.options])
/** A turn that a rewind has left behind is `discarded`, whatever its outcome was. */
export const turnStatusSchema = z.enum([...taskStatusSchema.options, 'discarded'])
export const stopReasonSchema = z.enum(['stop', 'tool_use', 'length', 'content_filter', 'aborted', 'error', 'other'])

export type MessageStatus = z.output<typeof messageStatusSchema>
export type TurnStatus = z.output<typeof turnStatusSchema>
export type TaskStatus = z.output<typeof taskStatusSchema>
export type OutcomeStatus = z.output<typeof outcomeStatusSchema>
export type StopReason = z.output<typeof stopReasonSchema>

export const messageTransitions = {
  streaming: ['complete', 'aborted', 'failed'],
  complete: [],
  aborted: [],
  failed: [],
} as const satisfies Record<MessageStatus, readonly MessageStatus[]>

/** A turn returns to `queued` between attempts. One that is discarded keeps its outcome beside that. */
export const turnTransitions = {
  queued: ['running', 'failed', 'canceled'],
  running: ['queued', 'waiting', 'completed', 'failed', 'canceled'],
  waiting: ['queued', 'running', 'failed', 'canceled'],
  completed: [],
  failed: [],
  canceled: [],
} as const satisfies Record<TaskStatus, readonly TaskStatus[]>

/** A task follows its latest turn. New input queues an ended task again. */
export const taskTransitions = {
  ...turnTransitions,
  completed: ['queued'],
  failed: ['queued'],
  canceled: ['queued'],
} as const satisfies Record<TaskStatus, readonly TaskStatus[]>

/** The states from which a turn may change to `target`: the condition of the UPDATE that sets it. */
export function turnStatusesBefore(target: TaskStatus): TaskStatus[] {
  return taskStatusSchema.options.filter(status => (turnTransitions[status] as readonly TaskStatus[]).includes(target))
}
