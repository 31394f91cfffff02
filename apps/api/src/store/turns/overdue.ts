/** Turns that the reconciler must end: their deadline has passed, or their cancel was begun and not completed. */
import { and, asc, eq, inArray, isNull, lt, ne, sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import type { TurnRow } from '../rows.ts'
import { turns } from '../schema.ts'
import { unfinished } from './turn-states.ts'

const isUnfinished = inArray(turns.status, unfinished)

export async function overdueTurns(db: Database, limit: number): Promise<TurnRow[]> {
  // The deadline of a parked turn moves by the time that it waits. One that has joined another has the deadline of that one.
  const isOwn = and(ne(turns.status, 'waiting'), isNull(turns.joinedTo))
  const overdue = and(isUnfinished, isOwn, eq(turns.canceling, false), lt(turns.deadline, sql`now()`))
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
