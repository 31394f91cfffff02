/**
 * The usual claim and the usual end of a turn, each a transaction of one round trip. Both hold the task's row first, as whoever claims or ends a
 * turn does, and then do everything in one statement, or nothing: where something is unusual they answer null, and the long way finds out what.
 */
import { type Message, type TurnStatus, turnStatusesBefore } from '@rivulet/protocol'
import type { Claimed } from './claim-turn.ts'
import type { Database } from './database.ts'
import type { EndedTurn, Holding, Outcome } from './finish-turn.ts'
import { columnsOf, fromJsonRow, type JsonRow, toJsonRow } from './json-rows.ts'
import { type TurnRow, toMessageRow } from './rows.ts'
import { messages, tasks, turns } from './schema.ts'
import type { Statement } from './tenant-pool.ts'

/** The first claim of a turn whose turn it is. */
export async function claimFirst(
  db: Database,
  { turn, claim, worker, leaseMs }: { turn: string; claim: string; worker: string; leaseMs: number },
): Promise<Claimed | null> {
  const { rows } = await db.$client.transact([
    holdTask(turn),
    { name: 'claim_first', text: claimText, values: [turn, claim, worker, leaseMs] },
  ])
  const [found] = rows as { task: JsonRow; turn: JsonRow; input: JsonRow | null; owed: JsonRow[] }[]
  if (!found) return null
  const claimed = fromJsonRow(turns, found.turn)
  const { epoch, firstIndex } = claimed
  if (epoch === null || firstIndex === null) throw new Error(`Turn ${turn} was claimed, and yet has no epoch`)
  return {
    task: fromJsonRow(tasks, found.task),
    turn: { ...claimed, epoch, firstIndex },
    input: found.input && fromJsonRow(messages, found.input),
    owed: found.owed.map(row => fromJsonRow(turns, row)),
  }
}

/** The end of a turn behind which no other waits. */
export async function endOnly(
  db: Database,
  { turn, tenant, epoch, canceling }: Holding,
  { outcome, said }: { outcome: Outcome; said: readonly Message[] },
): Promise<EndedTurn | null> {
  const { status, stopReason, usage = null, error = null } = outcome
  const rows = said.map(message => toJsonRow(messages, toMessageRow(message, tenant)))
  const json = [usage, error].map(value => value && JSON.stringify(value))
  const before: TurnStatus[] = canceling ? turnStatusesBefore(status) : ['running']
  const values = [turn, epoch, canceling, before, status, stopReason, ...json, JSON.stringify(rows)]
  const result = await db.$client.transact([holdTask(turn), { name: 'end_only', text: endText, values }])
  const [found] = result.rows as { turn: JsonRow; agent: string }[]
  if (!found) return null
  const ended: TurnRow = fromJsonRow(turns, found.turn)
  return { ...ended, agent: found.agent }
}

/** Its own statement: what is read after it is read when the lock is held. */
function holdTask(turn: string): Statement {
  return { name: 'hold_task', text: holdText, values: [turn] }
}

const holdText = 'select from tasks where id = (select task from turns where id = $1) for update'

const unfinished = "('queued', 'running', 'waiting')"

/** $1 turn, $2 claim, $3 worker, $4 lease in ms. Answers task, turn, its input as a message, and earlier turns whose end may still be owed. */
const claimText = `
with claimed as (
  update turns set
    status = 'running', attempt = attempt + 1, claim = $2, worker = $3,
    lease_until = now() + $4::float8 * interval '1 millisecond', started_at = coalesce(started_at, now()),
    epoch = tasks.epoch + 1,
    first_index = (select coalesce(max(index) + 1, 0) from messages where messages.task = turns.task) + (turns.input is not null)::int
  from tasks
  where turns.id = $1 and tasks.id = turns.task
    and turns.status = 'queued' and not canceling and first_index is null and deadline > now()
    and not exists (select from turns earlier
      where earlier.task = turns.task and earlier.number < turns.number and earlier.status in ${unfinished})
  returning turns.*
), raised as (
  update tasks set epoch = tasks.epoch + 1, status = 'running', updated_at = now() from claimed where tasks.id = claimed.task returning tasks.*
), asked as (
  insert into messages (task, tenant, index, turn, attempt, author, content, metadata, status, created_at, finished_at)
  select task, tenant, first_index - 1, number, 1, 'user', input, '{}'::json, 'complete', queued_at, now() from claimed where input is not null
  returning *
)
select to_json(raised) as task, to_json(claimed) as turn, (select to_json(asked) from asked) as input,
  (select coalesce(json_agg(to_json(owed) order by number), '[]') from turns owed
    where owed.task = claimed.task and owed.number < claimed.number and owed.status not in ${unfinished} and not owed.announced) as owed
from claimed, raised`

/** $1 turn, $2 epoch, $3 canceling, $4 states it may be in, $5 status, $6 stop reason, $7 usage, $8 error, $9 messages. Answers turn and agent. */
const endText = `
with ended as (
  update turns set
    status = $5, stop_reason = $6, usage = $7, error = $8, finished_at = now(), claim = null, lease_until = null, canceling = false
  where id = $1 and epoch = $2 and canceling = $3 and status = any($4)
    and not exists (select from turns other where other.task = turns.task and other.id <> turns.id and other.status in ${unfinished})
  returning *
), said as (
  insert into messages (${columnsOf(messages)})
  select ${columnsOf(messages)} from json_populate_recordset(null::messages, $9) where exists (select from ended)
), settled as (
  update tasks set status = $5, updated_at = now() from ended where tasks.id = ended.task returning tasks.agent
)
select to_json(ended) as turn, agent from ended, settled`
