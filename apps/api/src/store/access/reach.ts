/**
 * The turns that a worker may access: those of the tenant and the agents of its key. Neither changes for a turn, so one check before the access
 * is enough. For a turn out of reach, callers return the same as for a turn that does not exist.
 */
import { and, eq, inArray, sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { everyTenant, isOf, type Tenant } from '../connection/tenant.ts'
import { tasks, turns } from '../schema.ts'

/** `agents` is null for all of them. */
export type Reach = { tenant: Tenant; agents: readonly string[] | null }

/** Those of these turns that are within reach. Costs no query where everything is. */
export async function turnsWithin(db: Database, { tenant, agents }: Reach, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (tenant === everyTenant && agents === null) return new Set(ids)
  const wanted = sql`${turns.id} = any(${sql.param(ids)}::uuid[])`
  const rows = await db
    .select({ id: turns.id })
    .from(turns)
    .innerJoin(tasks, eq(tasks.id, turns.task))
    .where(and(wanted, isOf(tenant, turns.tenant), agents ? inArray(tasks.agent, [...agents]) : undefined))
  return new Set(rows.map(({ id }) => id))
}
