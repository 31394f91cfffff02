/** The connection to Postgres. If the server is unavailable, frozen or locked, a query fails within seconds, so that no request hangs. */
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { type ClientBase, Pool } from 'pg'
import * as schema from '../schema.ts'
import { everyTenant, type Readable, type Tenant } from './tenant.ts'
import { TenantPool } from './tenant-pool.ts'

export { isDatabaseAway, sqlStateOf } from './database-errors.ts'

export type Database = NodePgDatabase<typeof schema> & { $client: TenantPool }
export type Transaction = Parameters<Parameters<Database['transaction']>[0]>[0]

export type DatabaseHandle = {
  /** For what the server does of its own accord, for all tenants. */
  db: Database
  /** For heartbeats only, so that no lease expires because the other pools are busy. */
  leases: Database
  /** As one tenant sees it, or, for reads, as a key that is limited to agents does. */
  databaseFor(whose: Tenant | Readable): Database
  /** The same for the bytes of files, on connections of their own: they are large, and no other query waits for them. */
  filesFor(tenant: Tenant): Database
  /** Connections that belong to no tenant. */
  pool: Pool
  /** By name, for metrics. */
  pools: Record<'server' | 'tenants' | 'leases' | 'files', Pool>
  close(): Promise<void>
}

type DatabaseOptions = { url: string; onError: (error: Error) => void }

/** Tenants, the server itself and heartbeats have connections of their own: none waits for another, and none has to change sides. */
export function openDatabase(options: DatabaseOptions): DatabaseHandle {
  const pool = createPool(options, 10)
  const tenantPool = createPool(options, 20, takeTenantRole)
  const leasePool = createPool(options, 2)
  const filePool = createPool(options, 4, takeTenantRole)
  return {
    db: open(new TenantPool(pool, { tenant: everyTenant })),
    leases: open(new TenantPool(leasePool, { tenant: everyTenant })),
    databaseFor: openFor(tenantPool),
    filesFor: openFor(filePool),
    pool,
    pools: { server: pool, tenants: tenantPool, leases: leasePool, files: filePool },
    close: async () => void (await Promise.all([pool, tenantPool, leasePool, filePool].map(each => each.end()))),
  }
}

/** There are as many tenants, and lists of agents, as operators created keys for. */
function openFor(pool: Pool): (whose: Tenant | Readable) => Database {
  const known = new Map<string, Database>()
  return whose => {
    const { tenant, agents = null } = typeof whose === 'string' ? { tenant: whose } : whose
    const name = agents === null ? tenant : `${tenant} ${agents.join(' ')}`
    const db = known.get(name) ?? open(new TenantPool(pool, { tenant, agents }))
    known.set(name, db)
    return db
  }
}

function open(pool: TenantPool): Database {
  // Of a pool, drizzle wants no more than this.
  return Object.assign(drizzle(pool as unknown as Pool, { schema, casing: 'snake_case' }), { $client: pool })
}

function createPool({ url, onError }: DatabaseOptions, max: number, onConnect?: (client: ClientBase) => Promise<void>): Pool {
  const pool = new Pool({
    connectionString: url,
    max,
    connectionTimeoutMillis: 3_000,
    query_timeout: 5_000,
    statement_timeout: 5_000,
    lock_timeout: 3_000,
    idle_in_transaction_session_timeout: 10_000,
    keepAlive: true,
    // What is asked without waiting for the answer before is sent at once (`TenantPool.transact`).
    pipeline: true,
    ...(onConnect && { onConnect }),
  })
  // Without a listener, a connection that is closed by the server ends the process: an idle one tells the pool, one that is lent out itself.
  pool.on('error', onError)
  pool.on('connect', client => client.on('error', onError))
  return pool
}

/** Superusers bypass row-level security, so a user that may take the role `rivulet_tenant` takes it. Other owners are bound without it. */
async function takeTenantRole(client: ClientBase): Promise<void> {
  const member = "select rolname from pg_roles where rolname = 'rivulet_tenant' and pg_has_role(oid, 'member')"
  await client.query(`select set_config('role', rolname, false) from (${member}) as role`)
}
