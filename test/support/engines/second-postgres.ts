/** A second Postgres server, with the rows of the first: where an installation is after a restore, or after a move by logical replication. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '@rivulet/api/migrate'
import { startPostgres } from '@rivulet/engines'
import pg from 'pg'

export type SecondPostgres = {
  url: string
  /** Replaces its rows and sequences by those of another database, without running triggers, as a restore does. */
  copyRows(from: string): Promise<void>
  close(): Promise<void>
}

/** Migrated. Its transactions begin at the first number, so they are far below those of a server that was in use. */
export async function startSecondPostgres(): Promise<SecondPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-second-'))
  // Postgres runs as another user when this is root.
  chmodSync(folder, 0o755)
  const isEmbedded = process.env.RIVULET_TEST_ENGINES === 'embedded'
  const { url, stop } = await startPostgres({ dataDir: folder, path: process.env.PATH, prefer: isEmbedded ? 'embedded' : 'native' })
  await migrate(url)
  return { url, copyRows, close }

  async function copyRows(from: string): Promise<void> {
    await withClient(from, source =>
      withClient(url, async target => {
        await target.query("set session_replication_role = 'replica'")
        await target.query("select set_config('rivulet.tenant', '*', false)")
        const { rows: tables } = await target.query<{ name: string }>(
          `select quote_ident(relname) as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`,
        )
        await target.query(`truncate ${tables.map(({ name }) => name).join(', ')}`)
        const { rows: sequences } = await source.query<{ name: string; last: string }>(
          `select quote_ident(sequencename) as name, coalesce(last_value, 1) as last from pg_sequences where schemaname = 'public'`,
        )
        for (const { name, last } of sequences) await target.query('select setval($1, $2)', [name, last])
        for (const { name } of tables) {
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

  async function close(): Promise<void> {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  }
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
