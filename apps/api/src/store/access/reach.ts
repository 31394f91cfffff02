/**
 * What a key may access: the turns of a worker, and the rows of a caller whose key is limited to agents. For a row out of reach, callers return the same as
 * for one that does not exist. The tenant of a row never changes. Its agent does once, if the first response of a conversation is that of another one: so the
 * rows themselves decide each read and change (row-level security, `lockTask`), and open streams are checked from time to time.
 */
import type { TaskId } from '@rivulet/protocol'
import { and, eq, inArray, sql } from 'drizzle-orm'
import { LRUCache } from 'lru-cache'
import type { Database, DatabaseHandle } from '../connection/database.ts'
import { everyTenant, isOf, type Readable, type Tenant } from '../connection/tenant.ts'
import { files, schedules, tasks, turns, webhooks } from '../schema.ts'

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

const owned = { tasks, schedules, webhooks, files } as const
export type OwnedKind = keyof typeof owned

/** Those of these tasks that a reader may read. */
export async function tasksWithin(db: Database, { tenant }: Readable, ids: readonly TaskId[]): Promise<ReadonlySet<TaskId>> {
  if (ids.length === 0) return new Set()
  const rows = await db
    .select({ id: tasks.id })
    .from(tasks)
    .where(and(sql`${tasks.id} = any(${sql.param([...ids])}::uuid[])`, isOf(tenant, tasks.tenant)))
  return new Set(rows.map(({ id }) => id))
}

const maxKnownTasks = 50_000

/** Whether a reader that is limited to agents sees this row. Tasks that it sees are remembered, because thousands of viewers may come back to one. */
export function createReachCheck(databaseFor: DatabaseHandle['databaseFor']) {
  const known = new LRUCache<string, true>({ max: maxKnownTasks })
  return async ({ tenant, agents = null }: Readable, kind: OwnedKind, id: string): Promise<boolean> => {
    const name = `${tenant} ${agents?.join(' ')} ${id}`
    if (kind === 'tasks' && known.has(name)) return true
    const table = owned[kind]
    const [row] = await databaseFor({ tenant, agents })
      .select({ id: table.id })
      .from(table)
      .where(and(eq(table.id, id), isOf(tenant, table.tenant)))
    if (row && kind === 'tasks') known.set(name, true)
    return row !== undefined
  }
}
