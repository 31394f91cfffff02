/** Leases: a worker's hold on its turns, renewed by heartbeats, given back at a clean stop, taken away when its worker is gone. */
import type { Holding } from '@rivulet/protocol'
import { and, eq, lt, sql } from 'drizzle-orm'
import type { Database, Transaction } from './database.ts'
import { msFromNow } from './moments.ts'
import { dispatch, lockTask, setTaskStatus } from './queue-turn.ts'
import type { TurnRow } from './rows.ts'
import { turns } from './schema.ts'
import { everyTenant } from './tenant.ts'

/** Extends the leases of one worker process at once; answers the turns that it no longer holds. */
export async function extendLeases(db: Database, worker: string, held: readonly Holding[], leaseMs: number): Promise<string[]> {
  if (held.length === 0) return []
  // Two values, however many turns there are. Whoever holds an older epoch must not keep the lease of its successor alive.
  const [ids, epochs] = [held.map(({ turn }) => turn), held.map(({ epoch }) => epoch)]
  const { rows } = await db.execute<{ turn: string }>(sql`
    with held as (
      select turn, epoch from unnest(${sql.param(ids)}::uuid[], ${sql.param(epochs)}::bigint[]) as held (turn, epoch)
    ), extended as (
      update turns set lease_until = ${msFromNow(leaseMs)} from held
      where turns.id = held.turn and turns.epoch = held.epoch
        and turns.worker = ${worker} and turns.status = 'running' and not turns.canceling
      returning turns.id
    )
    select turn from held where turn not in (select id from extended)
  `)
  return rows.map(({ turn }) => turn)
}

/** Gives a turn back as if it had never been claimed. */
export async function releaseTurn(db: Database, { turn, epoch }: Holding): Promise<boolean> {
  return giveBack(db, turn, and(eq(turns.epoch, epoch), eq(turns.status, 'running'), eq(turns.canceling, false)), {
    attempt: sql`${turns.attempt} - 1`,
  })
}

/** A turn whose worker has died, as far as anybody can tell. */
export const isExpired = and(eq(turns.status, 'running'), eq(turns.canceling, false), lt(turns.leaseUntil, sql`now()`))

export async function expiredTurns(db: Database, limit: number): Promise<TurnRow[]> {
  return db.select().from(turns).where(isExpired).orderBy(turns.leaseUntil).limit(limit)
}

/** Takes a turn away from a worker that has died. */
export async function reclaimTurn(db: Database, turn: string): Promise<boolean> {
  return giveBack(db, turn, isExpired, { deaths: sql`${turns.deaths} + 1` })
}

async function giveBack(
  db: Database,
  id: string,
  condition: ReturnType<typeof and>,
  counted: Partial<Record<'attempt' | 'deaths', ReturnType<typeof sql>>>,
): Promise<boolean> {
  return db.transaction(async tx => {
    const task = await taskOf(tx, id)
    if (!task) return false
    await lockTask(tx, everyTenant, task)
    const [queued] = await tx
      .update(turns)
      .set({ status: 'queued', claim: null, worker: null, leaseUntil: null, runAt: sql`now()`, ...counted })
      .where(and(eq(turns.id, id), condition))
      .returning()
    if (!queued) return false
    await dispatch(tx, id)
    await setTaskStatus(tx, queued.task, 'queued')
    return true
  })
}

async function taskOf(tx: Transaction, turn: string): Promise<string | undefined> {
  const [row] = await tx.select({ task: turns.task }).from(turns).where(eq(turns.id, turn))
  return row?.task
}
