/** Accepts the last turn of a task again, as a new turn with the same input and params. */
import { RivuletError, type TaskId } from '@rivulet/protocol'
import { desc, eq } from 'drizzle-orm'
import type { Transaction } from '../connection/database.ts'
import type { Tenant } from '../connection/tenant.ts'
import { turns } from '../schema.ts'
import { pendingTurns } from '../turns/turn-states.ts'
import type { AcceptedTurn } from './create-task.ts'
import { lockTask } from './held-task.ts'
import { queueTurn } from './queue-turn.ts'

export async function retryTurn(
  tx: Transaction,
  tenant: Tenant,
  id: TaskId,
  maxQueued: number,
  traceparent?: string,
): Promise<AcceptedTurn> {
  const task = await lockTask(tx, tenant, id)
  if ((await pendingTurns(tx, id)).length > 0) throw new RivuletError('task_busy', 'A turn of this task has not ended')
  const [last] = await tx.select().from(turns).where(eq(turns.task, id)).orderBy(desc(turns.number)).limit(1)
  if (!last) throw new RivuletError('not_found', 'This task has no turn to retry')
  const { input, inputs, params } = last
  const said = { ...(input && { input: inputs ?? input }), ...(params !== null && { params }) }
  return { task, turn: await queueTurn(tx, task, { ...said, maxQueued, traceparent }), isNew: false, isQueued: true }
}
