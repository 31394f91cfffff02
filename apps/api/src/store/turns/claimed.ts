/** A turn that is claimed, with what its holder has to know of it. */
import { and, asc, eq, lt, sql } from 'drizzle-orm'
import type { Transaction } from '../connection/database.ts'
import type { MessageRow, TaskRow, TurnRow } from '../rows.ts'
import { messages, turns } from '../schema.ts'
import { type StateAround, stateAround } from '../states/task-state.ts'
import { isOwed } from './announcements.ts'

/** With the state of the task: before the turn, and as the turn had made it when it parked. */
export type Claimed = StateAround & {
  task: TaskRow
  turn: TurnRow & { epoch: number; firstIndex: number }
  /** The messages that it starts with, in order. */
  inputs: MessageRow[]
  /** Turns that were merged with it: they are among its inputs. */
  joined: TurnRow[]
  /** Earlier turns whose end may not stand in the log yet. */
  owed: TurnRow[]
}

/** Of a turn that is claimed already, step by step; `claimTurn` reads the same in the statement that claims. */
export async function readClaimed(tx: Transaction, task: TaskRow, turn: TurnRow): Promise<Claimed> {
  const firstIndex = turn.firstIndex ?? 0
  const inputs = await tx
    .select()
    .from(messages)
    .where(and(eq(messages.task, task.id), eq(messages.turn, turn.number), lt(messages.index, firstIndex)))
    .orderBy(asc(messages.index))
  const joined = await tx
    .select()
    .from(turns)
    .where(and(eq(turns.task, task.id), eq(turns.joinedTo, turn.number), lt(turns.joinIndex, firstIndex)))
    .orderBy(asc(turns.number))
  const owed = await tx
    .select()
    .from(turns)
    .where(and(eq(turns.task, task.id), lt(turns.number, turn.number), sql.raw(isOwed('turns'))))
    .orderBy(asc(turns.number))
  return { task, turn: { ...turn, epoch: turn.epoch ?? task.epoch, firstIndex }, inputs, joined, owed, ...(await stateAround(tx, turn)) }
}
