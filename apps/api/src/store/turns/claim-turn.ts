/**
 * Claims a turn for a worker. Only the lease in Postgres decides: a job that is delivered twice, late or to a second worker finds the turn claimed.
 *
 * A claim raises the task's epoch, so the worker that ran the turn before can no longer write. A turn's first claim fixes its indexes: its inputs, and
 * those of turns that are merged with it, take the task's next free indexes, and what the agent says follows them, for all attempts. It also starts the
 * time of the turn: the task's timeout counts from then.
 */
import type { RememberedStep } from '@rivulet/contract/internal'
import type { TurnId } from '@rivulet/protocol'
import { and, arrayContains, eq, sql } from 'drizzle-orm'
import type { Sealed } from '../access/vault.ts'
import { type Batcher, createTransactionBatcher } from '../connection/batcher.ts'
import type { Database, Transaction } from '../connection/database.ts'
import { msFromNow } from '../connection/moments.ts'
import { everyone, everyTenant, type Tenant } from '../connection/tenant.ts'
import { outbox, turns } from '../schema.ts'
import { heldTurns, holdFreeTasksOf, holdTaskOf, lockTask, raisedEpoch, resultsOf } from '../tasks/held-task.ts'
import { dispatch } from '../tasks/outbox.ts'
import { rememberedSteps } from '../tasks/steps.ts'
import { sealedOf } from '../tasks/task-secrets.ts'
import { type Claimed, type ClaimedJson, claimedColumns, selectClaimed, toClaimed } from './claimed.ts'
import { mergedParts } from './join-turns.ts'
import { hasPinnedVersion, inputArray, inputCount, isDue, isNext, notQueuedList } from './turn-states.ts'

/** `claim` is an id that the worker chooses, so that a worker that lost the reply can repeat the claim. */
export type Claim = {
  turnId: TurnId
  claim: string
  worker: string
  /** The tenant of the worker's key, or every tenant. Default: every tenant. */
  tenant?: Tenant
  leaseMs: number
  /** How long a turn of a pinned agent waits for its version after the last heartbeat of a worker of that version. Default 0. */
  pinGraceMs?: number
}

/** The delay of the job of a turn that waits for its version. */
const versionWaitMs = 1_000

/** How far a turn is from its times when it is claimed, by the clock of Postgres. */
export type ClaimClock = { timeLeftMs: number; sinceQueuedMs: number; sinceDueMs: number }

/** A turn and its clock, with the results of its steps and its secrets. */
type Claiming = { claimed: Claimed; steps: RememberedStep[]; sealed: Sealed | null; clock: ClaimClock }

export type ClaimResult =
  /** `isAgain`: the same claim was made before. */
  | ({ result: 'claimed'; isAgain: boolean } & Claiming)
  /** Its time has not come, or it waits for a worker of its version: its job is early. */
  | { result: 'early'; waitMs: number }
  /**
   * It has no share of the workers, or lost it because the agent was paused or limited, or its tenant has an agent of its own by now: it waits in the
   * outbox, and this job is over.
   */
  | { result: 'unsent' }
  | { result: 'leased' | 'settled' }

/** @param claimQueued shared by the claims of a process, which then are made together */
export async function claimTurn(db: Database, wanted: Claim, claimQueued = createQueuedClaims(db)): Promise<ClaimResult> {
  const queued = await claimQueued(wanted)
  if (queued) return { result: 'claimed', ...queued, isAgain: false }
  const { turnId: id, claim, worker, tenant = everyTenant, leaseMs } = wanted
  return db.transaction(async tx => {
    const [found] = await tx.select({ task: turns.task }).from(turns).where(eq(turns.id, id))
    if (!found) return { result: 'settled' }
    await lockTask(tx, everyone, found.task)
    const [stored] = await tx.select(storedClaim).from(turns).where(eq(turns.id, id))
    if (!stored) return { result: 'settled' }
    const { turn, clock } = stored
    if (stored.isClaimable && clock.sinceDueMs >= 0 && (!stored.hasShare || (tenant === everyTenant && stored.isOfOwnAgent))) {
      // Its intent may still be in the outbox: the process that sent it was about to remove it.
      await tx.delete(outbox).where(eq(outbox.turn, id))
      await dispatch(tx, id)
      return { result: 'unsent' }
    }
    // Without a pinned version, it became due between the two statements: the worker claims it again at once.
    if (stored.isClaimable) return { result: 'early', waitMs: Math.max(stored.hasPinnedVersion ? versionWaitMs : 1, -clock.sinceDueMs) }
    if (turn.status !== 'running') return { result: 'settled' }
    if (turn.claim !== claim || turn.canceling) return { result: 'leased' }
    return { result: 'claimed', ...(await handOver(tx, id, worker, leaseMs)), isAgain: true }
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
async function handOver(tx: Transaction, turnId: TurnId, worker: string, leaseMs: number): Promise<Claiming> {
  await tx
    .update(turns)
    .set({ worker, leaseUntil: msFromNow(leaseMs) })
    .where(eq(turns.id, turnId))
  return toClaiming(await selectClaimed<ClaimingJson>(tx, turnId, claimingColumns))
}

/** In SQL about turns under this name. */
const claimClock = (alias: string) => `json_build_object(
  'timeLeftMs', floor(extract(epoch from ${alias}.deadline - now()) * 1000),
  'sinceQueuedMs', floor(extract(epoch from now() - ${alias}.queued_at) * 1000),
  'sinceDueMs', greatest(floor(extract(epoch from now() - ${alias}.run_at) * 1000), case when not ${alias}.is_delayed then 0 end)
)`

type ClaimingJson = ClaimedJson & Omit<Claiming, 'claimed'>

/** Columns of a statement about a claimed turn, as `claimedColumns`. */
const claimingColumns = `${claimedColumns},
  ${rememberedSteps('claimed')} as steps,
  ${sealedOf('claimed')} as sealed,
  ${claimClock('claimed')} as clock`

function toClaiming(found: ClaimingJson): Claiming {
  return { claimed: toClaimed(found), steps: found.steps, sealed: found.sealed, clock: found.clock }
}

/** What a turn has to be to be claimed, now or when it is due, in SQL about turns. */
const isClaimable = `turns.status not in (${notQueuedList}) and not turns.canceling
  and (turns.started_at is null or turns.deadline > now()) and ${isNext}`

/**
 * Whether a turn has a share of the workers, in SQL about turns and its task. A turn that was sent directly lost it if its tenant has limited the agent
 * meanwhile: it has to be picked, so that no limit is exceeded.
 */
const hasShare = `turns.sent is not null and not exists (
  select from limits where limits.tenant = turns.tenant and limits.agent = (select agent from tasks where tasks.id = turns.task)
    and (limits.paused or turns.sent = 'direct')
)`

/**
 * Whether only the version that began a turn may run it, in SQL about turns, its task and `wanted`: a worker of that version sent a heartbeat within the
 * grace. The comparison with an empty id lets Postgres use the key: before version 18 it adds 10,000,000,000 for a table that it reads whole in these
 * transactions, and then takes a plan that reads all turns for as good as any.
 */
const isForItsVersion = `${hasPinnedVersion} and turns.version is distinct from (select version from workers where id = wanted.worker)
  and exists (select from workers where workers.id >= '' and workers.version = turns.version and queue_of(turns.tenant, tasks.agent) = any(workers.agents)
    and workers.seen_at > now() - wanted.grace_ms * interval '1 millisecond')`

/** Whether the agent of a turn belongs to its tenant alone, in SQL about turns: no worker of all tenants runs it. */
const isOfOwnAgent = `exists (
  select from agents where agents.agent = (select agent from tasks where tasks.id = turns.task) and agents.tenant = turns.tenant
)`

const storedClaim = {
  turn: turns,
  isOfOwnAgent: sql<boolean>`${sql.raw(isOfOwnAgent)}`,
  hasShare: sql<boolean>`${sql.raw(hasShare)}`,
  hasPinnedVersion: sql<boolean>`${sql.raw(hasPinnedVersion)}`,
  isClaimable: sql<boolean>`${sql.raw(isClaimable)}`,
  clock: sql<ClaimClock>`${sql.raw(claimClock('turns'))}`,
}

/** Claims that come at the same time, together. */
export function createQueuedClaims(db: Database): Batcher<Claim, Claiming | null> {
  return createTransactionBatcher(
    maxTogether,
    ({ turnId }) => turnId,
    (wanted, how) => claimQueued(db, wanted, how),
  )
}

/** Turns that are claimed in one statement. */
const maxTogether = 50

/** A turn that its worker gets with little else. Others are claimed alone, because 50 such replies would fill the memory. */
const isUsual = {
  name: 'hold_usual_tasks',
  sql: `coalesce(octet_length(coalesce(turns.inputs, turns.input)::text), 0) <= 65536
    and not exists (select from steps where steps.turn = turns.id) and not exists (select from states where states.task = turns.task)
    and not exists (select from turns other where other.task = turns.task and other.number > turns.number offset 0)`,
}

/**
 * The one way in which queued turns are claimed: in one statement behind the locks of their tasks, in one round trip. Null for each that cannot be claimed
 * now: not queued, being ended, too early, too late, not its task's next, or not for a worker of this version. Undefined for each that was left out.
 */
async function claimQueued(
  db: Database,
  wanted: readonly Claim[],
  { isAlone }: { isAlone: boolean },
): Promise<(Claiming | null | undefined)[]> {
  const turnIds = wanted.map(({ turnId }) => turnId)
  const [claims, workers] = [wanted.map(({ claim }) => claim), wanted.map(({ worker }) => worker)]
  const tenants = wanted.map(({ tenant = everyTenant }) => tenant)
  const [leases, graces] = [wanted.map(({ leaseMs }) => leaseMs), wanted.map(({ pinGraceMs = 0 }) => pinGraceMs)]
  const [locked, claimed] = await db.$client.transact([
    isAlone ? holdTaskOf(turnIds[0] as TurnId) : holdFreeTasksOf(turnIds, wanted.length > 1 ? isUsual : undefined),
    { name: 'claim_queued', text: claimText, values: [turnIds, claims, workers, leases, graces, tenants] },
  ])
  const found = new Map((claimed.rows as ClaimingJson[]).map(row => [row.turn.id, toClaiming(row)]))
  return resultsOf(turnIds, found, { locked, isAlone })
}

/**
 * $1 turns, $2 claims, $3 workers, $4 leases in ms, $5 graces of pinned turns in ms, $6 the tenants of the workers' keys.
 *
 * Its `turn.started` tells the state of the task, so nothing is owed of that any more. A new attempt leaves what a park has stored of it.
 *
 * `first_index` shows whether it is the first claim, not the attempts: a released attempt is not counted, but may have written
 * something.
 */
const claimText = `
with wanted as (
  select id, claim, worker, lease_ms, grace_ms, worker_tenant
  from unnest($1::uuid[], $2::text[], $3::text[], $4::float8[], $5::float8[], $6::text[])
    as each (id, claim, worker, lease_ms, grace_ms, worker_tenant)
  where id = any(${heldTurns})
), before as (
  select turns.id, first_index is null as is_first from wanted join turns on turns.id = wanted.id
),${mergedParts}, claimed as (
  update turns set
    status = 'running', attempt = attempt + (resumed is distinct from 'queued')::int, claim = wanted.claim,
    claims = claims[cardinality(claims) - 18:] || wanted.claim,
    resumed = case when resumed = 'queued' then 'claimed' end, worker = wanted.worker,
    version = coalesce(turns.version, (select version from workers where id = wanted.worker)),
    lease_until = now() + wanted.lease_ms * interval '1 millisecond', started_at = coalesce(started_at, now()),
    deadline = case when started_at is null then now() + tasks.timeout_ms * interval '1 millisecond' else deadline end,
    attempt_at = case when resumed = 'queued' then attempt_at else now() end,
    epoch = ${raisedEpoch},
    params = coalesce((select merged.params from merged where taker = turns.id and merged.params is not null order by number desc limit 1), turns.params),
    first_index = coalesce(
      first_index,
      (select coalesce(max(index) + 1, 0) from messages where messages.task = turns.task) + ${inputCount('turns')} + ${mergedCount('turns')}
    )
  from wanted, tasks
  where turns.id = wanted.id and tasks.id = turns.task
    and ${isClaimable} and ${isDue('turns')} and ${hasShare} and not (${isForItsVersion})
    and not (wanted.worker_tenant = '${everyTenant}' and ${isOfOwnAgent})
  returning turns.*
), noted as (
  update starts set at = now() from claimed where starts.turn = claimed.id
), told as (
  update states set owed = false from claimed where states.task = claimed.task and states.owed
), replaced as (
  delete from states using claimed where states.task = claimed.task and states.turn = claimed.number and claimed.resumed is null
  returning states.*
), raised as (
  update tasks set epoch = ${raisedEpoch}, status = 'running', updated_at = now() from claimed where tasks.id = claimed.task returning tasks.*
), starting as (
  select claimed.*, first_index - ${inputCount('claimed')} - ${mergedCount('claimed')} as start from claimed
), asked as (
  insert into messages (task, tenant, index, turn, attempt, author, content, metadata, status, created_at, finished_at)
  select task, tenant, start + place - 1, number, 1, 'user', content, coalesce(said.input_metadata, '{}'), 'complete', said_at, now()
  from starting join before on before.id = starting.id and is_first cross join lateral (
    select content, place, starting.input_metadata, starting.queued_at as said_at
    from json_array_elements(${inputArray('starting')}) with ordinality as own (content, place)
    union all
    select content, ${inputCount('starting')} + merged.place + nth, merged.input_metadata, merged.queued_at
    from merged, json_array_elements(all_inputs) with ordinality as each (content, nth) where taker = starting.id
  ) as said
  returning *
), joined as (
  update turns set joined_to = starting.number, join_index = start + ${inputCount('starting')} + merged.place
  from starting, merged where merged.taker = starting.id and turns.id = merged.id
  returning turns.*
)
select ${claimingColumns}
from claimed join raised on raised.id = claimed.task`

/** The inputs that are merged with those of a turn, in SQL about turns under this name. */
function mergedCount(alias: string): string {
  return `(select coalesce(sum(json_array_length(all_inputs)), 0)::int from merged where taker = ${alias}.id)`
}
