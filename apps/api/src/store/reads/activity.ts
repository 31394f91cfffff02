/**
 * The turns that ended in the last minutes, with their waiting and running times, in buckets, for each agent and for all agents together.
 *
 * Ids of turns grow with time, so the query reads only recent rows: a turn that was queued more than an hour before these minutes is not
 * counted.
 */
import { type Activity, activityBucketMs } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { readNowMs } from '../connection/moments.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { turns } from '../schema.ts'

const longestTurnMs = 3_600_000

export async function readActivity(db: Database, tenant: Tenant, minutes: number): Promise<Activity> {
  const to = Math.floor((await readNowMs(db)) / activityBucketMs) * activityBucketMs + activityBucketMs
  const from = to - minutes * 60_000
  const percentile = (fraction: number, ms: ReturnType<typeof sql>) => sql`percentile_cont(${fraction}) within group (order by ${ms})`
  const waited = sql`extract(epoch from turns.started_at - turns.queued_at) * 1000`
  const took = sql`extract(epoch from turns.finished_at - turns.started_at) * 1000`
  const bucket = sql`floor(extract(epoch from turns.finished_at) * 1000 / ${activityBucketMs}::int) * ${activityBucketMs}::int`
  const { rows } = await db.execute<Row>(sql`
    select ended.at, ended.agent,
      count(*) filter (where ended.status = 'completed') as completed,
      count(*) filter (where ended.status = 'failed') as failed,
      count(*) filter (where ended.status = 'canceled') as canceled,
      ${percentile(0.5, sql`ended.waited`)} as "waitMs",
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
  return { from: new Date(from).toISOString(), to: new Date(to).toISOString(), bucketMs: activityBucketMs, data: rows.map(toBucket) }
}

type Row = Record<'at' | 'completed' | 'failed' | 'canceled', string | number> &
  Record<'waitMs' | 'runMs' | 'slowRunMs', string | number | null> & { agent: string | null }

function toBucket({ at, agent, completed, failed, canceled, waitMs, runMs, slowRunMs }: Row): Activity['data'][number] {
  const rounded = (ms: string | number | null) => (ms === null ? null : Math.round(Number(ms)))
  return {
    ...{ at: new Date(Number(at)).toISOString(), agent },
    ...{ completed: Number(completed), failed: Number(failed), canceled: Number(canceled) },
    ...{ waitMs: rounded(waitMs), runMs: rounded(runMs), slowRunMs: rounded(slowRunMs) },
  }
}

/** The lowest uuid of version 7 that can have been made at this time. */
export function firstIdAt(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`
}
