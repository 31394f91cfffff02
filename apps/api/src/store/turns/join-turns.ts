/**
 * Turns that become a part of another one. A queued turn is taken by the turn that runs (`inject`), or by the one before it when that is claimed
 * (`merge`, and all that waits when an input interrupts). Only turns that follow directly are taken, so no input overtakes another.
 *
 * A turn that was taken stays queued until the one that took it ends. If its input is among the messages that are committed then, it ends too;
 * if not, it runs next.
 */
import type { JoinedInput, TakeBody } from '@rivulet/contract/internal'
import { maxJoinedBytes, outcomeStatusSchema, type TaskId, type TurnId } from '@rivulet/protocol'
import { and, asc, eq, gt, inArray, notInArray, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { msFromNow } from '../connection/moments.ts'
import { everyone } from '../connection/tenant.ts'
import type { TurnRow } from '../rows.ts'
import { turns } from '../schema.ts'
import { lockTask, raiseEpoch } from '../tasks/held-task.ts'
import { dispatch } from '../tasks/outbox.ts'
import { isHeldBy } from './held-turn.ts'
import { endedList, inputArray } from './turn-states.ts'

/** The start of a turn is moved until so long after its latest input, but not beyond so long after its first. */
export type Debounce = { ms: number; maxMs: number }

/** Waits in the queue, and no turn has taken it. */
function isWaiting({ status, firstIndex, joinedTo }: TurnRow): boolean {
  return status === 'queued' && firstIndex === null && joinedTo === null
}

/** Moves the start of the turn that a new one would be merged with. False when no turn waits: the new one starts by itself. */
export async function putOff(tx: Transaction, pending: readonly TurnRow[], { ms, maxMs }: Debounce): Promise<boolean> {
  const waiting = pending.filter(isWaiting)
  const first = waiting.findLast(({ joins }) => joins !== 'merge') ?? waiting[0]
  if (!first) return false
  const start = sql`greatest(${turns.runAt}, least(${msFromNow(ms)}, ${turns.queuedAt} + ${maxMs} * interval '1 millisecond'))`
  await tx.update(turns).set({ runAt: start, isDelayed: true }).where(eq(turns.id, first.id))
  return true
}

/** Merges everything that waits, in order. The first of it starts without a delay. */
export async function mergeQueued(tx: Transaction, pending: readonly TurnRow[]): Promise<void> {
  const queued = pending.filter(({ firstIndex }) => firstIndex === null).map(({ id }) => id)
  if (queued.length > 0) await tx.update(turns).set({ joins: 'merge' }).where(inArray(turns.id, queued))
  const first = pending.find(isWaiting)
  if (!first) return
  const delayed = and(eq(turns.id, first.id), gt(turns.runAt, sql`now()`))
  const hastened = await tx.update(turns).set({ runAt: sql`now()`, isDelayed: false }).where(delayed).returning({ id: turns.id })
  // Its job waits for the old time.
  if (hastened.length > 0 && first === pending[0]) await dispatch(tx, first.id)
}

/**
 * The inputs that a turn gets while it runs: those that have joined it before, and the queued turns behind it that want to join. Null when the turn is
 * no longer this claim's. Most of the time there is nothing, which needs no lock.
 */
export async function takeInputs(db: Database, wanted: TakeBody): Promise<JoinedInput[] | null> {
  const { turnId, claimId, after, upTo = Number.MAX_SAFE_INTEGER } = wanted
  const [turn] = await db.select({ task: turns.task }).from(turns).where(isHeldBy(turnId, claimId))
  if (!turn) return null
  if ((await behind(db, turn.task, turnId, after)).length === 0) return []
  return db.transaction(async tx => {
    await lockTask(tx, everyone, turn.task)
    const [held] = await tx.select().from(turns).where(isHeldBy(turnId, claimId))
    if (!held) return null
    const candidates = (await behind(tx, turn.task, turnId, after)).filter(({ number }) => number <= upTo)
    const taken = fitting(candidates, held, Math.min(wanted.maxBytes, maxJoinedBytes))
    const fresh = taken.filter(({ joinedTo }) => joinedTo === null)
    if (fresh.length > 0) {
      await tx
        .update(turns)
        .set({ joinedTo: held.number })
        .where(
          inArray(
            turns.id,
            fresh.map(({ id }) => id),
          ),
        )
      await raiseEpoch(tx, turn.task)
    }
    return inputsOf(tx, taken)
  })
}

type Candidate = Pick<TurnRow, 'id' | 'number' | 'joins' | 'joinedTo' | 'joinIndex'> & { bytes: number }

/** Turns behind another one that have not ended, in order, with the size of their inputs. */
async function behind(db: Database | Transaction, task: TaskId, turnId: TurnId, after: number): Promise<Candidate[]> {
  const { id, number, joins, joinedTo, joinIndex } = turns
  const bytes = sql<number>`octet_length(${sql.raw(inputArray('turns'))}::text)`
  return db
    .select({ id, number, joins, joinedTo, joinIndex, bytes })
    .from(turns)
    .where(
      and(
        eq(turns.task, task),
        gt(turns.number, sql`greatest(${after}::int, (select number from turns where id = ${turnId}))`),
        notInArray(turns.status, outcomeStatusSchema.options),
      ),
    )
    .orderBy(asc(turns.number))
}

/** As many of the first as fit, without those that were merged when the turn was claimed: these are among its inputs. */
function fitting(candidates: readonly Candidate[], { number, firstIndex }: TurnRow, maxBytes: number): Candidate[] {
  const taken: Candidate[] = []
  let left = maxBytes
  for (const candidate of candidates) {
    const { joins, joinedTo, joinIndex, bytes } = candidate
    if (joinedTo === number && joinIndex !== null && joinIndex < (firstIndex ?? 0)) continue
    left -= bytes
    if ((joinedTo !== number && joins !== 'inject') || left < 0) break
    taken.push(candidate)
  }
  return taken
}

async function inputsOf(tx: Transaction, taken: readonly Candidate[]): Promise<JoinedInput[]> {
  if (taken.length === 0) return []
  const ids = taken.map(({ id }) => id)
  const rows = await tx
    .select({ turn: turns.number, input: turns.input, inputs: turns.inputs })
    .from(turns)
    .where(inArray(turns.id, ids))
    .orderBy(asc(turns.number))
  return rows.map(({ turn, input, inputs }) => ({ turn, inputs: inputs ?? (input ? [input] : []) }))
}

/** Where the inputs of turns that have joined begin, by the number of the turn. */
export type Joins = ReadonlyMap<number, number>

/** Notes which turns have joined with messages that this transaction stores. */
export async function confirmJoins(tx: Transaction, { task, number }: Pick<TurnRow, 'task' | 'number'>, joins: Joins): Promise<void> {
  for (const [joined, index] of joins) {
    const own = and(eq(turns.task, task), eq(turns.number, joined), eq(turns.joinedTo, number), sql`${turns.joinIndex} is null`)
    await tx.update(turns).set({ joinIndex: index }).where(own)
  }
}

/** At the end of a turn: those that have joined it and end with it. The others that it took run next. */
export async function leaveJoined(tx: Transaction, { task, number }: Pick<TurnRow, 'task' | 'number'>): Promise<TurnRow[]> {
  const isTaken = and(eq(turns.task, task), eq(turns.joinedTo, number), notInArray(turns.status, outcomeStatusSchema.options))
  await tx
    .update(turns)
    .set({ joinedTo: null })
    .where(and(isTaken, sql`${turns.joinIndex} is null`))
  return tx.select().from(turns).where(isTaken).orderBy(asc(turns.number))
}

/**
 * Parts of the statement that claims the turns in `wanted`: `merged` has the turns that follow one of them, the `taker`, and are to be merged with it, as
 * far as they fit, with the place of their first input among the merged ones. The turn runs with the params of the latest that has any. Only the first claim
 * merges, because it fixes the indexes of the turn.
 */
export const mergedParts = `
following as (
  select own.id as taker, other.id, other.number, other.params, other.input_metadata, ${inputArray('other')} as all_inputs, other.queued_at,
    sum(octet_length(${inputArray('other')}::text)) over behind as bytes,
    bool_and(other.joins is not distinct from 'merge' and other.joined_to is null) over behind as is_merged
  from wanted join turns own on own.id = wanted.id
  join turns other on other.task = own.task and other.number > own.number and other.status not in (${endedList})
  where own.first_index is null
  window behind as (partition by own.id order by other.number)
), merged as (
  select taker, id, number, params, input_metadata, all_inputs, queued_at,
    coalesce(sum(json_array_length(all_inputs)) over (partition by taker order by number rows between unbounded preceding and 1 preceding), 0)::int as place
  from following where is_merged and bytes <= ${maxJoinedBytes}
)`
