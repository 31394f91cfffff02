/** What a state means. Apart from the schemas, because a reader of events needs no validation library. */
import type { MessageStatus, OutcomeStatus, TurnStatus } from './status-schema.ts'

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
