/**
 * Fresh databases for tests, each a copy of a template that was migrated once.
 *
 * The first process that needs the template creates it, and the others wait for it. A template is complete when it allows no connections; an
 * incomplete one is created again.
 */
import { randomBytes } from 'node:crypto'
import pg from 'pg'

export type TestDatabase = {
  url: string
  /** Fails when a connection to it is still open. */
  drop(): Promise<void>
}

export type TestDatabases = {
  /** A copy of the template. `name` is part of its name, with a random suffix. */
  create(name?: string): Promise<TestDatabase>
  /** Closes the connection. Does not drop databases. */
  close(): Promise<void>
}

export type TestDatabasesOptions = {
  /** Any database on the server, with a role that may create databases. */
  url: string
  /** Migrates an empty database, and closes its connections. */
  migrate(url: string): Promise<unknown>
  /** The template's name, shared by all processes that use it. Default `rivulet_template`. */
  template?: string
}

export function createTestDatabases({ url, migrate, template = 'rivulet_template' }: TestDatabasesOptions): TestDatabases {
  const admin = new pg.Pool({ connectionString: url, max: 1 })
  admin.on('error', () => {})
  let templateMade: Promise<void> | null = null

  return { create, close: () => admin.end() }

  async function create(name = 'test'): Promise<TestDatabase> {
    templateMade ??= makeTemplate()
    await templateMade
    const database = `${name
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '_')
      .slice(0, 40)}_${randomBytes(5).toString('hex')}`
    await admin.query(`CREATE DATABASE ${pg.escapeIdentifier(database)} TEMPLATE ${template}`)
    return { url: urlOf(database), drop: async () => void (await admin.query(`DROP DATABASE ${pg.escapeIdentifier(database)}`)) }
  }

  async function makeTemplate(): Promise<void> {
    const client = await admin.connect()
    try {
      await client.query('SELECT pg_advisory_lock(hashtext($1))', [template])
      const { rows } = await client.query<{ datallowconn: boolean }>('SELECT datallowconn FROM pg_database WHERE datname = $1', [template])
      if (rows[0]?.datallowconn === false) return
      await client.query(`DROP DATABASE IF EXISTS ${template}`)
      await client.query(`CREATE DATABASE ${template}`)
      await migrate(urlOf(template))
      await client.query(`ALTER DATABASE ${template} ALLOW_CONNECTIONS false`)
    } finally {
      // Closing the connection releases the advisory lock.
      client.release(true)
    }
  }

  function urlOf(database: string): string {
    const copy = new URL(url)
    copy.pathname = `/${database}`
    return copy.href
  }
}
