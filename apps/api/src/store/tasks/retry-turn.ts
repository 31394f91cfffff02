/**
 * Accepts the last turn of a task again, as a new turn after the one before it: the last one is discarded. What had joined it comes again with it.
 */
import { RivuletError, type TaskId } from '@rivulet/protocol'
import { and, desc, eq, isNull, lt, max } from 'drizzle-orm'
import type { Transaction } from '../connection/database.ts'
import type { Readable } from '../connection/tenant.ts'
import { turns } from '../schema.ts'
import { pendingTurns } from '../turns/turn-states.ts'
import type { AcceptedTurn } from './accept/create-task.ts'
import { queueTurn } from './accept/queue-turn.ts'
import { lockTask } from './held-task.ts'
import { rewindTask } from './rewind-task.ts'
import { repeatSecrets } from './task-secrets.ts'

export async function retryTurn(
  tx: Transaction,
  caller: Readable,
  id: TaskId,
  maxQueued: number,
  traceparent?: string,
): Promise<AcceptedTurn> {
  const task = await lockTask(tx, caller, id)
  if ((await pendingTurns(tx, id)).length > 0) throw new RivuletError('task_busy', 'A turn of this task has not ended')
  const kept = and(eq(turns.task, id), eq(turns.discarded, false))
  const [last] = await tx
    .select()
    .from(turns)
    .where(and(kept, isNull(turns.joinedTo)))
    .orderBy(desc(turns.number))
    .limit(1)
  if (!last) throw new RivuletError('not_found', 'This task has no turn to retry')
  const joined = await tx
    .select()
    .from(turns)
    .where(and(kept, eq(turns.joinedTo, last.number)))
    .orderBy(turns.number)
  const all = [last, ...joined].flatMap(({ input, inputs }) => inputs ?? (input ? [input] : []))
  const said = { ...(all.length > 0 && { input: all }), ...(last.params !== null && { params: last.params }) }
  // Not simply the number before: that turn may have been discarded by an earlier retry.
  const [before] = await tx
    .select({ number: max(turns.number) })
    .from(turns)
    .where(and(kept, lt(turns.number, last.number)))
  const discardsFrom = await rewindTask(tx, task, before?.number ?? 0, false)
  const turn = await queueTurn(tx, task, { ...said, discardsFrom, maxQueued, traceparent })
  await repeatSecrets(tx, last, turn)
  return { task, turn, isNew: false, isQueued: true }
}
