/** A new epoch for a turn that goes on. */
import type { TurnId } from '@rivulet/protocol'
import { eq } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { everyone } from '../connection/tenant.ts'
import type { TurnRow } from '../rows.ts'
import { turns } from '../schema.ts'
import { lockTask, raiseEpoch } from '../tasks/held-task.ts'
import { type Claimed, readClaimed } from './claimed.ts'

/**
 * After a log lost entries: a new epoch for the same attempt. Null when the turn is no longer this worker's. Asked again under the epoch before,
 * because the response was lost, it returns the same again.
 */
export async function reopenTurn(
  db: Database,
  { turnId: id, epoch, claimId }: { turnId: TurnId; epoch: number; claimId: string },
): Promise<Claimed | null> {
  return db.transaction(async tx => {
    const found = await findTurn(tx, id)
    if (!found) return null
    await lockTask(tx, everyone, found.task)
    const turn = await findTurn(tx, id)
    if (turn?.status !== 'running' || turn.canceling || turn.claim !== claimId || (turn.epoch ?? 0) < epoch) return null
    if (turn.epoch === epoch) {
      const raised = await raiseEpoch(tx, turn.task)
      await tx.update(turns).set({ epoch: raised.epoch, resumed: null }).where(eq(turns.id, id))
    }
    return readClaimed(tx, id)
  })
}

async function findTurn(tx: Transaction, id: string): Promise<TurnRow | undefined> {
  const [turn] = await tx.select().from(turns).where(eq(turns.id, id))
  return turn
}
