/** Agents that workers have ever registered, and the workers that are there now. */
import type { Agent, Hello } from '@rivulet/protocol'
import { asc, lt, type SQL, sql } from 'drizzle-orm'
import type { Database } from './database.ts'
import { msAgo } from './moments.ts'
import { agents, turns, workers } from './schema.ts'
import { isOf, type Tenant } from './tenant.ts'

export async function registerWorker(db: Database, { worker, agents: declared }: Hello): Promise<void> {
  const names = declared.map(({ name }) => name)
  await db.transaction(async tx => {
    if (declared.length > 0) {
      const rows = [...declared].sort((a, b) => (a.name < b.name ? -1 : 1))
      const changed = sql`${agents.description} is distinct from excluded.description`
      await tx
        .insert(agents)
        .values(rows)
        .onConflictDoUpdate({ target: agents.name, set: { description: sql`excluded.description` }, setWhere: changed })
    }
    const row = { id: worker, agents: names, seenAt: sql`now()` }
    await tx
      .insert(workers)
      .values(row)
      .onConflictDoUpdate({ target: workers.id, set: { agents: names, seenAt: sql`now()` } })
  })
}

/** Agents and workers are everybody's; the work that is counted is the tenant's own. */
export async function listAgents(db: Database, tenant: Tenant, workerTimeoutMs: number): Promise<Agent[]> {
  const countTurns = (status: string) =>
    sql<number>`(select count(*) from turns join tasks on tasks.id = turns.task where tasks.agent = agents.name and turns.status = ${status} and ${isOf(tenant, turns.tenant) ?? sql`true`})`
  return db
    .select({
      name: agents.name,
      description: agents.description,
      workers: presentWorkers(workerTimeoutMs).mapWith(Number),
      queued: countTurns('queued').mapWith(Number),
      running: countTurns('running').mapWith(Number),
    })
    .from(agents)
    .orderBy(asc(agents.name))
}

/** How many workers of an agent are there now, in a query about agents. */
export function presentWorkers(workerTimeoutMs: number): SQL<number> {
  return sql`(select count(*) from workers where agents.name = any(workers.agents) and workers.seen_at > ${msAgo(workerTimeoutMs)})`
}

export async function forgetWorkers(db: Database): Promise<void> {
  await db.delete(workers).where(lt(workers.seenAt, sql`now() - interval '1 day'`))
}
