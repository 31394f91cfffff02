/**
 * The tenant of a query. Every function of the store that a client can reach takes it and has it in its condition. Postgres enforces it too, by
 * the tenant of the connection (`migrations/`, row-level security). Either protection works without the other.
 */
import { type ErrorDetail, RivuletError } from '@rivulet/protocol'
import { eq, type SQL } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'

export type Tenant = string

/**
 * Whose rows a caller may know of: those of a tenant, or of some of its agents. A connection for some agents is for reads alone, because a change may touch
 * others: a change holds its task by `lockTask`, which takes the caller, too.
 */
export type Readable = { tenant: Tenant; agents?: readonly string[] | null }

/** The tenant of a platform without keys, and of the keys of the environment. */
export const defaultTenant: Tenant = 'default'

/** For what the server does of its own accord: no tenant is called so. */
export const everyTenant: Tenant = '*'
export const everyone: Readable = { tenant: everyTenant }

export function isOf(tenant: Tenant, column: PgColumn): SQL | undefined {
  return tenant === everyTenant ? undefined : eq(column, tenant)
}

/** The same error for an unknown task and for a task of another tenant. */
export function taskNotFound(details?: readonly ErrorDetail[]): RivuletError {
  return new RivuletError('task_not_found', 'No such task', details && { details })
}
