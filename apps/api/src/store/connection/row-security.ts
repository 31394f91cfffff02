/** Checks that Postgres separates tenants on the connections that their requests use: a login can be exempt, and a table can lack row-level security. */
import { getTableName, is } from 'drizzle-orm'
import { PgTable } from 'drizzle-orm/pg-core'
import type { Pool } from 'pg'
import * as schema from '../schema.ts'

/** Tables whose rows have no tenant. */
const sharedTables = ['workers']
const separatedTables = Object.values(schema).flatMap(table => (is(table, PgTable) ? [getTableName(table)] : []))

/** A sentence that says what is wrong and what to do; null if rows are separated. Throws if Postgres is unavailable. */
export async function whyRowsAreOpen(tenantPool: Pool): Promise<string | null> {
  const { rows } = await tenantPool.query<{ name: string; isExempt: boolean; open: string[] }>(
    `select rolname as name, rolsuper or rolbypassrls as "isExempt", array(
       select relname::text from pg_class
       where relnamespace = 'public'::regnamespace and relname = any($1) and not (relrowsecurity and relforcerowsecurity) order by relname
     ) as open from pg_roles where rolname = current_user`,
    [separatedTables.filter(name => !sharedTables.includes(name))],
  )
  const [{ name, isExempt, open } = { name: '', isExempt: true, open: [] }] = rows
  if (isExempt)
    return `The user ${name} of DATABASE_URL is exempt from row-level security, because it is a superuser or has BYPASSRLS: grant it the role rivulet_tenant, or use the login of ops/postgres/roles.sql`
  if (open.length > 0) return `Row-level security is off for tables of tenants (${open.join(', ')}): enable it, and FORCE it`
  return null
}
