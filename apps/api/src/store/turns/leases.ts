/**
 * Leases: a worker's hold on its turns, renewed by heartbeats, given back at a clean stop, taken away when its worker is gone.
 *
 * A turn that is reclaimed because its lease expired keeps its worker's id until the next claim, so a worker that was late, and not dead, can take it
 * back: the turn keeps the epoch of its claim, and the log follows only the next claim.
 */
import type { Holding } from '@rivulet/contract/internal'
import type { TurnId } from '@rivulet/protocol'
import { and, eq, getTableColumns, lt, type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { isHeldUp } from '../connection/database-errors.ts'
import { everyone } from '../connection/tenant.ts'
import { findByKey } from '../connection/tenant-pool.ts'
import type { TurnRow } from '../rows.ts'
import { turns, workers } from '../schema.ts'
import { heldTurns, holdFreeTasksOf, lockTask, raisedEpoch, raiseEpoch, resultsOf } from '../tasks/held-task.ts'
import { dispatch } from '../tasks/outbox.ts'
import { type AttemptEnd, keepAttempt } from './attempts.ts'

type Extended = {
  /** Turns that this worker no longer holds. */
  lost: string[]
  /** Turns that were taken away from it, and that no other worker had claimed. */
  takenBack: TakenBack[]
}

type TakenBack = Pick<TurnRow, 'id' | 'task' | 'number' | 'attempt' | 'traceparent'>

/** Extends the leases of one worker process at once. */
export async function extendLeases(db: Database, worker: string, held: readonly Holding[], leaseMs: number): Promise<Extended> {
  if (held.length === 0) return { lost: [], takenBack: [] }
  const values = [...parametersOf(held), worker, leaseMs]
  const [, { rows }] = await db.$client.transact([findByKey, { name: 'extend_leases', text: extendText, values }])
  const notRun = new Map((rows as { place: string; reclaimed: boolean }[]).map(({ place, reclaimed }) => [Number(place) - 1, reclaimed]))
  const gone = held.filter((_, i) => notRun.get(i) === false).map(({ turnId }) => turnId)
  const reclaimed = held.filter((_, i) => notRun.get(i))
  const { lost, takenBack } = await takeBack(db, worker, reclaimed, leaseMs)
  return { lost: [...gone, ...lost], takenBack }
}

/** Three values, however many turns there are. */
function parametersOf(held: readonly Holding[]): [string[], number[], string[]] {
  return [held.map(({ turnId }) => turnId), held.map(({ epoch }) => epoch), held.map(({ claimId }) => claimId)]
}

/**
 * $1 turns, $2 epochs, $3 claims, $4 worker, $5 lease in ms. The claim tells a worker from its successor, whose lease it must not keep alive. The epoch may be
 * older than the row's: while the log of the turn is opened anew, its worker does not know the new epoch yet, and still runs the turn.
 */
const heldText = 'unnest($1::uuid[], $2::bigint[], $3::text[]) with ordinality as held (id, epoch, claim, place)'
const leaseEnd = `now() + $5::float8 * interval '1 millisecond'`
const isHeld = 'turns.epoch >= held.epoch and turns.claim = held.claim and turns.worker = $4 and not turns.canceling'
/** By its key alone: for a status, a plan may go through the index of all turns of that status, once for each that is held. */
const heldRow = 'lateral (select * from turns where turns.id = held.id offset 0) as turns'

/**
 * Finds the turns that the worker does not run: `reclaimed` where no other worker has claimed it yet.
 *
 * A row that is locked is being ended or claimed at this moment: it is passed over, and neither keeps the others waiting nor counts as lost. A turn with a
 * lease runs.
 */
const extendText = `
with free as (
  select own.id from ${heldText} cross join lateral (
    select id from turns where turns.id = held.id and ${isHeld} and lease_until is not null for update skip locked
  ) as own
), extended as (
  update turns set lease_until = ${leaseEnd} from free where turns.id = free.id
)
select held.place, turns.id is not null as reclaimed from ${heldText}
left join ${heldRow} on ${isHeld} and turns.status in ('running', 'queued')
where turns.id is null or turns.status = 'queued'`

/**
 * The leases ended while the worker was there. Turns that no other worker has claimed go on where they are, and nothing died. All in one transaction: a
 * worker that is late with thousands of turns would be later still if each took its own. Turns whose task is locked, and all of them if one of their rows is,
 * are left for the next heartbeat: what it has renewed stays renewed.
 */
async function takeBack(db: Database, worker: string, reclaimed: readonly Holding[], leaseMs: number): Promise<Extended> {
  if (reclaimed.length === 0) return { lost: [], takenBack: [] }
  const ids = reclaimed.map(({ turnId }) => turnId)
  const statement = { name: 'take_back', text: takeBackText, values: [...parametersOf(reclaimed), worker, leaseMs] }
  const done = await db.$client.transact([holdFreeTasksOf(ids), statement]).catch(error => {
    if (isHeldUp(error)) return null
    throw error
  })
  if (!done) return { lost: [], takenBack: [] }
  const [locked, taken] = done
  const found = new Map((taken.rows as TakenBack[]).map(row => [row.id, row]))
  const results = resultsOf(ids, found, { locked, isAlone: false })
  return { lost: ids.filter((_, i) => results[i] === null), takenBack: [...found.values()] }
}

/**
 * Not a turn without its share of the workers, because another turn may have got it: both would run, above the limit of their key. What is found in `queued`
 * stays true, because whatever changes it holds the task.
 */
const takeBackText = `
with queued as (
  select turns.id from ${heldText} cross join ${heldRow}
  where held.id = any(${heldTurns}) and ${isHeld} and turns.status = 'queued' and turns.lease_until is null and turns.sent is not null
), taken as (
  update turns set status = 'running', lease_until = ${leaseEnd}, deaths = deaths - 1
  from queued where turns.id = queued.id
  returning turns.id, task, number, attempt, traceparent
), forgotten as (
  delete from attempts using taken where attempts.turn = taken.id and attempts.attempt = taken.attempt
), raised as (
  update tasks set epoch = ${raisedEpoch}, status = 'running', updated_at = now() from taken where tasks.id = taken.task
)
select * from taken`

/** A turn that this claim holds under this epoch, and that is not being ended. */
export function isHeldUnder({ epoch, claimId }: Holding): SQL | undefined {
  return and(eq(turns.epoch, epoch), eq(turns.claim, claimId), eq(turns.status, 'running'), eq(turns.canceling, false))
}

/** No worker holds it: what a worker reports about it from now on comes too late. */
const released = { claim: null, worker: null }

/** As if it had never been claimed. */
const unclaimed = { ...released, attempt: sql`${turns.attempt} - 1` }

export async function releaseTurn(db: Database, holding: Holding): Promise<boolean> {
  return release(db, holding.turnId, isHeldUnder(holding), unclaimed)
}

/** A turn whose lease has ended. */
export const isExpired = and(eq(turns.status, 'running'), eq(turns.canceling, false), lt(turns.leaseUntil, sql`now()`))

export type ExpiredTurn = TurnRow & {
  /** The worker sent a hello long after it last renewed this lease: it lives, and does not run this turn. */
  isForgotten: boolean
}

export async function expiredTurns(db: Database, { leaseMs, limit }: { leaseMs: number; limit: number }): Promise<ExpiredTurn[]> {
  const sinceRenewal = sql`${turns.leaseUntil} - ${leaseMs / 2} * interval '1 millisecond'`
  const isForgotten = sql<boolean>`exists (select from ${workers} where ${workers.id} = ${turns.worker} and ${workers.seenAt} > ${sinceRenewal})`
  return db
    .select({ ...getTableColumns(turns), isForgotten })
    .from(turns)
    .where(isExpired)
    .orderBy(turns.leaseUntil)
    .limit(limit)
}

export async function hasExpiredTurns(db: Database): Promise<boolean> {
  const found = await db.select({ id: turns.id }).from(turns).where(isExpired).limit(1)
  return found.length > 0
}

/** Reclaims a turn from a worker that lives and does not run it, because it never received the claim's response. */
export async function releaseForgotten(db: Database, turnId: TurnId): Promise<boolean> {
  return release(db, turnId, isExpired, unclaimed)
}

/** Reclaims a turn and counts a death. A `silent` worker, whose lease expired, can take the turn back; a `dead` one cannot. */
export async function countDeath(
  db: Database,
  turn: TurnRow,
  worker: 'dead' | 'silent',
  condition: SQL | undefined,
  lost: AttemptEnd,
): Promise<boolean> {
  const change = { ...(worker === 'dead' && released), deaths: sql`${turns.deaths} + 1` }
  return release(db, turn.id, condition, change, (tx, { attempt }) => keepAttempt(tx, { ...turn, attempt }, lost))
}

type Change = Partial<typeof released & Record<'attempt' | 'deaths', SQL>>

async function release(
  db: Database,
  id: string,
  condition: SQL | undefined,
  change: Change,
  also: (tx: Transaction, queued: TurnRow) => Promise<void> = async () => {},
): Promise<boolean> {
  return db.transaction(async tx => {
    const task = await taskOf(tx, id)
    if (!task) return false
    await lockTask(tx, everyone, task)
    const [queued] = await tx
      .update(turns)
      .set({ status: 'queued', leaseUntil: null, runAt: sql`now()`, isDelayed: false, ...change })
      .where(and(eq(turns.id, id), condition))
      .returning()
    if (!queued) return false
    await also(tx, queued)
    await dispatch(tx, id, { keepsShare: true })
    await raiseEpoch(tx, queued.task, 'queued')
    return true
  })
}

async function taskOf(tx: Transaction, turnId: TurnId): Promise<string | undefined> {
  const [row] = await tx.select({ task: turns.task }).from(turns).where(eq(turns.id, turnId))
  return row?.task
}
