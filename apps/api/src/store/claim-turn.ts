/**
 * Who runs a turn. The lease in Postgres alone decides: a job that is delivered twice, late or to a second worker finds it taken.
 *
 * A claim raises the task's epoch, so whoever ran the turn before can no longer write. A turn's first claim fixes its indexes: the input takes
 * the task's next free index, and what the agent says follows it, for all attempts.
 */
import type { Content, RememberedStep } from '@rivulet/protocol'
import { and, asc, eq, inArray, lt, max, sql } from 'drizzle-orm'
import type { Database, Transaction } from './database.ts'
import { leaseEnd } from './leases.ts'
import { isNext, lockTask, raiseEpoch } from './queue-turn.ts'
import type { MessageRow, TaskRow, TurnRow } from './rows.ts'
import { messages, turns } from './schema.ts'
import { claimFirst } from './short-ways.ts'
import { rememberedSteps } from './steps.ts'
import { everyTenant } from './tenant.ts'

export type Claimed = {
  task: TaskRow
  turn: TurnRow & { epoch: number; firstIndex: number }
  input: MessageRow | null
  /** Earlier turns whose end may not stand in the log yet. */
  owed: TurnRow[]
}

export type ClaimAnswer =
  /** `isAgain`: the same claim was answered before. */
  { answer: 'claimed'; claimed: Claimed; steps: RememberedStep[]; isAgain: boolean } | { answer: 'leased' | 'settled' }

export async function claimTurn(
  db: Database,
  wanted: { turn: string; claim: string; worker: string; leaseMs: number },
): Promise<ClaimAnswer> {
  const first = await claimFirst(db, wanted)
  if (first) return { answer: 'claimed', claimed: first, steps: [], isAgain: false }
  const { turn: id, claim, worker, leaseMs } = wanted
  return db.transaction(async tx => {
    const found = await findTurn(tx, id)
    if (!found) return { answer: 'settled' }
    const task = await lockTask(tx, everyTenant, found.task)
    const turn = await findTurn(tx, id)
    if (turn?.status === 'running' && turn.claim === claim && !turn.canceling) {
      const handed = await handOver(tx, turn, worker, leaseMs)
      return { answer: 'claimed', claimed: await describeClaim(tx, task, handed), steps: await rememberedSteps(tx, id), isAgain: true }
    }
    if (turn?.status === 'running') return { answer: 'leased' }
    if (turn?.status !== 'queued' || turn.canceling || turn.deadline <= new Date() || !(await isNext(tx, turn)))
      return { answer: 'settled' }

    const firstIndex = turn.firstIndex ?? (await fixIndexes(tx, turn))
    const raised = await raiseEpoch(tx, task, { status: 'running', updatedAt: sql`now()` })
    const [claimed] = await tx
      .update(turns)
      .set({
        ...{ status: 'running', claim, worker, firstIndex },
        epoch: raised.epoch,
        attempt: sql`${turns.attempt} + 1`,
        leaseUntil: leaseEnd(leaseMs),
        startedAt: sql`coalesce(${turns.startedAt}, now())`,
      })
      .where(and(eq(turns.id, id), eq(turns.status, 'queued')))
      .returning()
    if (!claimed) return { answer: 'settled' }
    // Not by its attempts: one that was given back is not counted, and may yet have taken steps.
    const steps = turn.firstIndex === null ? [] : await rememberedSteps(tx, id)
    return { answer: 'claimed', claimed: await describeClaim(tx, raised, claimed), steps, isAgain: false }
  })
}

/** A claim may be passed on, to a process of the turn's own: the lease is that of whoever named the claim last. */
async function handOver(tx: Transaction, turn: TurnRow, worker: string, leaseMs: number): Promise<TurnRow> {
  const [handed] = await tx
    .update(turns)
    .set({ worker, leaseUntil: leaseEnd(leaseMs) })
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
    const raised = await raiseEpoch(tx, task)
    const [reopened] = await tx.update(turns).set({ epoch: raised.epoch }).where(eq(turns.id, id)).returning()
    return reopened ? describeClaim(tx, raised, reopened) : null
  })
}

async function findTurn(tx: Transaction, id: string): Promise<TurnRow | undefined> {
  const [turn] = await tx.select().from(turns).where(eq(turns.id, id))
  return turn
}

/** Gives the input its index and stores it; answers the index of the agent's first message. */
async function fixIndexes(tx: Transaction, turn: TurnRow): Promise<number> {
  const [highest] = await tx
    .select({ index: max(messages.index) })
    .from(messages)
    .where(eq(messages.task, turn.task))
  const next = highest?.index == null ? 0 : highest.index + 1
  if (turn.input === null) return next
  const now = new Date()
  await tx.insert(messages).values({
    ...{ task: turn.task, tenant: turn.tenant, turn: turn.number, index: next },
    attempt: 1,
    author: 'user',
    content: turn.input as Content,
    metadata: {},
    status: 'complete',
    createdAt: turn.queuedAt,
    finishedAt: now,
  })
  return next + 1
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
  const ended = inArray(turns.status, ['completed', 'failed', 'canceled'])
  const unannounced = and(eq(turns.task, task.id), lt(turns.number, turn.number), ended, eq(turns.announced, false))
  const owed = await tx.select().from(turns).where(unannounced).orderBy(asc(turns.number))
  return { task, turn: { ...turn, epoch: turn.epoch ?? task.epoch, firstIndex }, input: input ?? null, owed }
}
