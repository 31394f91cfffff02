/** The first step of a cancel, and of every end that is not the worker's own: from here on, no other process can end or claim the turn. */
import type { Failure, TaskId, TurnId } from '@rivulet/protocol'
import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { everyone, type Readable } from '../connection/tenant.ts'
import type { TaskRow, TurnRow } from '../rows.ts'
import { children, turns } from '../schema.ts'
import { type Claimed, readClaimed } from '../turns/claimed.ts'
import { type EndedTurn, endTurn, endWaitingTurn } from '../turns/end-turn.ts'
import { mergeQueued } from '../turns/join-turns.ts'
import { endedList, pendingTurns } from '../turns/turn-states.ts'
import { closeWaits } from '../waits/close-waits.ts'
import { lockTask, raiseEpoch } from './held-task.ts'

/** How the server ends a turn by itself. */
export type ForcedOutcome =
  | { status: 'canceled'; stopReason: 'aborted'; error?: Failure; withParent?: true }
  | { status: 'failed'; stopReason: 'error'; error: Failure }

/** A turn that is held for its end, the epoch that fences off its worker, and the outcome that it will get. */
export type Seized = { claimed: Claimed; fence: number; outcome: ForcedOutcome }

export type CancelBegun = {
  task: TaskId
  /** The turn that has said something: it is ended once its log has been folded. */
  seized: Seized | null
  /** Turns that never started: they have ended with this transaction. */
  ended: EndedTurn[]
  /** The children that end with it. */
  children: CancelBegun[]
}

export async function beginCancel(tx: Transaction, caller: Readable, task: TaskId, outcome: ForcedOutcome): Promise<CancelBegun> {
  const held = await lockTask(tx, caller, task)
  const pending = await pendingTurns(tx, task)
  // Not by its attempts: one that was given back is not counted, and has yet said something.
  const started = pending.find(turn => turn.firstIndex !== null)
  const ended: EndedTurn[] = []
  for (const turn of pending) if (turn !== started) ended.push(await endWaitingTurn(tx, turn, outcome, started === undefined))
  const spawned = started ? await cancelChildren(tx, started.id) : []
  return { task, seized: started ? await seize(tx, held, started, outcome) : null, ended, children: spawned }
}

/**
 * Begins the cancel of the children that end with a turn, and of theirs. The caller holds the task of the turn: everything takes a tree from its root on, so
 * two cancels cannot wait for each other.
 */
export async function cancelChildren(tx: Transaction, turnId: TurnId): Promise<CancelBegun[]> {
  const isAlive = sql`exists (select from turns where turns.task = ${children.child} and turns.number = 1 and turns.status not in (${sql.raw(endedList)}) and not turns.canceling)`
  const alive = await tx
    .select({ child: children.child })
    .from(children)
    .where(and(eq(children.turn, turnId), eq(children.endsWithParent, true), isAlive))
    .orderBy(children.child)
  const begun: CancelBegun[] = []
  for (const { child } of alive) begun.push(await beginCancel(tx, everyone, child, withParent))
  return begun
}

const withParent: ForcedOutcome = {
  ...{ status: 'canceled', stopReason: 'aborted', withParent: true },
  error: { code: 'canceled', message: 'The task that spawned this one has ended' },
}

/** Takes the turn that has begun from its worker, to cancel it. What waits behind it is merged, in order, and starts without a delay. */
export async function beginInterrupt(tx: Transaction, caller: Readable, task: TaskId, outcome: ForcedOutcome): Promise<CancelBegun> {
  const held = await lockTask(tx, caller, task)
  const pending = await pendingTurns(tx, task)
  const started = pending.find(turn => turn.firstIndex !== null)
  await mergeQueued(tx, pending)
  const spawned = started ? await cancelChildren(tx, started.id) : []
  return { task, seized: started ? await seize(tx, held, started, outcome) : null, ended: [], children: spawned }
}

/** The same for the turn that has begun, or for another one: those behind it run next. One that has joined another ends with that one. */
export async function beginTurnCancel(
  tx: Transaction,
  caller: Readable,
  task: TaskId,
  turnNumber: number | null,
  outcome: ForcedOutcome,
): Promise<CancelBegun> {
  const held = await lockTask(tx, caller, task)
  const pending = await pendingTurns(tx, task)
  const wanted = pending.find(({ number, firstIndex }) => (turnNumber === null ? firstIndex !== null : number === turnNumber))
  const turn = wanted?.joinedTo ? pending.find(({ number }) => number === wanted.joinedTo) : wanted
  if (!turn) return { task, seized: null, ended: [], children: [] }
  if (turn.firstIndex === null) return { task, seized: null, ended: [(await endTurn(tx, turn, outcome)).turn], children: [] }
  const spawned = await cancelChildren(tx, turn.id)
  return { task, seized: await seize(tx, held, turn, outcome), ended: [], children: spawned }
}

/** Takes a turn from the worker that held it when it was read, to end it. Null if another worker has it now, or if the reason no longer holds. */
export async function seizeTurn(db: Database, turn: TurnRow, outcome: ForcedOutcome, reason?: SQL): Promise<Seized | null> {
  return db.transaction(async tx => {
    const task = await lockTask(tx, everyone, turn.task)
    const held = turn.epoch === null ? isNull(turns.epoch) : eq(turns.epoch, turn.epoch)
    const same = and(eq(turns.id, turn.id), eq(turns.status, turn.status), held, reason)
    const [current] = await tx.select().from(turns).where(same).for('update')
    return current ? seize(tx, task, current, outcome) : null
  })
}

/** Ends a turn that never said anything, and lets the next one run. */
export async function endUnstarted(
  db: Database,
  turn: TurnRow,
  outcome: ForcedOutcome,
): Promise<{ turn: EndedTurn; queued: TurnRow[] } | null> {
  return db.transaction(async tx => {
    await lockTask(tx, everyone, turn.task)
    const current = (await pendingTurns(tx, turn.task)).find(({ id }) => id === turn.id)
    return current?.firstIndex === null && current.joinedTo === null ? endTurn(tx, current, outcome) : null
  })
}

/** The first process that seizes a turn decides its outcome. The outcome is stored at once, because another process may complete the end. */
async function seize(tx: Transaction, task: TaskRow, turn: TurnRow, outcome: ForcedOutcome): Promise<Seized> {
  await closeWaits(tx, turn.id, { status: 'canceled' })
  const raised = await raiseEpoch(tx, task.id)
  const decided = turn.canceling ? decidedOutcome(turn) : outcome
  await tx
    .update(turns)
    .set({ canceling: true, stopReason: decided.stopReason, error: decided.error ?? null })
    .where(and(eq(turns.id, turn.id), eq(turns.status, turn.status)))
  return { claimed: await readClaimed(tx, turn.id), fence: raised.epoch, outcome: decided }
}

function decidedOutcome({ stopReason, error }: TurnRow): ForcedOutcome {
  if (stopReason === 'error' && error) return { status: 'failed', stopReason, error }
  return { status: 'canceled', stopReason: 'aborted', ...(error && { error }) }
}
