/** The end of a turn whose task is held: its outcome, the task's state and the next turn's dispatch. */
import {
  type Failure,
  RivuletError,
  type StopReason,
  type TaskId,
  type TaskStatus,
  turnStatusesBefore,
  type Usage,
} from '@rivulet/protocol'
import { and, eq, getTableColumns, inArray, sql } from 'drizzle-orm'
import { noteChildEnd } from '../children/child-ends.ts'
import type { Transaction } from '../connection/database.ts'
import type { TurnRow } from '../rows.ts'
import { tasks, turns } from '../schema.ts'
import { raiseEpoch } from '../tasks/held-task.ts'
import { dispatch } from '../tasks/outbox.ts'
import { totals } from '../usage/record-usage.ts'
import { closeWaits } from '../waits/close-waits.ts'
import { leaveJoined } from './join-turns.ts'
import { pendingTurns, turnColumns } from './turn-states.ts'

export type Outcome = {
  status: 'completed' | 'failed' | 'canceled'
  stopReason: StopReason
  usage?: Usage
  error?: Failure
  detail?: string
  /** The end of its parent is what ends it. */
  withParent?: true
}

/** With the agent of its task, for metrics, and its parent, for the turn that waits there. */
export type EndedTurn = TurnRow & { agent: string; parent: TaskId | null }

/** A turn that has ended, those that had joined it, and those that wait behind them. */
export type TurnsEnded = { turn: EndedTurn; joined: EndedTurn[]; queued: TurnRow[] }

/** Ends a turn that is held, with the turns that have joined it, and sends the next one on its way. */
export async function endTurn(tx: Transaction, turn: TurnRow, outcome: Outcome): Promise<TurnsEnded> {
  await closeWaits(tx, turn.id, { status: 'canceled' })
  const ended = await setOutcome(tx, turn, outcome, getTableColumns(turns))
  const joined: EndedTurn[] = []
  // What the turn has used is counted once, in its own row.
  const { usage: _, detail: __, ...shared } = outcome
  for (const other of await leaveJoined(tx, turn)) joined.push(await setOutcome(tx, other, shared, turnColumns, ['queued']))
  const pending = await pendingTurns(tx, turn.task)
  const [next] = pending
  const queued = pending.filter(({ status }) => status === 'queued')
  // A turn that waited can end, by its deadline, before the one that runs: then nothing becomes free.
  const isFree = !next || next.number > turn.number
  if (next && isFree) await dispatch(tx, next.id)
  await raiseEpoch(tx, turn.task, !isFree ? undefined : next ? 'queued' : outcome.status)
  await noteChildEnd(tx, ended, outcome)
  return { turn: ended, joined, queued }
}

/** Ends a turn behind the one that is being ended. `isLast` when no other end will tell the task's state. */
export async function endWaitingTurn(tx: Transaction, turn: TurnRow, outcome: Outcome, isLast: boolean): Promise<EndedTurn> {
  if (isLast) await raiseEpoch(tx, turn.task, outcome.status)
  const ended = await setOutcome(tx, turn, outcome, turnColumns)
  await noteChildEnd(tx, ended, outcome)
  return ended
}

type OutcomeColumn = 'status' | 'stopReason' | 'usage' | 'error' | 'errorDetail'

/** The columns that every end of a turn sets: those of its outcome, as values or as the parameters of a statement, and those that are always the same. */
export function endColumns<Outcome extends Record<OutcomeColumn, unknown>>(outcome: Outcome) {
  return { ...outcome, ...totals, finishedAt: sql`now()`, leaseUntil: sql`null`, canceling: sql`false` }
}

type Columns = typeof turnColumns | typeof turns._.columns

async function setOutcome(
  tx: Transaction,
  turn: TurnRow,
  outcome: Outcome,
  columns: Columns,
  before: TaskStatus[] = turnStatusesBefore(outcome.status),
): Promise<EndedTurn> {
  const { status, stopReason, usage = null, error = null, detail: errorDetail = null } = outcome
  const [ended] = await tx
    .update(turns)
    .set(endColumns({ status, stopReason, usage, error, errorDetail }))
    .from(tasks)
    .where(and(eq(turns.id, turn.id), eq(tasks.id, turns.task), inArray(turns.status, before)))
    .returning({ ...columns, agent: tasks.agent, parent: tasks.parent })
  if (!ended) throw new RivuletError('internal', 'A turn that is held cannot have ended')
  return ended
}
