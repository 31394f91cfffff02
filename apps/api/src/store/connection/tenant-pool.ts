/**
 * A connection pool for one tenant, or for some of its agents: every connection that it returns has both set, so that row-level security applies.
 *
 * The pool sets them only when they change, so requests of one tenant need no extra round trip.
 */
import { RivuletError } from '@rivulet/protocol'
import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg'
import { askTwice, sqlStateOf } from './database-errors.ts'
import type { FairSlots } from './fair-slots.ts'
import type { Readable, Tenant } from './tenant.ts'

const told = new WeakMap<PoolClient, string>()

/** Where tenants share a pool: a slot for each connection, and how long a statement may take, if that is shorter than elsewhere. */
type PoolShare = { slots?: FairSlots; limitMs?: number }

const statementCanceled = '57014'

class ListTooSlow extends RivuletError {
  constructor(limitMs: number) {
    super('overloaded', `The list took longer than ${limitMs / 1_000} s; narrow it, for example by agent, status or time`)
  }
}

/** Drizzle wraps the errors of statements. */
export function isListTooSlow(error: unknown): boolean {
  return error instanceof ListTooSlow || (error instanceof Error && isListTooSlow(error.cause))
}

/** A class, and a "Pool" by name: that is how drizzle knows what it can have a transaction's connection of. */
export class TenantPool {
  readonly #pool: Pool
  readonly #tenant: Tenant
  readonly #agents: string
  readonly #share: PoolShare

  constructor(pool: Pool, { tenant, agents = null }: Readable, share: PoolShare = {}) {
    this.#pool = pool
    this.#tenant = tenant
    this.#agents = agents === null ? '' : arrayText(agents)
    this.#share = share
  }

  async connect(): Promise<PoolClient> {
    const client = await this.#lend()
    const wanted = `${this.#tenant} ${this.#agents}`
    if (told.get(client) === wanted) return client
    try {
      const settings = [this.#tenant, this.#agents]
      await client.query("select set_config('rivulet.tenant', $1, false), set_config('rivulet.agents', $2, false)", settings)
      told.set(client, wanted)
      return client
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  async #lend(): Promise<PoolClient> {
    const { slots } = this.#share
    if (slots && !(await slots.acquire(this.#tenant)))
      throw new RivuletError('overloaded', 'Too many requests of this tenant wait for the database; retry')
    const giveBack = () => slots?.release(this.#tenant)
    try {
      return releasedAtItsEnd(await this.#pool.connect(), giveBack)
    } catch (error) {
      giveBack()
      throw error
    }
  }

  /** A read is asked once more, on another connection, where its own broke. */
  async query(config: QueryConfig, values?: unknown[]): Promise<QueryResult> {
    const ask = () => this.#ask(config, values)
    return isRead(config.text) ? askTwice(ask) : ask()
  }

  async #ask(config: QueryConfig, values: unknown[] | undefined): Promise<QueryResult> {
    const client = await this.connect()
    try {
      const result = await client.query(config, values)
      client.release()
      return result
    } catch (error) {
      // Its question may still be under way.
      client.release(true)
      throw this.#share.limitMs && sqlStateOf(error) === statementCanceled ? new ListTooSlow(this.#share.limitMs) : error
    }
  }

  /**
   * A transaction of statements that are sent at once, in one round trip. Each sees the changes and settings of those before it, and what others had
   * committed when it began. Returns their results.
   */
  async transact<const All extends readonly Statement[]>(statements: All): Promise<{ [Each in keyof All]: QueryResult }> {
    const client = await this.connect()
    const sent = [begin, ...statements, commit].map(statement => client.query(statement))
    const results = await Promise.allSettled(sent)
    const failed = results.find(({ status }) => status === 'rejected')
    // If Postgres has replied to COMMIT, it has replied to every statement before it, so the connection is clean: reuse it even if one failed.
    client.release(results.at(-1)?.status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
    const values = results.slice(1, -1).map(result => (result.status === 'fulfilled' ? result.value : null))
    return values as { [Each in keyof All]: QueryResult }
  }
}

/** Quoted, because Postgres takes a bare `null` for no value. An empty list is no empty text, which would mean all agents. */
function arrayText(names: readonly string[]): string {
  return `{${names.map(name => JSON.stringify(name)).join(',')}}`
}

/** Named, so that Postgres plans it once for each connection. */
export type Statement = { name: string; text: string; values: unknown[] }

/**
 * In a `select`: the statements behind it in the same transaction find each row by its key. Without that, a plan that Postgres made while the tables were
 * empty, and keeps until it has counted their rows, may read all of them. Its estimates are then too high, for which it would compile the statement.
 */
export const byKeySettings = `set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
  set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)`

/** As the first statement of a transaction. */
export const findByKey: Statement = { name: 'find_by_key', text: `select ${byKeySettings}`, values: [] }

const begin = { text: 'begin' }
const commit = { text: 'commit' }

/** Drizzle does not give a connection back on which `begin` has failed: then that happens when the connection ends. */
function releasedAtItsEnd(client: PoolClient, onRelease: () => void): PoolClient {
  const release = client.release.bind(client)
  const onEnd = () => client.release(true)
  let isLent = true
  client.once('end', onEnd)
  client.release = isBroken => {
    if (!isLent) return
    isLent = false
    client.off('end', onEnd)
    release(isBroken)
    onRelease()
  }
  return client
}

/** A statement that changes rows contains one of these verbs, also within a `with`. A read that contains one in another role is not retried. */
function isRead(text: string): boolean {
  return /^\s*(select|with)\b/i.test(text) && !/\b(insert|update|delete|merge)\b/i.test(text)
}
