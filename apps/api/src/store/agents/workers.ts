/** The workers that serve the agents of a tenant, and what they run for it. */
import type { Worker } from '@rivulet/contract/agents'
import { sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { agents, turns } from '../schema.ts'
import { isAgentOf } from './agents.ts'

const maxWorkers = 200
const maxTurns = 50

export async function listWorkers(db: Database, tenant: Tenant, leaseMs: number): Promise<Worker[]> {
  const { rows } = await db.execute<Row>(sql`
    with own as (select ${agents.name}, ${agents.agent} from ${agents} where ${isAgentOf(tenant)})
    select workers.id, workers.version, workers.slots, workers.seen_at,
      array(select own.agent from unnest(workers.agents) with ordinality as served (name, place) join own using (name) order by place) as agents,
      extract(epoch from now() - workers.seen_at) * 1000 as silent_ms,
      coalesce((
        select json_agg(json_build_object('task', task, 'turn', number, 'agent', agent, 'startedAt', started_at)) from (
          select turns.task, turns.number, tasks.agent, coalesce(turns.attempt_at, turns.started_at) as started_at
          from turns join tasks on tasks.id = turns.task
          where turns.status = 'running' and turns.worker = workers.id and ${isOf(tenant, turns.tenant) ?? sql`true`}
          order by turns.id limit ${maxTurns}
        ) as held
      ), '[]') as turns
    from workers
    where workers.agents && array(select own.name from own)
    order by workers.seen_at desc, workers.id limit ${maxWorkers}`)
  return rows.map(({ id, version, slots, agents: served, seen_at: seenAt, silent_ms: silent, turns: held }) => {
    const silentMs = Math.max(0, Math.round(Number(silent)))
    const running = held.map(turn => ({ ...turn, startedAt: new Date(turn.startedAt).toISOString() }))
    const about = { id, ...(version !== null && { version }), ...(slots !== null && { slots }), agents: served }
    return { ...about, seenAt: new Date(seenAt).toISOString(), silentMs, isLive: silentMs < leaseMs, turns: running }
  })
}

type Row = { id: string; version: string | null; slots: number | null; agents: string[] } & {
  seen_at: string | Date
  silent_ms: string | number
  turns: Worker['turns']
}
