/** The states of messages, turns and tasks, and every allowed transition between them. */

export const messageStatuses = ['streaming', 'complete', 'aborted', 'failed'] as const
export const outcomeStatuses = ['completed', 'failed', 'canceled'] as const
export const taskStatuses = ['queued', 'running', 'waiting', ...outcomeStatuses] as const
/** A turn that a rewind has left behind is `discarded`, whatever its outcome was. */
export const turnStatuses = [...taskStatuses, 'discarded'] as const
export const stopReasons = ['stop', 'tool_use', 'length', 'content_filter', 'aborted', 'error', 'other'] as const

export type MessageStatus = (typeof messageStatuses)[number]
export type TurnStatus = (typeof turnStatuses)[number]
export type TaskStatus = (typeof taskStatuses)[number]
export type OutcomeStatus = (typeof outcomeStatuses)[number]
export type StopReason = (typeof stopReasons)[number]

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

export function hasEnded<S extends TurnStatus>(status: S): status is Extract<S, OutcomeStatus | 'discarded'> {
  return status === 'completed' || status === 'failed' || status === 'canceled' || status === 'discarded'
}

/** The outcome of a turn that has ended, for readers that know no discarded turns. */
export function outcomeOf(status: OutcomeStatus | 'discarded'): OutcomeStatus {
  return status === 'discarded' ? 'canceled' : status
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
export function turnStatusesBefore(target: TaskStatus): TaskStatus[] {
  return taskStatuses.filter(status => (turnTransitions[status] as readonly TaskStatus[]).includes(target))
}
