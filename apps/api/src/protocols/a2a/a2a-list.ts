/** The states of A2A that clients list tasks by, and the tokens of the pages. */
import type { TaskState } from '@rivulet/contract/a2a'
import type { TurnPlace, TurnStage } from '../../store/agents/agent-turns.ts'

/** The states of A2A; null for those that no turn has. */
export const stageOf = {
  TASK_STATE_SUBMITTED: 'queued',
  TASK_STATE_WORKING: 'working',
  TASK_STATE_INPUT_REQUIRED: 'asking',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_CANCELED: 'canceled',
  TASK_STATE_AUTH_REQUIRED: null,
  TASK_STATE_REJECTED: null,
} as const satisfies Record<TaskState, TurnStage | null>

export function formatPageToken({ at, id }: TurnPlace): string {
  return `${at.getTime()}.${id}`
}
