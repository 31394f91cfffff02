/**
 * The turns that ended in the last minutes, with their waiting and running times, in buckets, for each agent and for all agents together.
 *
 * Ids of turns grow with time, so the query reads only recent rows: a turn that was queued more than an hour before these minutes is not
 * counted.
 */
import { type Activity, activityBucketMs } from '@rivulet/contract/agents'
import { sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { readNowMs } from '../connection/moments.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { turns } from '../schema.ts'

const longestTurnMs = 3_600_000

export async function readActivity(db: Database, tenant: Tenant, minutes: number): Promise<Activity> {
  const bucketMs = bucketFor(minutes)
  const to = Math.floor((await readNowMs(db)) / bucketMs) * bucketMs + bucketMs
  const from = to - Math.ceil((minutes * 60_000) / bucketMs) * bucketMs
  const percentile = (fraction: number, ms: ReturnType<typeof sql>) => sql`percentile_cont(${fraction}) within group (order by ${ms})`
  const waited = sql`extract(epoch from turns.started_at - turns.queued_at) * 1000`
  const took = sql`extract(epoch from turns.finished_at - turns.started_at) * 1000`
  const bucket = sql`floor(extract(epoch from turns.finished_at) * 1000 / ${bucketMs}::int) * ${bucketMs}::bigint`
  const { rows } = await db.execute<Row>(sql`
    select ended.at, ended.agent,
      count(*) filter (where ended.status = 'completed') as completed,
      count(*) filter (where ended.status = 'failed') as failed,
      count(*) filter (where ended.status = 'canceled') as canceled,
      ${percentile(0.5, sql`ended.waited`)} as "waitMs",
      ${percentile(0.95, sql`ended.waited`)} as "slowWaitMs",
      ${percentile(0.5, sql`ended.took`)} as "runMs",
      ${percentile(0.95, sql`ended.took`)} as "slowRunMs"
    from (
      select ${bucket} as at, tasks.agent, turns.status, ${waited} as waited, ${took} as took
      from turns join tasks on tasks.id = turns.task
      where ${isOf(tenant, turns.tenant) ?? sql`true`} and turns.id >= ${firstIdAt(from - longestTurnMs)} and turns.finished_at >= ${new Date(from)} and turns.finished_at < ${new Date(to)}
    ) ended
    group by grouping sets ((ended.at), (ended.at, ended.agent))
    order by ended.at, ended.agent
  `)
  const queued = await queueDepths(db, tenant, { from, to, bucketMs })
  return { from: new Date(from).toISOString(), to: new Date(to).toISOString(), bucketMs, data: rows.map(toBucket), queued }
}

/** At most 240 buckets of whole minutes, or 15 s for up to an hour. */
function bucketFor(minutes: number): number {
  return minutes <= 60 ? activityBucketMs : Math.ceil(minutes / 240) * 60_000
}

/** From when each turn was queued and when it left the queue, added up: every row is read once, however many buckets there are. */
async function queueDepths(
  db: Database,
  tenant: Tenant,
  { from, to, bucketMs }: { from: number; to: number; bucketMs: number },
): Promise<number[]> {
  // Before the time in question is place -1.
  const place = sql`greatest(-1, floor((extract(epoch from changes.at) * 1000 - ${from}::bigint) / ${bucketMs}::int))::int`
  const { rows } = await db.execute<{ place: number; change: string }>(sql`
    select ${place} as place, sum(changes.change) as change
    from turns join tasks on tasks.id = turns.task,
      lateral (values (turns.queued_at, 1), (coalesce(turns.started_at, turns.finished_at), -1)) as changes (at, change)
    where ${isOf(tenant, turns.tenant) ?? sql`true`} and turns.id >= ${firstIdAt(from - longestTurnMs)} and changes.at is not null
    group by 1`)
  const changes = new Map(rows.map(({ place, change }) => [place, Number(change)]))
  let depth = changes.get(-1) ?? 0
  return Array.from({ length: (to - from) / bucketMs }, (_, place) => {
    depth += changes.get(place) ?? 0
    return Math.max(0, depth)
  })
}

type Row = Record<'at' | 'completed' | 'failed' | 'canceled', string | number> &
  Record<'waitMs' | 'slowWaitMs' | 'runMs' | 'slowRunMs', string | number | null> & { agent: string | null }

function toBucket({ at, agent, completed, failed, canceled, waitMs, slowWaitMs, runMs, slowRunMs }: Row): Activity['data'][number] {
  const rounded = (ms: string | number | null) => (ms === null ? null : Math.round(Number(ms)))
  return {
    ...{ at: new Date(Number(at)).toISOString(), agent },
    ...{ completed: Number(completed), failed: Number(failed), canceled: Number(canceled) },
    ...{ waitMs: rounded(waitMs), slowWaitMs: rounded(slowWaitMs), runMs: rounded(runMs), slowRunMs: rounded(slowRunMs) },
  }
}

/** The lowest uuid of version 7 that can have been made at this time. */
export function firstIdAt(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`
}
