/** The connection to Postgres. If the server is unavailable, frozen or locked, a query fails within seconds, so that no request hangs. */
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { type ClientBase, Pool, type PoolConfig } from 'pg'
import * as schema from '../schema.ts'
import { FairSlots } from './fair-slots.ts'
import { noteServer } from './server-identity.ts'
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
  /** The same for lists, searches and sums, which may read many rows: on connections of their own, and each statement has `listLimitMs`. */
  listsFor(whose: Tenant | Readable): Database
  /** The same for the bytes of files, on connections of their own: they are large, and no other query waits for them. */
  filesFor(tenant: Tenant): Database
  /** Connections that belong to no tenant. */
  pool: Pool
  /** By name, for metrics. */
  pools: Record<PoolName, Pool>
  /** Requests that wait for their tenant's share of a pool, by the name of the pool. */
  waitingForShare(): Partial<Record<PoolName, number>>
  close(): Promise<void>
}

type PoolName = 'server' | 'tenants' | 'lists' | 'leases' | 'files'
type DatabaseOptions = {
  url: string
  onError: (error: Error) => void
  /** A connection found that Postgres is another server than before. */
  onMove?: () => void
}

/** How long a statement that lists may take. */
const listLimitMs = 3_000
/** How long a request waits for a connection. */
const connectionWaitMs = 3_000
/** Requests of a tenant that wait for a connection. */
const maxWaiting = 1_000

/** Tenants, the server itself and heartbeats have connections of their own: none waits for another, and none has to change sides. */
export function openDatabase(options: DatabaseOptions): DatabaseHandle {
  const pool = createPool(options, { max: 10 })
  const leases = createPool(options, { max: 2 })
  const tenants = createSharedPool(options, { max: 20 })
  const lists = createSharedPool(options, { max: 4, limitMs: listLimitMs })
  const files = createSharedPool(options, { max: 4 })
  const pools = { server: pool, tenants: tenants.pool, lists: lists.pool, leases, files: files.pool }
  return {
    db: open(new TenantPool(pool, { tenant: everyTenant })),
    leases: open(new TenantPool(leases, { tenant: everyTenant })),
    databaseFor: openFor(tenants),
    listsFor: openFor(lists),
    filesFor: openFor(files),
    pool,
    pools,
    waitingForShare: () => ({ tenants: tenants.slots.waitingCount, lists: lists.slots.waitingCount, files: files.slots.waitingCount }),
    close: async () => void (await Promise.all(Object.values(pools).map(each => each.end()))),
  }
}

type SharedPool = { pool: Pool; slots: FairSlots; limitMs?: number }

function createSharedPool(options: DatabaseOptions, { max, limitMs }: { max: number; limitMs?: number }): SharedPool {
  const pool = createPool(options, { max, onConnect: takeTenantRole, ...(limitMs && { statement_timeout: limitMs }) })
  return { pool, slots: new FairSlots({ max, waitMs: connectionWaitMs, maxWaiting }), ...(limitMs && { limitMs }) }
}

/** There are as many tenants, and lists of agents, as operators created keys for. */
function openFor({ pool, ...share }: SharedPool): (whose: Tenant | Readable) => Database {
  const known = new Map<string, Database>()
  return whose => {
    const { tenant, agents = null } = typeof whose === 'string' ? { tenant: whose } : whose
    const name = agents === null ? tenant : `${tenant} ${agents.join(' ')}`
    const db = known.get(name) ?? open(new TenantPool(pool, { tenant, agents }, share))
    known.set(name, db)
    return db
  }
}

function open(pool: TenantPool): Database {
  // Of a pool, drizzle wants no more than this.
  return Object.assign(drizzle(pool as unknown as Pool, { schema, casing: 'snake_case' }), { $client: pool })
}

function createPool(
  { url, onError, onMove = () => {} }: DatabaseOptions,
  { onConnect: setUp = async () => {}, ...settings }: PoolConfig,
): Pool {
  const pool = new Pool({
    connectionString: url,
    connectionTimeoutMillis: connectionWaitMs,
    query_timeout: 5_000,
    statement_timeout: 5_000,
    lock_timeout: 3_000,
    idle_in_transaction_session_timeout: 10_000,
    keepAlive: true,
    // What is asked without waiting for the answer before is sent at once (`TenantPool.transact`).
    pipeline: true,
    ...settings,
    async onConnect(client) {
      if (await noteServer(client)) onMove()
      await setUp(client)
    },
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
