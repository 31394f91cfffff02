/**
 * A turn that is claimed, with everything that its holder needs. The statement that claims a turn and the one that reads a claimed turn share these
 * parts, so both return the same.
 */
import type { State, TurnId } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import type { Transaction } from '../connection/database.ts'
import { fromJsonRow, type JsonRow } from '../connection/json-rows.ts'
import type { MessageRow, TaskRow, TurnRow } from '../rows.ts'
import { messages, tasks, turns } from '../schema.ts'
import { type StateAround, stateBefore, stateOf } from '../states/task-state.ts'
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

/** What a statement with `claimedColumns` returns. */
export type ClaimedJson = {
  task: JsonRow
  turn: JsonRow
  inputs: JsonRow[]
  joined: JsonRow[]
  owed: JsonRow[]
  state: State | null
  keptState: State | null
}

/**
 * Columns of a statement in which `claimed` is a turn and `raised` its task. `asked`, `joined` and `replaced` are the messages and turns that the statement
 * itself writes for all its turns and the states that it deletes, because a statement does not see its own changes.
 */
export const claimedColumns = `to_json(raised) as task, to_json(claimed) as turn,
  (select coalesce(json_agg(to_json(said) order by index), '[]') from (
    select * from asked where asked.task = claimed.task union all
    select messages.* from messages where messages.task = claimed.task and messages.turn = claimed.number and messages.index < claimed.first_index
  ) as said) as inputs,
  (select coalesce(json_agg(to_json(joined) order by number), '[]') from (
    select * from joined where joined.task = claimed.task union all
    select other.* from turns other where other.task = claimed.task and other.joined_to = claimed.number and other.join_index < claimed.first_index
  ) as joined) as joined,
  (select coalesce(json_agg(to_json(owed) order by number), '[]') from turns owed
    where owed.task = claimed.task and owed.number < claimed.number and ${isOwed('owed')}) as owed,
  ${stateBefore('claimed')} as state,
  case when not exists (select from replaced where replaced.task = claimed.task) then ${stateOf('claimed')} end as "keptState"`

export async function readClaimed(tx: Transaction, turnId: TurnId): Promise<Claimed> {
  return toClaimed(await selectClaimed(tx, turnId, claimedColumns))
}

/** Reads columns of a turn that is claimed already, and whose task is held. */
export async function selectClaimed<Row extends ClaimedJson>(tx: Transaction, turnId: TurnId, columns: string): Promise<Row> {
  const { rows } = await tx.execute(sql`
    with claimed as (select * from turns where id = ${turnId}),
    raised as (select tasks.* from tasks, claimed where tasks.id = claimed.task),
    asked as (select * from messages where false), joined as (select * from turns where false), replaced as (select * from states where false)
    select ${sql.raw(columns)} from claimed, raised`)
  const [found] = rows as Row[]
  if (!found) throw new Error(`Turn ${turnId} is held, and yet gone`)
  return found
}

export function toClaimed(found: ClaimedJson): Claimed {
  const task = fromJsonRow(tasks, found.task)
  const turn = fromJsonRow(turns, found.turn)
  return {
    task,
    turn: { ...turn, epoch: turn.epoch ?? task.epoch, firstIndex: turn.firstIndex ?? 0 },
    inputs: found.inputs.map(input => fromJsonRow(messages, input)),
    joined: found.joined.map(other => fromJsonRow(turns, other)),
    owed: found.owed.map(earlier => fromJsonRow(turns, earlier)),
    state: found.state,
    keptState: found.keptState,
  }
}
