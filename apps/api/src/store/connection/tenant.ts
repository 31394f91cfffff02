/**
 * Whose rows a query is about. Every function of the store that a client can reach is told, and says it in its condition; Postgres is told too,
 * by the connection, and holds to it by itself (`migrations/`, row-level security). Either wall stands without the other.
 */
import { RivuletError } from '@rivulet/protocol'
import { eq, type SQL } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'

export type Tenant = string

/** The tenant of a platform without keys, and of the keys of the environment. */
export const defaultTenant: Tenant = 'default'

/** For what the server does of its own accord: no tenant is called so. */
export const everyTenant: Tenant = '*'

export function isOf(tenant: Tenant, column: PgColumn): SQL | undefined {
  return tenant === everyTenant ? undefined : eq(column, tenant)
}

/** The one answer for a task that is not there and for one that is somebody else's. */
export function taskNotFound(): RivuletError {
  return new RivuletError('task_not_found', 'No such task')
}
