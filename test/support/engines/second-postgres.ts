/** A Postgres server of a test's own, and the rows of another in it: where an installation is after a restore, or after a move by logical replication. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '@rivulet/api/migrate'
import { startPostgres } from '@rivulet/engines'
import pg from 'pg'
import { until } from '../until.ts'

export type SecondPostgres = {
  url: string
  /** Replaces its rows and sequences by those of another database, without running triggers, as a restore does. */
  copyRows(from: string): Promise<void>
  /** The reason why this server cannot publish or subscribe: it was built without the libraries for that. Null if it can. */
  whyNoReplication(): Promise<string | null>
  /** Subscribes to all tables of another database, whose server has to be `isPublisher`. Resolves when the rows of now are here. */
  subscribeTo(from: string): Promise<Subscription>
  close(): Promise<void>
}

export type Subscription = {
  /** Waits until this server has everything that is committed there, copies the sequences, which Postgres does not replicate, and ends the subscription. */
  takeOver(): Promise<void>
}

/**
 * Migrated. Its transactions begin at the first number, so they are far below those of a server that was in use. `isPublisher`: others can subscribe to its
 * rows.
 */
export async function startSecondPostgres({ isPublisher = false } = {}): Promise<SecondPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-second-'))
  // Postgres runs as another user when this is root.
  chmodSync(folder, 0o755)
  const isEmbedded = process.env.RIVULET_TEST_ENGINES === 'embedded'
  const start = () => startPostgres({ dataDir: folder, path: process.env.PATH, prefer: isEmbedded ? 'embedded' : 'native' })
  let { url, stop } = await start()
  if (isPublisher) {
    await withClient(url, client => client.query('alter system set wal_level = logical'))
    await stop()
    ;({ url, stop } = await start())
  }
  await migrate(url)
  return { url, copyRows, whyNoReplication, subscribeTo, close }

  async function copyRows(from: string): Promise<void> {
    await withClient(from, source =>
      withClient(url, async target => {
        await target.query("set session_replication_role = 'replica'")
        await target.query("select set_config('rivulet.tenant', '*', false)")
        const tables = await emptyTables(target)
        await copySequences(source, target)
        for (const name of tables) {
          const { rows } = await source.query<{ all: string }>(`select coalesce(json_agg(t), '[]')::text as all from ${name} t`)
          // As a dump does: columns that Postgres generates are left out.
          const { rows: columns } = await target.query<{ names: string }>(
            `select string_agg(quote_ident(attname), ', ' order by attnum) as names from pg_attribute
             where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
            [name],
          )
          const names = columns[0]?.names
          await target.query(`insert into ${name} (${names}) select ${names} from json_populate_recordset(null::${name}, $1)`, [
            rows[0]?.all,
          ])
        }
      }),
    )
  }

  async function whyNoReplication(): Promise<string | null> {
    try {
      await withClient(url, client => client.query("load 'pgoutput'; load 'libpqwalreceiver'"))
      return null
    } catch (error) {
      return `Postgres cannot replicate rows: ${(error as Error).message}`
    }
  }

  async function subscribeTo(from: string): Promise<Subscription> {
    const { hostname, port, username, password, pathname } = new URL(from)
    const source = `host=${hostname} port=${port} user=${username} password=${password} dbname=${pathname.slice(1)}`
    await withClient(url, async target => {
      // Not those of other schemas: the migrations of this server are its own.
      const tables = await emptyTables(target)
      await withClient(from, client => client.query(`create publication moving for table ${tables.join(', ')}`))
      await target.query(`create subscription moving connection ${pg.escapeLiteral(source)} publication moving`)
      await until('the rows of now are here', async () => {
        const { rowCount } = await target.query("select from pg_subscription_rel where srsubstate <> 'r'")
        return rowCount === 0
      })
    })
    return {
      takeOver: () =>
        withClient(from, async client => {
          const { rows } = await client.query<{ now: string }>('select pg_current_wal_lsn() as now')
          const isBehind = "select from pg_replication_slots where slot_name = 'moving' and confirmed_flush_lsn < $1"
          await until('everything is here', async () => (await client.query(isBehind, [rows[0]?.now])).rowCount === 0)
          await withClient(url, async target => {
            await copySequences(client, target)
            await target.query('drop subscription moving')
          })
        }),
    }
  }

  async function close(): Promise<void> {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function emptyTables(target: pg.Client): Promise<string[]> {
  const { rows } = await target.query<{ name: string }>(
    `select quote_ident(relname) as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`,
  )
  const names = rows.map(({ name }) => name)
  await target.query(`truncate ${names.join(', ')}`)
  return names
}

async function copySequences(source: pg.Client, target: pg.Client): Promise<void> {
  const { rows } = await source.query<{ name: string; last: string }>(
    `select quote_ident(sequencename) as name, coalesce(last_value, 1) as last from pg_sequences where schemaname = 'public'`,
  )
  for (const { name, last } of rows) await target.query('select setval($1, $2)', [name, last])
}

/** The server of this database goes through so many transactions. */
export async function spendTransactions(url: string, count: number): Promise<void> {
  await withClient(url, client =>
    client.query(`do $$ begin for i in 1..${count} loop perform pg_current_xact_id(); commit; end loop; end $$`),
  )
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
