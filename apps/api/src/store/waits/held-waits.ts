/** What the worker of a turn has to know of its waits: which were closed, and what the turn had emitted when it parked. */
import type { Message, TurnId } from '@rivulet/protocol'
import { and, count, eq, inArray } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { turnMessages } from '../reads/messages.ts'
import type { TurnRow } from '../rows.ts'
import { waits } from '../schema.ts'

/** Turns that have fewer open waits than their worker knows of. */
export async function answeredTurns(db: Database, known: Record<TurnId, number>, within: ReadonlySet<string>): Promise<TurnId[]> {
  const ids = Object.keys(known).filter(id => within.has(id))
  if (ids.length === 0) return []
  const rows = await db
    .select({ turn: waits.turn, open: count() })
    .from(waits)
    .where(and(inArray(waits.turn, ids), eq(waits.status, 'open')))
    .groupBy(waits.turn)
  const open = new Map(rows.map(row => [row.turn as string, row.open]))
  return ids.filter(id => (open.get(id) ?? 0) < (known[id] ?? 0))
}

export async function keptMessages(db: Database, { keptTo, tenant, task, number, firstIndex }: TurnRow): Promise<Message[]> {
  if (keptTo === null || firstIndex === null) return []
  const stored = await turnMessages(db, tenant, task, number)
  return stored.filter(({ index }) => index >= firstIndex && index < keptTo)
}
