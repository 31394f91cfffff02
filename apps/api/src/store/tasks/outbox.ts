/**
 * Intents to dispatch: written with the state that calls for them, removed once the queue has the job. A due turn has to get a share of its agent's
 * workers first (`pick-turns.ts`); a delayed one goes to the queue at once, which brings it back when it is due.
 */

import type { Dispatch } from '@rivulet/broker'
import type { TaskId, TurnId } from '@rivulet/protocol'
import { and, asc, eq, inArray, isNull, lt, lte, notInArray, type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { msAgo, msUntil } from '../connection/moments.ts'
import type { Tenant } from '../connection/tenant.ts'
import { outbox, tasks, turns } from '../schema.ts'
import { dueAt, hasPinnedVersion, isNext } from '../turns/turn-states.ts'

/** A turn that is sent to a queue, as people know it. `agent` is the name of the queue, which is that of the agent except where tenants share a name. */
export type SentTurn = { task: TaskId; number: number; agent: string; attempt: number; dispatch: number; traceparent: string | null }

/** `turn` is its id, where `number` is what people call it. `delayMs`: until it may run, as of when Postgres was asked. */
export type Intent = SentTurn & { id: number; turnId: TurnId; delayMs: number; priority: number; rank?: number }

type Draining = {
  limit: number
  /** Younger ones are left to the process that wrote them. 0: all, whatever the clock says. */
  olderThanMs: number
  /** The ids of those that this process is sending. */
  except?: readonly number[]
}

/**
 * Sends a turn to the queue once this transaction is committed.
 *
 * @param keepsShare of a turn that lost its worker: it keeps its share of the workers, because the worker may come back and go on with it
 */
export async function dispatch(tx: Transaction, turnId: TurnId, options: { keepsShare?: boolean } = {}): Promise<void> {
  await dispatchAll(tx, [turnId], options)
}

/** The caller holds their rows. */
async function dispatchAll(tx: Transaction, ids: readonly TurnId[], { keepsShare = false } = {}): Promise<void> {
  const all = sql`${sql.param(ids)}::uuid[]`
  await tx
    .update(turns)
    .set({ dispatch: sql`${turns.dispatch} + 1`, ...(!keepsShare && { sent: null }) })
    .where(sql`${turns.id} = any(${all})`)
  await tx.execute(sql`insert into ${outbox} (turn) select unnest(${all})`)
}

/**
 * Hands intents that need no share, or have one, to `send`, and removes them when it has succeeded. Rows that another process is draining are skipped.
 * A crash between the two sends again: the same job id, so the same job.
 */
export async function drainOutbox(
  db: Database,
  { limit, olderThanMs, except = [] }: Draining,
  send: (intents: readonly Intent[]) => Promise<void>,
): Promise<Intent[]> {
  return db.transaction(async tx => {
    const rows = await tx
      .select({
        ...{ id: outbox.id, task: tasks.id, number: turns.number, delayMs },
        ...{ turnId: turns.id, agent: outbox.agent, dispatch: turns.dispatch, priority: tasks.priority },
        ...{ attempt: turns.attempt, traceparent: turns.traceparent },
      })
      .from(outbox)
      .innerJoin(turns, eq(turns.id, outbox.turn))
      .innerJoin(tasks, eq(tasks.id, turns.task))
      .where(and(eq(outbox.waits, false), olderThanMs > 0 ? lte(outbox.createdAt, msAgo(olderThanMs)) : undefined, isOther(except)))
      .orderBy(asc(outbox.id))
      .limit(limit)
      .for('update', { of: outbox, skipLocked: true })
    if (rows.length === 0) return []
    await send(rows)
    await removeIntents(tx, rows)
    return rows
  })
}

const delayMs = sql<number>`case when ${turns.isDelayed} then greatest(0, ${msUntil(turns.runAt)}) else 0 end`

function isOther(ids: readonly number[]) {
  return ids.length > 0 ? notInArray(outbox.id, [...ids]) : undefined
}

/** They were sent. A process that holds one of them is about to remove it, too. */
export async function removeIntents(db: Database | Transaction, intents: readonly Intent[]): Promise<void> {
  const ids = intents.map(({ id }) => id)
  const free = db.select({ id: outbox.id }).from(outbox).where(inArray(outbox.id, ids)).for('update', { skipLocked: true })
  await db.delete(outbox).where(inArray(outbox.id, free))
}

type DispatchedTurn = Omit<Dispatch, 'delayMs' | 'priority'> & SentTurn & { hasPinnedVersion: boolean }

/**
 * Turns that should be in the queue: next in their task, due for a while, and not waiting in the outbox. After Postgres' clock was set back, a turn
 * without a delay was queued in the future: it counts as due for a while, too. No grace applies to it, because its `runAt` does not show how long it waits;
 * the queue keeps one entry of a turn.
 */
export async function dispatchedTurns(db: Database, { dueForMs, limit }: { dueForMs: number; limit: number }): Promise<DispatchedTurn[]> {
  const isQueuedLater = sql`${sql.raw(dueAt('turns'))} = '-infinity' and ${turns.runAt} > now()`
  const due = await find(lt(turns.runAt, msAgo(dueForMs)), limit)
  const later = due.length < limit ? await find(isQueuedLater, limit - due.length) : []
  return [...due, ...later]

  function find(condition: SQL, most: number): Promise<DispatchedTurn[]> {
    return db
      .select({
        ...{ turnId: turns.id, task: tasks.id, number: turns.number, attempt: turns.attempt },
        agent: sql<string>`queue_of(${turns.tenant}, ${tasks.agent})`,
        ...{ dispatch: turns.dispatch, traceparent: turns.traceparent },
        hasPinnedVersion: sql<boolean>`${sql.raw(hasPinnedVersion)}`,
      })
      .from(turns)
      .innerJoin(tasks, eq(tasks.id, turns.task))
      .leftJoin(outbox, eq(outbox.turn, turns.id))
      .where(and(eq(turns.status, 'queued'), condition, isNull(outbox.id), sql.raw(isNext)))
      .orderBy(asc(turns.runAt))
      .limit(most)
  }
}

/** Sends turns again whose job was lost. They keep their share: a silent worker may take its turn back, which must not exceed a limit. */
export async function redispatch(db: Database, ids: readonly string[]): Promise<void> {
  await db.transaction(async tx => {
    const wanted = sql`${turns.id} = any(${sql.param(ids)}::uuid[])`
    await dispatchAll(tx, await holdTurns(tx, and(eq(turns.status, 'queued'), wanted)), { keepsShare: true })
  })
}

/** Sends the turns that wait for an agent to its queue of now, after the agent of a tenant, or the shared one, was added or removed. */
export async function moveTurns(tx: Transaction, owner: Tenant | null, agent: string): Promise<void> {
  const isWaiting = and(eq(turns.status, 'queued'), eq(tasks.agent, agent), owner === null ? undefined : eq(turns.tenant, owner))
  const ids = await holdTurns(tx, and(isWaiting, sql.raw(isNext)))
  await tx.delete(outbox).where(sql`${outbox.turn} = any(${sql.param(ids)}::uuid[])`)
  await dispatchAll(tx, ids)
}

/** Always in one order, because locking rows in two orders is a deadlock. */
async function holdTurns(tx: Transaction, which: SQL | undefined): Promise<TurnId[]> {
  const found = await tx
    .select({ id: turns.id })
    .from(turns)
    .innerJoin(tasks, eq(tasks.id, turns.task))
    .where(which)
    .orderBy(asc(turns.id))
    .for('update', { of: turns })
  return found.map(({ id }) => id)
}
