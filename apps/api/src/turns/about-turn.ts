/** A turn as every line of the log names it, so that all lines about one can be found by any of its names. */
import { traceIdOf } from '@rivulet/runtime/trace'
import type { TurnRow } from '../store/rows.ts'

export type AboutTurn = { task: string; turn: number; attempt: number; traceId?: string }

export function aboutTurn({ task, number, attempt, traceparent }: Pick<TurnRow, 'task' | 'number' | 'attempt' | 'traceparent'>): AboutTurn {
  return { task, turn: number, attempt, ...(traceparent && { traceId: traceIdOf(traceparent) }) }
}
