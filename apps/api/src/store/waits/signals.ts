/** Signals: they answer the open wait for an event of their name, or are kept for the next one, so that a signal before its wait is not lost. */

import type { SignalBody } from '@rivulet/contract/waits'
import { maxSignals, RivuletError, signalHours, type TaskId, type WaitAnswer } from '@rivulet/protocol'
import { and, asc, count, eq, gt, lt, sql } from 'drizzle-orm'
import { v7 as uuidv7 } from 'uuid'
import type { Database, Transaction } from '../connection/database.ts'
import { msAgo, readNow } from '../connection/moments.ts'
import type { Readable } from '../connection/tenant.ts'
import type { TurnRow } from '../rows.ts'
import { signals, waits } from '../schema.ts'
import { lockTask } from '../tasks/held-task.ts'
import { closeAndResume, isWait } from './close-waits.ts'

const keptMs = signalHours * 3_600_000

/** The turn whose wait it closes; null when it is kept. */
export async function sendSignal(tx: Transaction, caller: Readable, taskId: TaskId, { name, data }: SignalBody): Promise<TurnRow | null> {
  const task = await lockTask(tx, caller, taskId)
  const isAwaited = and(eq(waits.task, taskId), eq(waits.kind, 'event'), eq(waits.name, name), eq(waits.status, 'open'))
  const [wait] = await tx
    .select({ id: waits.id, turn: waits.turn })
    .from(waits)
    .where(and(isAwaited, gt(waits.expiresAt, sql`now()`)))
    .orderBy(asc(waits.id))
    .limit(1)
  if (wait) {
    const answer = { action: 'accept', content: data, at: await readNow(tx) } as const
    return closeAndResume(tx, wait.turn, { status: 'answered', answer }, isWait(wait.id))
  }
  const [kept] = await tx.select({ count: count() }).from(signals).where(eq(signals.task, taskId))
  if ((kept?.count ?? 0) >= maxSignals)
    throw new RivuletError('too_many_signals', `A task keeps at most ${maxSignals} signals that no turn has waited for`)
  // As text, because drizzle writes null as an absent value.
  await tx.insert(signals).values({ id: uuidv7(), task: taskId, tenant: task.tenant, name, data: sql`${JSON.stringify(data)}::json` })
  return null
}

/** The oldest kept signal of a name, as the answer of the wait that takes it. */
export async function takeSignal(tx: Transaction, task: TaskId, name: string): Promise<WaitAnswer | null> {
  const [oldest] = await tx
    .select()
    .from(signals)
    .where(and(eq(signals.task, task), eq(signals.name, name), gt(signals.createdAt, msAgo(keptMs))))
    .orderBy(asc(signals.id))
    .limit(1)
  if (!oldest) return null
  await tx.delete(signals).where(eq(signals.id, oldest.id))
  return { action: 'accept', content: oldest.data, at: oldest.createdAt.toISOString() }
}

export async function forgetSignals(db: Database): Promise<void> {
  await db.delete(signals).where(lt(signals.createdAt, msAgo(keptMs)))
}
