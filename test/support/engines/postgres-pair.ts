/**
 * A Postgres primary with a streaming standby, and one address that leads to the primary, as the name or proxy of a managed pair does.
 *
 * A standby begins as a copy of the data of the primary, which is stopped for it, so the programs of any version will do. What is replicated passes
 * through a proxy of its own, so that a test can hold it back: then the standby is behind, and its promotion loses commits.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Engine, startPostgres } from '@rivulet/engines'
import pg from 'pg'
import { until } from '../until.ts'
import { startProxy } from '../viewers/proxy.ts'

export type PostgresPair = {
  /** Leads to the primary, also after a failover. */
  url: string
  /** The standby gets what is committed now, and nothing more until the next failover. */
  holdBack(): Promise<void>
  /** The primary dies at once, the standby takes its place and its address. `beforeSwitch` runs while the address leads nowhere. */
  failOver(beforeSwitch?: () => Promise<unknown>): Promise<void>
  /** A new standby for the primary, which restarts. */
  addStandby(): Promise<void>
  close(): Promise<void>
}

/** `prepare` gets the URL of the primary before it has a standby. */
export async function startPostgresPair({
  isSynchronous,
  prepare,
}: {
  isSynchronous: boolean
  prepare: (url: string) => Promise<unknown>
}): Promise<PostgresPair> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-pair-'))
  // Postgres runs as another user when this is root.
  chmodSync(folder, 0o755)
  let started = 1
  let primary = await startIn(homeOf(started))
  let standby: Engine | null = null
  await prepare(primary.url)
  const [address, replication] = await Promise.all([startProxy(primary.url), startProxy(primary.url)])
  await addStandby()
  return { url: address.url, holdBack, failOver, addStandby, close }

  async function holdBack(): Promise<void> {
    const isBehind = 'select from pg_stat_replication, pg_current_wal_lsn() as now where replay_lsn >= now'
    await until('the standby has everything', async () => (await query(primary, isBehind)) > 0)
    replication.blackhole()
  }

  async function failOver(beforeSwitch?: () => Promise<unknown>): Promise<void> {
    if (!standby) throw new Error('There is no standby')
    address.down()
    await kill(primary)
    // Only now: the standby must not receive what was held back.
    replication.up()
    primary = standby
    standby = null
    await query(primary, 'select pg_promote()')
    await beforeSwitch?.()
    address.repoint(primary.url)
    address.up()
  }

  async function addStandby(): Promise<void> {
    const [from, to] = [homeOf(started), homeOf(started + 1)]
    started += 1
    const { port } = new URL(primary.url)
    await primary.stop()
    mkdirSync(join(to, 'postgres'), { recursive: true })
    for (const name of ['data', 'password']) execFileSync('cp', ['-a', join(from, 'postgres', name), join(to, 'postgres', name)])
    primary = await startIn(from, Number(port))
    replication.repoint(primary.url)
    const { username, password } = new URL(primary.url)
    const source = `host=127.0.0.1 port=${replication.port} user=${username} password=${password} application_name=standby`
    // Instead of the settings of the primary, which waits for a standby that the promoted one would not have.
    writeFileSync(join(to, 'postgres/data/postgresql.auto.conf'), `fsync = off\nprimary_conninfo = '${source}'\n`)
    writeFileSync(join(to, 'postgres/data/standby.signal'), '')
    standby = await startIn(to)
    await until('the standby follows', async () => (await query(primary, "select from pg_stat_replication where state = 'streaming'")) > 0)
    if (!isSynchronous) return
    await query(primary, "alter system set synchronous_standby_names = 'standby'")
    await query(primary, 'select pg_reload_conf()')
    await until('commits wait for it', async () => (await query(primary, "select from pg_stat_replication where sync_state = 'sync'")) > 0)
  }

  async function close(): Promise<void> {
    await Promise.all([primary, standby].map(engine => engine?.stop()))
    await Promise.all([address.close(), replication.close()])
    rmSync(folder, { recursive: true, force: true })
  }

  function homeOf(nth: number): string {
    return join(folder, String(nth))
  }
}

function startIn(dataDir: string, port?: number): Promise<Engine> {
  const isEmbedded = process.env.RIVULET_TEST_ENGINES === 'embedded'
  return startPostgres({ dataDir, port, path: process.env.PATH, prefer: isEmbedded ? 'embedded' : 'native' })
}

async function kill(engine: Engine): Promise<void> {
  if (engine.pid !== null) process.kill(engine.pid, 'SIGKILL')
  // Its guardian ends the sessions, and reports that the server ended.
  await engine.stop().catch(() => {})
}

/** How many rows the statement returned. */
async function query({ url }: Engine, text: string): Promise<number> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows.length
  } finally {
    await client.end()
  }
}
