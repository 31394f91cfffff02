/** Turns that the reconciler must end: their deadline has passed, or their cancel was begun and not completed. */
import { and, asc, eq, inArray, isNotNull, lt, ne, sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import type { TurnRow } from '../rows.ts'
import { turns } from '../schema.ts'
import { unfinished } from './turn-states.ts'

const isUnfinished = inArray(turns.status, unfinished)

export async function overdueTurns(db: Database, limit: number): Promise<TurnRow[]> {
  // The first claim starts the time of a turn. The deadline of a parked turn moves by the time that it waits.
  const isTimed = and(isNotNull(turns.startedAt), ne(turns.status, 'waiting'))
  const overdue = and(isUnfinished, isTimed, eq(turns.canceling, false), lt(turns.deadline, sql`now()`))
  return db.select().from(turns).where(overdue).orderBy(asc(turns.deadline)).limit(limit)
}

export async function cancelingTurns(db: Database, limit: number): Promise<TurnRow[]> {
  return db
    .select()
    .from(turns)
    .where(and(isUnfinished, eq(turns.canceling, true)))
    .orderBy(asc(turns.queuedAt))
    .limit(limit)
}
