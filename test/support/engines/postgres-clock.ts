/** Sets the clock of one database: `now()` of its sessions is a function of its own, because the clock of the server is that of every test. */
import pg from 'pg'

export type SetClock = (aheadMs: number) => Promise<void>

/** Call it before the programs connect: it holds for sessions that begin later. */
export async function ownClockOf(databaseUrl: string): Promise<SetClock> {
  const { pathname } = new URL(databaseUrl)
  const database = pg.escapeIdentifier(decodeURIComponent(pathname.slice(1)))
  await run(`
    create schema own_clock;
    create table own_clock.ahead (ms float8 not null);
    insert into own_clock.ahead values (0);
    create function own_clock.now() returns timestamptz language sql stable as
      $$ select pg_catalog.now() + (select ms from own_clock.ahead) * interval '1 millisecond' $$;
    grant usage on schema own_clock to public;
    grant select on own_clock.ahead to public;
    alter database ${database} set search_path = public, own_clock, pg_catalog;
  `)
  return aheadMs => run(`update own_clock.ahead set ms = ${aheadMs}`)

  async function run(statements: string): Promise<void> {
    const client = new pg.Client({ connectionString: databaseUrl })
    await client.connect()
    try {
      await client.query(statements)
    } finally {
      await client.end()
    }
  }
}
