/**
 * Who runs a turn. The lease in Postgres alone decides: a job that is delivered twice, late or to a second worker finds it taken.
 *
 * A claim raises the task's epoch, so whoever ran the turn before can no longer write. A turn's first claim fixes its indexes: the input takes
 * the task's next free index, and what the agent says follows it, for all attempts.
 */
import type { RememberedStep } from '@rivulet/protocol'
import { and, asc, eq, lt, notInArray, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { msFromNow } from '../connection/moments.ts'
import { everyTenant } from '../connection/tenant.ts'
import type { MessageRow, TaskRow, TurnRow } from '../rows.ts'
import { messages, turns } from '../schema.ts'
import { lockTask, raiseEpoch, unfinished } from '../tasks/queue-turn.ts'
import { rememberedSteps } from '../tasks/steps.ts'
import { type Claim, type ClaimClock, claimClock, claimQueued, isClaimable } from './claim-queued.ts'

export type Claimed = {
  task: TaskRow
  turn: TurnRow & { epoch: number; firstIndex: number }
  input: MessageRow | null
  /** Earlier turns whose end may not stand in the log yet. */
  owed: TurnRow[]
}

export type ClaimAnswer =
  /** `isAgain`: the same claim was answered before. */
  | { answer: 'claimed'; claimed: Claimed; steps: RememberedStep[]; clock: ClaimClock; isAgain: boolean }
  /** Its time has not come: its job is early. */
  | { answer: 'early'; waitMs: number }
  | { answer: 'leased' | 'settled' }

export async function claimTurn(db: Database, wanted: Claim): Promise<ClaimAnswer> {
  const queued = await claimQueued(db, wanted)
  if (queued) return { answer: 'claimed', ...queued, isAgain: false }
  const { turn: id, claim, worker, leaseMs } = wanted
  return db.transaction(async tx => {
    const found = await findTurn(tx, id)
    if (!found) return { answer: 'settled' }
    const task = await lockTask(tx, everyTenant, found.task)
    const [stored] = await tx.select(storedClaim).from(turns).where(eq(turns.id, id))
    if (!stored) return { answer: 'settled' }
    const { turn, clock } = stored
    // One whose time came between the two looks is asked for again at once.
    if (stored.isClaimable) return { answer: 'early', waitMs: Math.max(1, -clock.sinceDueMs) }
    if (turn.status !== 'running') return { answer: 'settled' }
    if (turn.claim !== claim || turn.canceling) return { answer: 'leased' }
    const handed = await handOver(tx, turn, worker, leaseMs)
    const claimed = await describeClaim(tx, task, handed)
    return { answer: 'claimed', claimed, steps: await rememberedSteps(tx, id), clock, isAgain: true }
  })
}

/** A claim may be passed on, to a process of the turn's own: the lease is that of whoever named the claim last. */
async function handOver(tx: Transaction, turn: TurnRow, worker: string, leaseMs: number): Promise<TurnRow> {
  const [handed] = await tx
    .update(turns)
    .set({ worker, leaseUntil: msFromNow(leaseMs) })
    .where(eq(turns.id, turn.id))
    .returning()
  return handed ?? turn
}

/**
 * After a log lost entries: a new epoch for the same attempt. Null when the turn is no longer this worker's. Asked again under the epoch before,
 * because the answer was lost, it answers the same again.
 */
export async function reopenTurn(
  db: Database,
  { turn: id, epoch, claimId }: { turn: string; epoch: number; claimId: string },
): Promise<Claimed | null> {
  return db.transaction(async tx => {
    const found = await findTurn(tx, id)
    if (!found) return null
    const task = await lockTask(tx, everyTenant, found.task)
    const turn = await findTurn(tx, id)
    if (turn?.status !== 'running' || turn.canceling || turn.claim !== claimId || (turn.epoch ?? 0) < epoch) return null
    if (turn.epoch !== epoch) return describeClaim(tx, task, turn)
    const raised = await raiseEpoch(tx, task.id)
    const [reopened] = await tx.update(turns).set({ epoch: raised.epoch }).where(eq(turns.id, id)).returning()
    return reopened ? describeClaim(tx, raised, reopened) : null
  })
}

const storedClaim = {
  turn: turns,
  isClaimable: sql<boolean>`${sql.raw(isClaimable)}`,
  clock: sql<ClaimClock>`${sql.raw(claimClock('turns'))}`,
}

async function findTurn(tx: Transaction, id: string): Promise<TurnRow | undefined> {
  const [turn] = await tx.select().from(turns).where(eq(turns.id, id))
  return turn
}

/** What whoever holds a turn has to know of it. */
export async function describeClaim(tx: Transaction, task: TaskRow, turn: TurnRow): Promise<Claimed> {
  const firstIndex = turn.firstIndex ?? 0
  const [input] =
    turn.input === null
      ? []
      : await tx
          .select()
          .from(messages)
          .where(and(eq(messages.task, task.id), eq(messages.index, firstIndex - 1)))
  const ended = notInArray(turns.status, unfinished)
  const unannounced = and(eq(turns.task, task.id), lt(turns.number, turn.number), ended, eq(turns.announced, false))
  const owed = await tx.select().from(turns).where(unannounced).orderBy(asc(turns.number))
  return { task, turn: { ...turn, epoch: turn.epoch ?? task.epoch, firstIndex }, input: input ?? null, owed }
}
