/** Whether a worker still holds a turn: asked about by every write that it sends for it. */
import type { TurnId } from '@rivulet/protocol'
import { and, eq, type SQL } from 'drizzle-orm'
import type { Transaction } from '../connection/database.ts'
import { turns } from '../schema.ts'

export function isHeldBy(turnId: TurnId, claimId: string): SQL | undefined {
  return and(eq(turns.id, turnId), eq(turns.claim, claimId), eq(turns.status, 'running'), eq(turns.canceling, false))
}

/**
 * Until the transaction ends, a process that takes the turn away waits for it, so that the worker that claims it next finds what this transaction has written.
 * Returns whether the worker holds the turn.
 */
export async function lockHeldTurn(tx: Transaction, turnId: TurnId, claimId: string): Promise<boolean> {
  const rows = await tx.select({ id: turns.id }).from(turns).where(isHeldBy(turnId, claimId)).for('no key update')
  return rows.length > 0
}
