/**
 * Takes a task back to the end of one of its turns: the turns after it are discarded. They keep their rows and messages, and are no part of the conversation
 * any more. A turn that has joined one before them stays a part of it. The state of the task is restored.
 */
import { RivuletError, type TaskId } from '@rivulet/protocol'
import { and, eq, gt, sql } from 'drizzle-orm'
import type { Transaction } from '../connection/database.ts'
import type { TaskRow } from '../rows.ts'
import { turns } from '../schema.ts'
import { rewindState } from '../states/task-state.ts'
import { pendingTurns } from '../turns/turn-states.ts'

/** Returns the number of the first turn that was discarded, or null. `isCanceled`: the turns that have not ended are about to, by this transaction. */
export async function rewindTask(tx: Transaction, task: TaskRow, after: number, isCanceled: boolean): Promise<number | null> {
  const { id } = task
  const [oldest] = await pendingTurns(tx, id)
  if (oldest && (oldest.number <= after || !isCanceled)) throw new RivuletError('task_busy', 'A turn of this task has not ended')
  if (after > 0) await requireKept(tx, id, after)
  const isLeft = and(
    ...[eq(turns.task, id), gt(turns.number, after), eq(turns.discarded, false)],
    sql`(${turns.joinedTo} is null or ${turns.joinedTo} > ${after})`,
  )
  const left = await tx.update(turns).set({ discarded: true }).where(isLeft).returning({ number: turns.number })
  await rewindState(tx, task, after)
  return left.length > 0 ? Math.min(...left.map(({ number }) => number)) : null
}

async function requireKept(tx: Transaction, task: TaskId, number: number): Promise<void> {
  const [turn] = await tx
    .select({ discarded: turns.discarded })
    .from(turns)
    .where(and(eq(turns.task, task), eq(turns.number, number)))
  if (!turn || turn.discarded) throw new RivuletError('not_found', turn ? 'This turn was discarded' : 'No such turn in this task')
}
