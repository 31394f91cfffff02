/**
 * The times of a new turn: it is queued at a moment, may run after its delay, and must end within the task's timeout after that.
 *
 * In three forms, one for each way to insert a turn: for drizzle, as text of a statement, and as dates of a row that Postgres has stored already.
 */
import { sql } from 'drizzle-orm'
import { msFromNow } from '../../connection/moments.ts'

export function timesFromNow(delayMs: number, timeoutMs: number) {
  return { isDelayed: delayMs > 0, queuedAt: sql`now()`, runAt: msFromNow(delayMs), deadline: msFromNow(delayMs + timeoutMs) }
}

/** The columns, and their values. `moment`, `delay` and `timeout` are expressions of SQL. */
export const timeColumns = ['queued_at', 'run_at', 'deadline'] as const

export function timeValues(moment: string, delay: string, timeout: string): string {
  return `${moment}, ${moment} + ${delay}, ${moment} + ${delay} + ${timeout}`
}

export function timesAt(at: Date, delayMs: number, timeoutMs: number): { queuedAt: Date; runAt: Date; deadline: Date } {
  const runAt = at.getTime() + delayMs
  return { queuedAt: at, runAt: new Date(runAt), deadline: new Date(runAt + timeoutMs) }
}
