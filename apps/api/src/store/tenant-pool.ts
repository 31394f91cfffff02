/**
 * A pool of connections as one tenant sees it: whatever it lends has been told whose rows it may touch.
 *
 * A connection remembers its tenant and is told only when that changes, so requests of one tenant cost no question more.
 */
import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg'
import type { Tenant } from './tenant.ts'

const told = new WeakMap<PoolClient, Tenant>()

/** A class, and a "Pool" by name: that is how drizzle knows what it can have a transaction's connection of. */
export class TenantPool {
  readonly #pool: Pool
  readonly #tenant: Tenant

  constructor(pool: Pool, tenant: Tenant) {
    this.#pool = pool
    this.#tenant = tenant
  }

  async connect(): Promise<PoolClient> {
    const client = givenBackAtItsEnd(await this.#pool.connect())
    if (told.get(client) === this.#tenant) return client
    try {
      await client.query("select set_config('rivulet.tenant', $1, false)", [this.#tenant])
      told.set(client, this.#tenant)
      return client
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  async query(config: QueryConfig, values?: unknown[]): Promise<QueryResult> {
    const client = await this.connect()
    try {
      const result = await client.query(config, values)
      client.release()
      return result
    } catch (error) {
      // Its question may still be under way.
      client.release(true)
      throw error
    }
  }
}

/** A transaction whose very first word was not heard is given up without its connection being given back: that happens when it ends. */
function givenBackAtItsEnd(client: PoolClient): PoolClient {
  const release = client.release.bind(client)
  const onEnd = () => client.release(true)
  let isLent = true
  client.once('end', onEnd)
  client.release = isBroken => {
    if (!isLent) return
    isLent = false
    client.off('end', onEnd)
    release(isBroken)
  }
  return client
}
