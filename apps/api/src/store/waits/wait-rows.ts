/** Waits as viewers see them, and their copy in the turn's row. */
import type { TurnId, Wait } from '@rivulet/protocol'
import { asc, eq, sql } from 'drizzle-orm'
import type { Transaction } from '../connection/database.ts'
import type { TurnRow } from '../rows.ts'
import { turns, waits } from '../schema.ts'

export type WaitRow = typeof waits.$inferSelect

/** The schema of the arguments only while it is open, because a turn may have many waits that have closed. */
export function toWait(row: WaitRow): Wait {
  const { id, task, number, agent, name, kind, request, assignee, metadata, child, status, answer, createdAt, expiresAt } = row
  const { argumentsSchema, ...asked } = request
  return {
    ...{ id, task, turn: number, agent, name, kind, ...asked },
    ...(argumentsSchema && status === 'open' && { argumentsSchema }),
    ...(assignee !== null && { assignee }),
    ...{ metadata, status, createdAt: createdAt.toISOString(), expiresAt: expiresAt.toISOString() },
    ...(child !== null && { child }),
    ...(answer !== null && { answer }),
  }
}

/** In the order in which they were asked. */
export async function waitsOf(tx: Transaction, turnId: TurnId): Promise<WaitRow[]> {
  return tx.select().from(waits).where(eq(waits.turn, turnId)).orderBy(asc(waits.id))
}

/** Called with every change of a turn's waits, whose task is held: the row of the turn shows the change, and the log has it to come. */
export async function noteChange(tx: Transaction, turnId: TurnId): Promise<TurnRow> {
  const rows = await waitsOf(tx, turnId)
  const changed = { waits: rows.map(toWait), waitsVersion: sql`${turns.waitsVersion} + 1` }
  const [turn] = await tx.update(turns).set(changed).where(eq(turns.id, turnId)).returning()
  if (!turn) throw new Error(`Turn ${turnId} has waits, and yet is gone`)
  await tx.update(waits).set({ told: false }).where(eq(waits.turn, turnId))
  return turn
}

export function hasOpenWait({ waits: known }: Pick<TurnRow, 'waits'>): boolean {
  return known?.some(({ status }) => status === 'open') ?? false
}
