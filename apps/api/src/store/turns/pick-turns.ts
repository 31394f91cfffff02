/**
 * Which waiting turns of an agent, in its queue, get the next shares of its workers.
 *
 * A turn holds a share from when it is sent to the queue until it ends, waits for a person, or is queued again. The rank of a waiting turn is the
 * number of shares that its concurrency key holds plus its place among the key's own waiting turns, divided by the key's weight; tenants are ranked the
 * same way among each other. The lowest rank goes first, then the oldest. Rows alone decide, so no counter can leak, and one process picks at a time for
 * an agent, so `rank <= limit` is exact. Where several keys use an agent, a few slots stay free for the next turn of another key (`perFreeSlot`).
 */
import { sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { agents, limits } from '../schema.ts'
import type { Intent } from '../tasks/outbox.ts'

/** A turn that was picked, and its rank among those of its key. `isGone`: it has ended meanwhile, so its intent is only removed. */
export type Picked = Intent & { rank: number; isGone: boolean }

/** Whose turns share the workers of an agent as one. The key is null for tasks without one. */
export type Share = { agent: string; tenant: string; concurrencyKey: string | null }

export type Picking = {
  picked: Picked[]
  /** Turns of the agent are left that have no share yet. */
  isWaiting: boolean
  /** Turns of more than one key run or wait. */
  isShared: boolean
  /** Slots that were kept free, for turns of keys that are not among `waiting`. */
  spare: number
  /** The keys that have waiting turns, where slots are spare. */
  waiting: Omit<Share, 'agent'>[]
}

export type PickOptions = {
  /** How many turns of the agent may be in the queue, beside those that run. A key that holds no share may always have one more there. */
  ahead: number
  /** Whether slots are kept free for other keys. */
  keepsSpare: boolean
  /** How long a worker that sends no heartbeat counts as present. */
  workerTimeoutMs: number
}

/** Distinguishes this lock from those of other purposes. */
const lockClass = 7_233

/** @param agent the name of its queue */
export async function pickTurns(db: Database, agent: string, { ahead, keepsSpare, workerTimeoutMs }: PickOptions): Promise<Picking> {
  const [, picked] = await db.$client.transact([
    { name: 'pick_alone', text: 'select pg_advisory_xact_lock($1, hashtext($2))', values: [lockClass, agent] },
    { name: 'pick_turns', text: pickText, values: [agent, ahead, keepsSpare, workerTimeoutMs] },
  ])
  const [{ spare, waiting, ...row }] = picked.rows as [PickRow]
  return { ...row, spare: waiting ? Math.max(0, Number(spare)) : 0, waiting: waiting ?? [] }
}

/** `waiting` is null where no turn waits, or too many keys wait to name them. */
type PickRow = Omit<Picking, 'spare' | 'waiting'> & { spare: string | null; waiting: Picking['waiting'] | null }

/** The agents that have waiting turns. */
export async function waitingAgents(db: Database): Promise<string[]> {
  const { rows } = await db.$client.query({ name: 'waiting_agents', text: waitingAgentsText })
  return rows.map(({ agent }) => agent as string)
}

/** One probe of the index for each agent, however many turns wait. */
const waitingAgentsText = `
with recursive agents as (
  (select agent from outbox where waits order by agent limit 1)
  union all
  select next.agent from agents cross join lateral (select agent from outbox where waits and outbox.agent > agents.agent order by agent limit 1) as next
)
select agent from agents`

/** How many candidates are ranked at most, of all keys together: enough to fill the queue, and few enough for many thousands of waiting turns. */
const candidates = 256

/**
 * How many turns a key may hold for each slot that is free: the fewer are free, the less one key gets, as by the dynamic thresholds of switches that share a
 * buffer (Choudhury & Hahne). So one key that floods 20 slots leaves 4 of them free, and 3 while others use 4; a second flood leaves 2 of the 20.
 */
const perFreeSlot = 4

/** With fewer slots, none is kept free, because one would be too large a part of them. */
const minSlots = 9

/** Beyond this number of waiting keys, no slot is given without a pick. */
const maxNamedShares = 50

/**
 * $1 the agent's queue, $2 how many turns may be in the queue, $3 whether slots are kept free, $4 after how many ms a silent worker is absent. Ranks only the first turns
 * of each key. One probe of the index finds a key and its first turn; a second one finds the key's next turns, where few keys wait.
 */
export const pickText = `
with recursive own as materialized (
  select name, tenant from agents where agent = split_part($1, '@', 1) and tenant is not null
), shares as (
  (select tenant, share, id, turn from outbox where waits and agent = $1 order by tenant, share, priority desc nulls last, id limit 1)
  union all
  select next.* from shares cross join lateral (
    select tenant, share, id, turn from outbox where waits and agent = $1 and (outbox.tenant, outbox.share) > (shares.tenant, shares.share)
    order by tenant, share, priority desc nulls last, id limit 1
  ) as next
), held as materialized (
  select turns.tenant, coalesce(task.concurrency_key, '') as share, turns.status = 'queued' as is_queued
  -- By the key of each task, because a plan of before the flood would read all tasks of the agent.
  from turns cross join lateral (select agent, concurrency_key from tasks where tasks.id = turns.task offset 0) as task
  where turns.sent is not null and turns.status in ('queued', 'running') and task.agent = split_part($1, '@', 1)
    and case when $1 = any(array(select name from own)) then turns.tenant = (select tenant from own where name = $1)
      else turns.tenant <> all(array(select tenant from own)) end
), held_by_share as (
  select tenant, share, count(*) as count from held group by tenant, share
), held_by_tenant as (
  select tenant, count(*) as count from held group by tenant
), present as (
  select id, slots from workers where $1 = any(agents) and seen_at > now() - $4::float8 * interval '1 millisecond'
), free as materialized (
  select case when $3 and (select sum(slots) from present) >= ${minSlots} then
    (select sum(slots) from present)
      - (select count(*) from turns where sent is not null and status = 'running' and worker in (select id from present))
      - (select count(*) from held where is_queued)
  end as count
), room as materialized (
  select greatest(0, $2::int - (select count(*) from held where is_queued)) as count,
    greatest(1, ${candidates} / greatest(1, (select count(*) from shares))) as depth
), started as (
  select tenant, share, count(*) as count from starts where agent = $1 and (at is null or at > now() - interval '1 minute') group by tenant, share
), candidates as (
  select first.*, shares.tenant, shares.share, limits.concurrency, limits.per_minute,
    held_by_share.count is null and first.place = 1 as is_first,
    (coalesce(held_by_share.count, 0) + first.place) / coalesce((limits.weights->>shares.share)::float8, 1) as rank
  from shares cross join room
  left join limits on limits.tenant = shares.tenant and limits.agent = split_part($1, '@', 1)
  left join held_by_share on held_by_share.tenant = shares.tenant and held_by_share.share = shares.share
  left join started on started.tenant = shares.tenant and started.share = shares.share
  cross join lateral (
    select shares.id, shares.turn, 1 as place
    union all
    select own.id, own.turn, 1 + row_number() over (order by own.priority desc nulls last, own.id)
    from (
      select id, turn, priority from outbox where waits and agent = $1 and outbox.tenant = shares.tenant and outbox.share = shares.share
      order by priority desc nulls last, id offset 1 limit greatest(0, least(room.count, room.depth) - 1)
    ) as own
  ) as first
  where not coalesce(limits.paused, false)
    and (limits.per_key is null or coalesce(held_by_share.count, 0) + first.place <= limits.per_key)
    and (limits.per_minute is null or coalesce(started.count, 0) + first.place <= limits.per_minute)
), ranked as (
  select candidates.*,
    coalesce(held_by_tenant.count, 0) + row_number() over (partition by candidates.tenant order by rank, id) as tenant_rank
  from candidates left join held_by_tenant using (tenant)
), chosen as (
  select allowed.* from (
    select ranked.*, free.count as free, row_number() over (order by tenant_rank, ranked.rank, ranked.id) as position
    from ranked cross join free
    where (concurrency is null or tenant_rank <= concurrency) and (free.count is null or is_first or rank <= ${perFreeSlot} * free.count)
  ) as allowed
  where is_first or position <= (select count from room) and (free is null or rank <= ${perFreeSlot} * (free - position + 1))
  order by position limit $2::int
), marked as (
  update turns set sent = 'picked' from chosen where turns.id = chosen.turn and turns.sent is null and turns.status = 'queued'
  returning turns.id
), settled as (
  update outbox set waits = false from chosen where outbox.id = chosen.id
), noted as (
  insert into starts (turn, tenant, agent, share) select turn, tenant, $1, share from chosen where per_minute is not null
  on conflict (turn) do update set at = null
), forgotten as (
  delete from starts where agent = $1 and at <= now() - interval '1 minute'
)
select exists (select from outbox where waits and agent = $1 and id <> all (array(select id from chosen))) as "isWaiting",
  (select count(*) > 1 from (select tenant, share from shares union select tenant, share from held_by_share) as keys) as "isShared",
  (select count from free) - count(chosen.id) as spare,
  case when (select count(*) from shares) <= ${maxNamedShares} then
    (select json_agg(json_build_object('tenant', tenant, 'concurrencyKey', nullif(share, ''))) from shares)
  end as waiting, coalesce(json_agg(json_build_object(
  'id', chosen.id, 'turnId', chosen.turn, 'task', turns.task, 'number', turns.number, 'agent', $1::text, 'attempt', turns.attempt,
  'dispatch', turns.dispatch, 'delayMs', 0, 'priority', tasks.priority, 'traceparent', turns.traceparent,
  'rank', ceil(chosen.rank), 'isGone', marked.id is null
) order by chosen.tenant_rank, chosen.rank, chosen.id) filter (where chosen.id is not null), '[]') as picked
from (select) as one
left join chosen on true left join turns on turns.id = chosen.turn left join tasks on tasks.id = turns.task left join marked on marked.id = chosen.turn`

/** How many turns of each agent are in the queue and not claimed yet. */
export async function queuedByAgent(db: Database): Promise<{ agent: string; count: number }[]> {
  const { rows } = await db.$client.query({ name: 'queued_by_agent', text: queuedText })
  return rows.map(({ agent, count }) => ({ agent: agent as string, count: Number(count) }))
}

const queuedText = `
select queue_of(tenant, agent) as agent, sum(count) as count from (
  select turns.tenant, tasks.agent, count(*) from turns join tasks on tasks.id = turns.task
  where turns.sent is not null and turns.status = 'queued' group by turns.tenant, tasks.agent
) as own group by queue_of(tenant, agent)`

/** The queues that are of one tenant, or are named otherwise than their agents. */
export async function namedQueues(db: Database): Promise<{ queue: string; agent: string; tenant: string | null }[]> {
  const isOther = sql`(${agents.tenant} is not null or ${agents.name} <> ${agents.agent})`
  return db.select({ queue: agents.name, agent: agents.agent, tenant: agents.tenant }).from(agents).where(isOther)
}

/** The agents whose turns of a tenant have to be picked, because the tenant has limited or paused them. */
export async function limitedAgents(db: Database): Promise<{ tenant: string; agent: string }[]> {
  return db.select({ tenant: limits.tenant, agent: limits.agent }).from(limits)
}
