/** What a wait is for, and how it ended, in words. */
import type { Wait, WaitKind } from '@rivulet/client'

export const kindWords: Record<WaitKind, string> = {
  approval: 'Approval',
  form: 'Form',
  tool: 'Tool of the client',
  task: 'Child task',
  event: 'Signal',
  timer: 'Timer',
}

const actionWords = { accept: 'Accepted', edit: 'Accepted with edits', decline: 'Declined' } as const

export function outcomeOf({ status, kind, answer }: Wait): string {
  if (status === 'expired') return kind === 'timer' ? 'The time came' : 'Expired without a response'
  if (status === 'canceled') return 'Canceled'
  if (!answer) return 'Closed'
  if (kind === 'event') return 'The signal arrived'
  if (kind === 'task') return 'The child has ended'
  return kind === 'tool' && answer.action === 'accept' ? 'Result given' : actionWords[answer.action]
}
