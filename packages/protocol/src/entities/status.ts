/** The states of messages, turns and tasks, and every allowed transition between them. */
import { z } from 'zod'

export const messageStatusSchema = z.enum(['streaming', 'complete', 'aborted', 'failed'])
export const turnStatusSchema = z.enum(['queued', 'running', 'waiting', 'completed', 'failed', 'canceled'])
export const taskStatusSchema = turnStatusSchema
export const outcomeStatusSchema = z.enum(['completed', 'failed', 'canceled'])
export const stopReasonSchema = z.enum(['stop', 'tool_use', 'length', 'content_filter', 'aborted', 'error', 'other'])

export type MessageStatus = z.output<typeof messageStatusSchema>
export type TurnStatus = z.output<typeof turnStatusSchema>
export type TaskStatus = TurnStatus
export type OutcomeStatus = z.output<typeof outcomeStatusSchema>
export type StopReason = z.output<typeof stopReasonSchema>

export const messageTransitions = {
  streaming: ['complete', 'aborted', 'failed'],
  complete: [],
  aborted: [],
  failed: [],
} as const satisfies Record<MessageStatus, readonly MessageStatus[]>

/** A turn returns to `queued` between attempts. */
export const turnTransitions = {
  queued: ['running', 'failed', 'canceled'],
  running: ['queued', 'waiting', 'completed', 'failed', 'canceled'],
  waiting: ['queued', 'running', 'failed', 'canceled'],
  completed: [],
  failed: [],
  canceled: [],
} as const satisfies Record<TurnStatus, readonly TurnStatus[]>

/** A task follows its latest turn. New input queues an ended task again. */
export const taskTransitions = {
  ...turnTransitions,
  completed: ['queued'],
  failed: ['queued'],
  canceled: ['queued'],
} as const satisfies Record<TaskStatus, readonly TaskStatus[]>

export function hasEnded(status: TurnStatus): status is OutcomeStatus {
  return status === 'completed' || status === 'failed' || status === 'canceled'
}

/** The status given to messages that are still open when their turn ends. */
export function closingStatus({
  status,
  error,
}: {
  status: OutcomeStatus
  error?: { code: string } | undefined
}): Exclude<MessageStatus, 'streaming'> {
  if (status === 'completed') return 'complete'
  return status === 'canceled' || error?.code === 'deadline_exceeded' ? 'aborted' : 'failed'
}

/** The states from which a turn may change to `target`: the condition of the UPDATE that sets it. */
export function turnStatusesBefore(target: TurnStatus): TurnStatus[] {
  return turnStatusSchema.options.filter(status => (turnTransitions[status] as readonly TurnStatus[]).includes(target))
}
