/** Lists the turns of an agent's tasks by the time of their status, the latest first. */
import { isAnsweredByRequest, type TaskId, type TurnId, waitKinds } from '@rivulet/protocol'
import { and, eq, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { tasks, turns } from '../schema.ts'

/** What a turn is for its caller. */
export type TurnStage = 'queued' | 'working' | 'asking' | 'completed' | 'failed' | 'canceled'

/** A turn in the order of the list. */
export type TurnPlace = { at: Date; id: TurnId }

type TurnFilter = { agent: string; task?: TaskId | undefined; stage?: TurnStage | undefined; since?: Date | undefined }

/** `total` counts all turns of the filter. Its cost grows with the turns of the agent, or of the task; that of a page does not. */
export async function listTurns(
  db: Database,
  tenant: Tenant,
  { agent, task, stage, since }: TurnFilter,
  page: { after: TurnPlace | null; limit: number },
): Promise<{ places: TurnPlace[]; total: number }> {
  const ofTask = task === undefined ? undefined : eq(turns.task, task)
  const ofAgent = and(isOf(tenant, turns.tenant), isOf(tenant, tasks.tenant), eq(tasks.agent, agent), ofTask)
  const condition = and(ofAgent, stage && stages[stage], since && sql`${statusAt} >= ${since.toISOString()}::timestamptz`)
  const isAfter = page.after && sql`(${statusAt}, turns.id) < (${page.after.at.toISOString()}::timestamptz, ${page.after.id}::uuid)`
  const those = (where: SQL | undefined) => sql`from turns join tasks on tasks.id = turns.task where ${where}`
  // Not one common table: Postgres would read and sort all of it for a page, which it takes from turns_status_at.
  const { rows } = await db.execute<{ total: number; id: TurnId | null; ms: string | null }>(sql`
    with page as (
      select turns.id, ${statusAt} as at ${those(and(condition, isAfter ?? undefined))} order by ${statusAt} desc, turns.id desc limit ${page.limit})
    select total, id, (extract(epoch from at) * 1000)::bigint::text as ms
    from (select count(*)::int as total ${those(condition)}) as counted left join page on true order by at desc, id desc`)
  const places = rows.flatMap(({ id, ms }) => (id === null ? [] : [{ id, at: new Date(Number(ms)) }]))
  return { places, total: rows[0]?.total ?? 0 }
}

const statusAt = sql.raw('coalesce(turns.finished_at, turns.started_at, turns.queued_at)')

const isAsking = sql`exists (
  select from json_array_elements(coalesce(turns.waits, '[]')) as wait
  where wait->>'status' = 'open' and wait->>'kind' in (${sql.join(
    waitKinds.filter(isAnsweredByRequest).map(kind => sql`${kind}`),
    sql`, `,
  )}))`

/** As `toTurn` has them. */
const stages: Record<TurnStage, SQL> = {
  queued: sql`turns.status = 'queued' and turns.joined_to is null`,
  working: sql`(turns.status in ('running', 'waiting') or turns.status = 'queued' and turns.joined_to is not null) and not ${isAsking}`,
  asking: sql`turns.status in ('running', 'waiting') and ${isAsking}`,
  completed: sql`turns.status = 'completed' and not turns.discarded`,
  failed: sql`turns.status = 'failed' and not turns.discarded`,
  canceled: sql`(turns.status = 'canceled' or turns.discarded and turns.status in ('completed', 'failed'))`,
}
