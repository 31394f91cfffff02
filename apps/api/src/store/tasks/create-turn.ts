/** Accepting another turn of a task. */
import { type CreateTurn, RivuletError } from '@rivulet/protocol'
import type { Transaction } from '../connection/database.ts'
import type { Tenant } from '../connection/tenant.ts'
import { pendingTurns } from '../turns/turn-states.ts'
import type { AcceptedTurn } from './create-task.ts'
import { lockTask } from './held-task.ts'
import { queueTurn } from './queue-turn.ts'

export async function createTurn(
  tx: Transaction,
  tenant: Tenant,
  id: string,
  request: CreateTurn,
  maxQueued: number,
  traceparent?: string,
): Promise<AcceptedTurn> {
  const { input, params, ifBusy } = request
  const task = await lockTask(tx, tenant, id)
  if (ifBusy === 'reject' && (await pendingTurns(tx, id)).length > 0) {
    throw new RivuletError('task_busy', 'A turn of this task has not ended')
  }
  const turn = await queueTurn(tx, task, { ...(input && { input }), ...(params !== undefined && { params }), maxQueued, traceparent })
  return { task, turn, isNew: false, isQueued: true }
}
