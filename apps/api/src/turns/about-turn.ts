/** The log fields that identify a turn, so that a search for any of its ids finds all its lines. */
import type { TaskId } from '@rivulet/protocol'
import { traceIdOf } from '@rivulet/runtime/trace'
import type { TurnRow } from '../store/rows.ts'

export type AboutTurn = { task: TaskId; turn: number; attempt: number; traceId?: string }

export function aboutTurn({ task, number, attempt, traceparent }: Pick<TurnRow, 'task' | 'number' | 'attempt' | 'traceparent'>): AboutTurn {
  return { task, turn: number, attempt, ...(traceparent && { traceId: traceIdOf(traceparent) }) }
}
