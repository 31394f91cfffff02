/** Accepting another turn of a task. */
import type { CreateTurn, IfBusy } from '@rivulet/contract/turns'
import { type JsonObject, RivuletError, type TaskId } from '@rivulet/protocol'
import type { Transaction } from '../../connection/database.ts'
import { readNow } from '../../connection/moments.ts'
import type { Readable } from '../../connection/tenant.ts'
import type { TurnRow } from '../../rows.ts'
import { pendingTurns } from '../../turns/turn-states.ts'
import { closeAndResume, isForPeople } from '../../waits/close-waits.ts'
import { hasOpenWait } from '../../waits/wait-rows.ts'
import { lockTask } from '../held-task.ts'
import { rewindTask } from '../rewind-task.ts'
import { checkTurnParams } from './check-params.ts'
import type { AcceptedTurn } from './create-task.ts'
import { queueTurn } from './queue-turn.ts'

export async function createTurn(
  tx: Transaction,
  caller: Readable,
  id: string,
  request: CreateTurn,
  maxQueued: number,
  traceparent?: string,
  inputMetadata?: JsonObject,
): Promise<AcceptedTurn> {
  const { input, params, ifBusy, after, debounceMs, debounceMaxMs } = request
  const task = await lockTask(tx, caller, id)
  if (ifBusy === 'reject' && (await pendingTurns(tx, id)).length > 0) {
    throw new RivuletError('task_busy', 'A turn of this task has not ended')
  }
  await checkTurnParams(tx, task.tenant, task.agent, params)
  const declined = ifBusy === 'decline' ? await declineWaits(tx, id) : null
  const said = { ...(input && { input, inputMetadata }), ...(params !== undefined && { params }) }
  const debounce = debounceMs !== undefined && { debounce: { ms: debounceMs, maxMs: debounceMaxMs ?? debounceMs * 10 } }
  const discardsFrom = after === undefined ? null : await rewindTask(tx, task, after, ifBusy === 'interrupt')
  const joins = after === undefined ? joinsBy[ifBusy] : null
  const turn = await queueTurn(tx, task, { ...said, joins, ...debounce, discardsFrom, maxQueued, traceparent })
  return { task, turn, isNew: false, isQueued: true, ...(declined && { declined }) }
}

/** An input that interrupts is merged with those that wait. One that declines is for the turn that asked. */
const joinsBy = {
  queue: null,
  reject: null,
  interrupt: 'merge',
  merge: 'merge',
  decline: 'inject',
  inject: 'inject',
} as const satisfies Record<IfBusy, TurnRow['joins']>

/** New input closes what the turn asked people for: they have written instead of answering. */
export async function declineWaits(tx: Transaction, task: TaskId): Promise<TurnRow | null> {
  const asking = (await pendingTurns(tx, task)).find(hasOpenWait)
  if (!asking) return null
  const answer = { action: 'decline', comment: 'new input', at: await readNow(tx) } as const
  return closeAndResume(tx, asking.id, { status: 'answered', answer }, isForPeople)
}
