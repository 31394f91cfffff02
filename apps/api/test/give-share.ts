/** Gives a turn its share of the workers, as a pick of the relay does, in a test without a relay. */
import type { TurnId } from '@rivulet/protocol'
import { eq } from 'drizzle-orm'
import type { Database } from '../src/store/connection/database.ts'
import { turns } from '../src/store/schema.ts'
import { type Claim, type ClaimResult, claimTurn } from '../src/store/turns/claim-turn.ts'

export async function giveShare(db: Database, turnId: TurnId): Promise<void> {
  await db.update(turns).set({ sent: 'picked' }).where(eq(turns.id, turnId))
}

export async function claimWithShare(db: Database, claim: Claim): Promise<ClaimResult> {
  await giveShare(db, claim.turnId)
  return claimTurn(db, claim)
}
