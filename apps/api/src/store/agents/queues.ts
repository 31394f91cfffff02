/** The waiting and running turns of all tenants, by agent, for operators. */
import { sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { isDue, isNext } from '../turns/turn-states.ts'
import { presentWorkers } from './agents.ts'

/** `agent` is the name of the queue. `queued` could run now if a worker had room; `oldestMs` is how long the first of them could have. */
type AgentQueue = { agent: string; queued: number; oldestMs: number; running: number; workers: number }

export async function readQueues(db: Database, workerTimeoutMs: number): Promise<AgentQueue[]> {
  const { rows } = await db.execute<Record<keyof AgentQueue, string>>(sql`
    select agents.name as agent,
      coalesce(due.queued, 0) as queued, coalesce(due.oldest, 0) as "oldestMs", coalesce(active.running, 0) as running,
      ${presentWorkers(workerTimeoutMs)} as workers
    from agents
    left join (
      select queue_of(turns.tenant, tasks.agent) as agent, count(*) as queued, greatest(0, floor(extract(epoch from now() - min(turns.run_at)) * 1000)) as oldest
      from turns join tasks on tasks.id = turns.task
      where turns.status = 'queued' and ${sql.raw(isDue('turns'))} and not turns.canceling and ${sql.raw(isNext)}
      group by queue_of(turns.tenant, tasks.agent)
    ) due on due.agent = agents.name
    left join (
      select queue_of(turns.tenant, tasks.agent) as agent, count(*) as running from turns join tasks on tasks.id = turns.task
      where turns.status = 'running' group by queue_of(turns.tenant, tasks.agent)
    ) active on active.agent = agents.name
    order by agents.name
  `)
  return rows.map(({ agent, queued, oldestMs, running, workers }) => ({
    ...{ agent, queued: Number(queued), oldestMs: Number(oldestMs), running: Number(running), workers: Number(workers) },
  }))
}
