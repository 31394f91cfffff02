/**
 * The one way in which a queued turn is claimed, for the first time or again: a transaction of one round trip. It holds the task's row, as
 * whoever claims or ends a turn does, and then does everything in one statement, or nothing.
 */
import type { RememberedStep } from '@rivulet/protocol'
import type { Database } from '../connection/database.ts'
import { fromJsonRow, type JsonRow } from '../connection/json-rows.ts'
import { messages, tasks, turns } from '../schema.ts'
import { holdTaskOf, isNext, notQueuedList, raisedEpoch, unfinishedList } from '../tasks/queue-turn.ts'
import type { Claimed } from './claim-turn.ts'

/** What names a claim: it is the caller's own, so that one who has not heard the answer can ask again. */
export type Claim = { turn: string; claim: string; worker: string; leaseMs: number }

/** How far a turn is from its times when it is claimed, by the clock of Postgres. */
export type ClaimClock = { timeLeftMs: number; sinceQueuedMs: number; sinceDueMs: number }

/** The same in SQL, for a row with the columns of a turn. */
export const claimClock = (turn: string) => `json_build_object(
  'timeLeftMs', floor(extract(epoch from ${turn}.deadline - now()) * 1000),
  'sinceQueuedMs', floor(extract(epoch from now() - ${turn}.queued_at) * 1000),
  'sinceDueMs', floor(extract(epoch from now() - ${turn}.run_at) * 1000)
)`

/** What a turn has to be to be claimed, now or when it is due, in SQL about turns. */
export const isClaimable = `turns.status not in (${notQueuedList}) and not turns.canceling and turns.deadline > now() and ${isNext}`

/** Null when the turn cannot be claimed now: not queued, being ended, too early, too late, or not its task's next. */
export async function claimQueued(
  db: Database,
  { turn, claim, worker, leaseMs }: Claim,
): Promise<{ claimed: Claimed; steps: RememberedStep[]; clock: ClaimClock } | null> {
  const values = [turn, claim, worker, leaseMs]
  const { rows } = await db.$client.transact([holdTaskOf(turn), { name: 'claim_queued', text: claimText, values }])
  const [found] = rows as {
    task: JsonRow
    turn: JsonRow
    input: JsonRow | null
    owed: JsonRow[]
    steps: RememberedStep[]
    clock: ClaimClock
  }[]
  if (!found) return null
  const { epoch, firstIndex, ...row } = fromJsonRow(turns, found.turn)
  if (epoch === null || firstIndex === null) throw new Error(`Turn ${turn} was claimed, and yet has no epoch`)
  const claimed = {
    task: fromJsonRow(tasks, found.task),
    turn: { ...row, epoch, firstIndex },
    input: found.input && fromJsonRow(messages, found.input),
    owed: found.owed.map(earlier => fromJsonRow(turns, earlier)),
  }
  return { claimed, steps: found.steps, clock: found.clock }
}

/**
 * $1 turn, $2 claim, $3 worker, $4 lease in ms. Returns task, turn, its input as a message, earlier turns whose end may still be owed, what
 * its steps have come to, and its clock.
 *
 * Whether it is the first claim is told by `first_index`, not by the attempts: one that was given back is not counted, and may yet have said
 * something.
 */
const claimText = `
with before as (
  select first_index is null as is_first from turns where id = $1
), claimed as (
  update turns set
    status = 'running', attempt = attempt + 1, claim = $2, worker = $3,
    lease_until = now() + $4::float8 * interval '1 millisecond', started_at = coalesce(started_at, now()),
    epoch = ${raisedEpoch},
    first_index = coalesce(
      first_index,
      (select coalesce(max(index) + 1, 0) from messages where messages.task = turns.task) + (turns.input is not null)::int
    )
  from tasks
  where turns.id = $1 and tasks.id = turns.task
    and ${isClaimable} and turns.run_at <= now()
  returning turns.*
), raised as (
  update tasks set epoch = ${raisedEpoch}, status = 'running', updated_at = now() from claimed where tasks.id = claimed.task returning tasks.*
), asked as (
  insert into messages (task, tenant, index, turn, attempt, author, content, metadata, status, created_at, finished_at)
  select task, tenant, first_index - 1, number, 1, 'user', input, '{}'::json, 'complete', queued_at, now()
  from claimed, before where is_first and input is not null
  returning *
), asked_before as (
  select messages.* from messages, claimed
  where messages.task = claimed.task and messages.index = claimed.first_index - 1 and claimed.input is not null
)
select to_json(raised) as task, to_json(claimed) as turn,
  coalesce((select to_json(asked) from asked), (select to_json(asked_before) from asked_before)) as input,
  (select coalesce(json_agg(to_json(owed) order by number), '[]') from turns owed
    where owed.task = claimed.task and owed.number < claimed.number and owed.status not in (${unfinishedList}) and not owed.announced) as owed,
  (select coalesce(json_agg(json_build_object('name', name, 'memory', memory)), '[]') from steps where steps.turn = claimed.id) as steps,
  ${claimClock('claimed')} as clock
from claimed, raised`
