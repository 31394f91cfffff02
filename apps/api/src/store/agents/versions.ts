/** The versions of workers, and the turns that each began and that have not ended. */
import type { WorkerVersion } from '@rivulet/contract/agents'
import { sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { msAgo } from '../connection/moments.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { agents, turns } from '../schema.ts'
import { unfinishedList } from '../turns/turn-states.ts'
import { isAgentOf } from './agents.ts'

const maxVersions = 200

type Row = { version: string; agents: string[] } & Record<'workers' | 'slots' | 'queued' | 'running' | 'waiting', string>

/** The versions of workers that sent a heartbeat in the last day, the latest first, and those that have turns left. */
export async function listVersions(db: Database, tenant: Tenant, workerTimeoutMs: number): Promise<WorkerVersion[]> {
  const { rows } = await db.execute<Row>(sql`
    with own as (
      select ${agents.name}, ${agents.agent} from ${agents} where ${isAgentOf(tenant)}
    ), seen as (
      select version, slots, agents, seen_at, seen_at > ${msAgo(workerTimeoutMs)} as is_live from workers
      where version is not null and agents && array(select own.name from own)
    ), present as (
      select version, count(*) filter (where is_live) as workers, sum(slots) filter (where is_live) as slots, max(seen_at) as seen_at
      from seen group by version
    ), served as (
      select version, array_agg(distinct own.agent order by own.agent) as agents from seen join own on own.name = any(seen.agents) group by version
    ), begun as (
      select version, count(*) filter (where turns.status = 'queued') as queued, count(*) filter (where turns.status = 'running') as running,
        count(*) filter (where turns.status = 'waiting') as waiting
      from turns join tasks on tasks.id = turns.task where turns.status in (${sql.raw(unfinishedList)}) and version is not null and ${isOf(tenant, turns.tenant) ?? sql`true`}
      group by version
    )
    select version, coalesce(served.agents, '{}') as agents, coalesce(workers, 0) as workers, coalesce(slots, 0) as slots,
      coalesce(queued, 0) as queued, coalesce(running, 0) as running, coalesce(waiting, 0) as waiting
    from present full join begun using (version) left join served using (version)
    order by seen_at desc nulls last, version limit ${maxVersions}`)
  return rows.map(({ version, agents: served, ...row }) => {
    const [queued, running, waiting] = [Number(row.queued), Number(row.running), Number(row.waiting)]
    const isDrained = queued + running + waiting === 0
    return { version, agents: served, workers: Number(row.workers), slots: Number(row.slots), queued, running, waiting, isDrained }
  })
}
