/**
 * Who runs a turn. The lease in Postgres alone decides: a job that is delivered twice, late or to a second worker finds it taken.
 *
 * A claim raises the task's epoch, so the worker that ran the turn before can no longer write. A turn's first claim fixes its indexes: its inputs, and
 * those of turns that are merged with it, take the task's next free indexes, and what the agent says follows them, for all attempts.
 */
import type { RememberedStep, State, TurnId } from '@rivulet/protocol'
import { and, arrayContains, eq, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { fromJsonRow, type JsonRow } from '../connection/json-rows.ts'
import { msFromNow } from '../connection/moments.ts'
import { everyTenant } from '../connection/tenant.ts'
import type { TurnRow } from '../rows.ts'
import { messages, outbox, tasks, turns } from '../schema.ts'
import { holdTaskOf, lockTask, raisedEpoch } from '../tasks/held-task.ts'
import { dispatch } from '../tasks/outbox.ts'
import { rememberedSteps } from '../tasks/steps.ts'
import { isOwed } from './announcements.ts'
import { type Claimed, readClaimed } from './claimed.ts'
import { mergedParts } from './join-turns.ts'
import { inputArray, inputCount, isNext, notQueuedList } from './turn-states.ts'

/** What names a claim: it is the caller's own, so that one who has not heard the answer can ask again. */
export type Claim = { turnId: TurnId; claim: string; worker: string; leaseMs: number }

/** How far a turn is from its times when it is claimed, by the clock of Postgres. */
export type ClaimClock = { timeLeftMs: number; sinceQueuedMs: number; sinceDueMs: number }

export type ClaimResult =
  /** `isAgain`: the same claim was answered before. */
  | { result: 'claimed'; claimed: Claimed; steps: RememberedStep[]; clock: ClaimClock; isAgain: boolean }
  /** Its time has not come: its job is early. */
  | { result: 'early'; waitMs: number }
  /** It has no share of the workers, or lost it because the agent was paused or limited: it waits in the outbox, and this job is over. */
  | { result: 'unsent' }
  | { result: 'leased' | 'settled' }

export async function claimTurn(db: Database, wanted: Claim): Promise<ClaimResult> {
  const queued = await claimQueued(db, wanted)
  if (queued) return { result: 'claimed', ...queued, isAgain: false }
  const { turnId: id, claim, worker, leaseMs } = wanted
  return db.transaction(async tx => {
    const [found] = await tx.select({ task: turns.task }).from(turns).where(eq(turns.id, id))
    if (!found) return { result: 'settled' }
    const task = await lockTask(tx, everyTenant, found.task)
    const [stored] = await tx.select(storedClaim).from(turns).where(eq(turns.id, id))
    if (!stored) return { result: 'settled' }
    const { turn, clock } = stored
    if (stored.isClaimable && clock.sinceDueMs >= 0 && !stored.hasShare) {
      // Its intent may still be in the outbox: the process that sent it was about to remove it.
      await tx.delete(outbox).where(eq(outbox.turn, id))
      await dispatch(tx, id)
      return { result: 'unsent' }
    }
    // One whose time came between the two looks is asked for again at once.
    if (stored.isClaimable) return { result: 'early', waitMs: Math.max(1, -clock.sinceDueMs) }
    if (turn.status !== 'running') return { result: 'settled' }
    if (turn.claim !== claim || turn.canceling) return { result: 'leased' }
    const handed = await handOver(tx, turn, worker, leaseMs)
    const claimed = await readClaimed(tx, task, handed)
    return { result: 'claimed', claimed, steps: await rememberedSteps(tx, id), clock, isAgain: true }
  })
}

/** Whether a claim of a turn, or one of its last claims before. */
export async function hasClaimed(db: Database, turnId: TurnId, claim: string): Promise<boolean> {
  const [found] = await db
    .select({ id: turns.id })
    .from(turns)
    .where(and(eq(turns.id, turnId), arrayContains(turns.claims, [claim])))
  return found !== undefined
}

/** A claim may be passed to an isolated process: the lease belongs to the process that named the claim last. */
async function handOver(tx: Transaction, turn: TurnRow, worker: string, leaseMs: number): Promise<TurnRow> {
  const [handed] = await tx
    .update(turns)
    .set({ worker, leaseUntil: msFromNow(leaseMs) })
    .where(eq(turns.id, turn.id))
    .returning()
  return handed ?? turn
}

/** The same in SQL, for a row with the columns of a turn. */
const claimClock = (alias: string) => `json_build_object(
  'timeLeftMs', floor(extract(epoch from ${alias}.deadline - now()) * 1000),
  'sinceQueuedMs', floor(extract(epoch from now() - ${alias}.queued_at) * 1000),
  'sinceDueMs', floor(extract(epoch from now() - ${alias}.run_at) * 1000)
)`

/** In SQL about states. */
const stateJson = `json_build_object('version', version, 'value', value)`

/** What a turn has to be to be claimed, now or when it is due, in SQL about turns. */
const isClaimable = `turns.status not in (${notQueuedList}) and not turns.canceling and turns.deadline > now() and ${isNext}`

/**
 * Whether a turn has a share of the workers, in SQL about turns and its task. A turn that was sent directly lost it if its tenant has limited the agent
 * meanwhile: it has to be picked, so that no limit is exceeded.
 */
const hasShare = `turns.sent is not null and not exists (
  select from limits where limits.tenant = turns.tenant and limits.agent = (select agent from tasks where tasks.id = turns.task)
    and (limits.paused or turns.sent = 'direct')
)`

const storedClaim = {
  turn: turns,
  hasShare: sql<boolean>`${sql.raw(hasShare)}`,
  isClaimable: sql<boolean>`${sql.raw(isClaimable)}`,
  clock: sql<ClaimClock>`${sql.raw(claimClock('turns'))}`,
}

/**
 * The one way in which a queued turn is claimed: in one statement, behind the lock of its task, in one round trip. Null when it cannot be claimed now:
 * not queued, being ended, too early, too late, or not its task's next.
 */
async function claimQueued(
  db: Database,
  { turnId, claim, worker, leaseMs }: Claim,
): Promise<{ claimed: Claimed; steps: RememberedStep[]; clock: ClaimClock } | null> {
  const values = [turnId, claim, worker, leaseMs]
  const { rows } = await db.$client.transact([holdTaskOf(turnId), { name: 'claim_queued', text: claimText, values }])
  const [found] = rows as {
    task: JsonRow
    turn: JsonRow
    inputs: JsonRow[]
    joined: JsonRow[]
    owed: JsonRow[]
    state: State | null
    keptState: State | null
    steps: RememberedStep[]
    clock: ClaimClock
  }[]
  if (!found) return null
  const { epoch, firstIndex, ...row } = fromJsonRow(turns, found.turn)
  if (epoch === null || firstIndex === null) throw new Error(`Turn ${turnId} was claimed, and yet has no epoch`)
  const claimed = {
    task: fromJsonRow(tasks, found.task),
    turn: { ...row, epoch, firstIndex },
    inputs: found.inputs.map(input => fromJsonRow(messages, input)),
    joined: found.joined.map(other => fromJsonRow(turns, other)),
    owed: found.owed.map(earlier => fromJsonRow(turns, earlier)),
    state: found.state,
    keptState: found.keptState,
  }
  return { claimed, steps: found.steps, clock: found.clock }
}

/**
 * $1 turn, $2 claim, $3 worker, $4 lease in ms. Returns task, turn, its inputs as messages, earlier turns whose end may still be owed, what
 * its steps have come to, its clock, and the state of the task.
 *
 * Its `turn.started` tells the state of the task, so nothing is owed of that any more. A new attempt leaves what a park has stored of it.
 *
 * `first_index` shows whether it is the first claim, not the attempts: a released attempt is not counted, but may have written
 * something.
 */
const claimText = `
with before as (
  select first_index is null as is_first from turns where id = $1
),${mergedParts}, claimed as (
  update turns set
    status = 'running', attempt = attempt + (resumed is distinct from 'queued')::int, claim = $2, claims = claims[cardinality(claims) - 18:] || $2::text,
    resumed = case when resumed = 'queued' then 'claimed' end, worker = $3,
    lease_until = now() + $4::float8 * interval '1 millisecond', started_at = coalesce(started_at, now()),
    attempt_at = case when resumed = 'queued' then attempt_at else now() end,
    epoch = ${raisedEpoch},
    params = coalesce((select merged.params from merged where merged.params is not null order by merged.number desc limit 1), turns.params),
    first_index = coalesce(
      first_index,
      (select coalesce(max(index) + 1, 0) from messages where messages.task = turns.task) + ${inputCount('turns')}
        + (select coalesce(sum(json_array_length(all_inputs)), 0) from merged)
    )
  from tasks
  where turns.id = $1 and tasks.id = turns.task
    and ${isClaimable} and turns.run_at <= now() and ${hasShare}
  returning turns.*
), noted as (
  update starts set at = now() from claimed where starts.turn = claimed.id
), told as (
  update states set owed = false from claimed where states.task = claimed.task and states.owed
), replaced as (
  delete from states using claimed where states.task = claimed.task and states.turn = claimed.number and claimed.resumed is null
), raised as (
  update tasks set epoch = ${raisedEpoch}, status = 'running', updated_at = now() from claimed where tasks.id = claimed.task returning tasks.*
), starting as (
  select first_index - ${inputCount('claimed')} - (select coalesce(sum(json_array_length(all_inputs)), 0) from merged)::int as start from claimed
), asked as (
  insert into messages (task, tenant, index, turn, attempt, author, content, metadata, status, created_at, finished_at)
  select task, tenant, start + place - 1, number, 1, 'user', content, coalesce(said.input_metadata, '{}'), 'complete', said_at, now()
  from (
    select content, place, claimed.input_metadata, claimed.queued_at as said_at from claimed, json_array_elements(${inputArray('claimed')}) with ordinality as own (content, place)
    union all
    select content, ${inputCount('claimed')} + merged.place + nth, merged.input_metadata, merged.queued_at
    from claimed, merged, json_array_elements(all_inputs) with ordinality as each (content, nth)
  ) as said, claimed, before, starting where is_first
  returning *
), joined as (
  update turns set joined_to = claimed.number, join_index = start + ${inputCount('claimed')} + merged.place
  from claimed, merged, starting where turns.id = merged.id
  returning turns.*
), started_with as (
  select * from asked union all
  select messages.* from messages, claimed where messages.task = claimed.task and messages.turn = claimed.number and messages.index < claimed.first_index
)
select to_json(raised) as task, to_json(claimed) as turn,
  (select coalesce(json_agg(to_json(started_with) order by index), '[]') from started_with) as inputs,
  (select coalesce(json_agg(to_json(joined) order by number), '[]') from (
    select * from joined union all
    select other.* from turns other where other.task = claimed.task and other.joined_to = claimed.number and other.join_index < claimed.first_index
  ) as joined) as joined,
  (select coalesce(json_agg(to_json(owed) order by number), '[]') from turns owed
    where owed.task = claimed.task and owed.number < claimed.number and ${isOwed('owed')}) as owed,
  (select ${stateJson} from states where states.task = claimed.task and turn < claimed.number order by turn desc limit 1) as state,
  (select ${stateJson} from states where states.task = claimed.task and turn = claimed.number and claimed.resumed = 'claimed') as "keptState",
  (select coalesce(json_agg(json_build_object('name', name, 'memory', memory)), '[]') from steps where steps.turn = claimed.id) as steps,
  ${claimClock('claimed')} as clock
from claimed, raised`
