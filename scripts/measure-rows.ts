/**
 * `npm run measure:rows`: how long the last migrations and the removal of old tasks hold up other statements on a large database.
 *
 * It fills a Postgres of its own as the version before the last migrations would have, applies those migrations while others read and write, then starts an
 * API with TASK_RETENTION_DAYS. `--messages` is their number, 10,000,000 by default; `--migrations` how many of the last are measured, 2 by default.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { migrate } from '@rivulet/api/migrate'
import { startPostgres, startRedis } from '@rivulet/engines'
import pg from 'pg'

const { values } = parseArgs({
  options: { messages: { type: 'string', default: '10000000' }, migrations: { type: 'string', default: '2' } },
})
const messages = Number(values.messages)
/** Ten messages a turn, ten turns a task. */
const tasks = messages / 100
const pauseMs = 10
const root = fileURLToPath(new URL('../', import.meta.url))

type Probe = { name: string; text: string; longestMs: number; count: number }

const folder = mkdtempSync(join(tmpdir(), 'rivulet-rows-'))
// Postgres runs as another user when this is root.
chmodSync(folder, 0o755)
const postgres = await startPostgres({ dataDir: join(folder, 'data'), path: process.env.PATH })
try {
  await measure()
} finally {
  await postgres.stop()
  rmSync(folder, { recursive: true, force: true })
}

async function measure(): Promise<void> {
  const { url } = postgres
  await migrate(url, { folder: migrationsBefore(Number(values.migrations)) })
  await fill(url)
  console.log(
    `${postgres.description.split(',')[0]}; ${cpus().length} × ${cpus()[0]?.model}; ${messages} messages, ${tasks * 10} turns, ${tasks} tasks`,
  )
  console.log('| while | took, s | longest wait of another statement, ms |\n| --- | ---: | --- |')
  await report(url, 'nothing else happens', () => sleep(5_000))
  await report(url, `the last ${values.migrations} migrations and their indexes`, () => migrate(url))
  let longestMs = 0
  await report(url, `${tasks / 10} tasks are removed, by TASK_RETENTION_DAYS`, async () => {
    longestMs = await removeOld(url)
  })
  console.log(`The longest statement that removed tasks took ${Math.round(longestMs)} ms`)
}

/** A tenth of the tasks. Returns how long the longest statement took, as far as another session saw it. */
async function removeOld(url: string): Promise<number> {
  const redis = await startRedis({ dataDir: join(folder, 'data'), path: process.env.PATH })
  const settings = { DATABASE_URL: url, REDIS_URL: redis.url, TASK_RETENTION_DAYS: '1', RECONCILE_MS: '500', PORT: '0' }
  const api = spawn(process.execPath, ['--import', 'tsx', 'apps/api/src/main.ts'], {
    cwd: root,
    env: { ...process.env, ...settings },
    stdio: 'ignore',
  })
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query("select set_config('rivulet.tenant', '*', false)")
  const count = async () => Number((await client.query('select count(*) from tasks')).rows[0]?.count)
  const goal = (await count()) * 0.9
  let longestMs = 0
  for (let polls = 0; polls % 100 !== 99 || (await count()) > goal; polls += 1) {
    const { rows } = await client.query(
      `select extract(epoch from max(clock_timestamp() - query_start)) * 1000 as ms from pg_stat_activity where state = 'active' and query ilike 'delete from "tasks"%'`,
    )
    longestMs = Math.max(longestMs, Number(rows[0]?.ms ?? 0))
    await sleep(5)
  }
  await client.end()
  api.kill('SIGTERM')
  await once(api, 'exit')
  await redis.stop()
  return longestMs
}

/** A copy of our migrations without the last ones. */
function migrationsBefore(missing: number): string {
  const copy = join(folder, 'migrations')
  cpSync(join(root, 'migrations'), copy, { recursive: true })
  rmSync(join(copy, 'concurrent'), { recursive: true, force: true })
  const file = join(copy, 'meta/_journal.json')
  const journal: { entries: unknown[] } = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, JSON.stringify({ ...journal, entries: journal.entries.slice(0, -missing) }))
  return copy
}

/** Tasks that ended two days ago. Their ids tell that, because retention goes by them. A replica does not check what rows refer to, which takes minutes. */
async function fill(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(
    "select set_config('rivulet.tenant', '*', false), set_config('synchronous_commit', 'off', false), set_config('session_replication_role', 'replica', false)",
  )
  const ended = "now() - interval '2 days'"
  const idOf = (kind: number, nth: string) =>
    `(lpad(to_hex((extract(epoch from ${ended}) * 1000)::bigint), 12, '0') || '7${kind}00' || '8000' || lpad(to_hex(${nth}), 12, '0'))::uuid`
  await client.query(`
    insert into tasks (id, agent, status, metadata, epoch, priority, timeout_ms, max_attempts, created_at, updated_at)
    select ${idOf(0, 'nth')}, 'echo', 'completed', '{}', 62, 5, 3600000, 3, ${ended}, ${ended} from generate_series(1, ${tasks}) as nth`)
  await client.query(`
    insert into turns (id, task, number, status, attempt, queued_at, started_at, finished_at, run_at, deadline, announced)
    select ${idOf(1, '(row_number() over ())::bigint')}, tasks.id, number, 'completed', 1, created_at, created_at, created_at, created_at, created_at, true
    from tasks, generate_series(1, 10) as number`)
  await client.query(`
    insert into messages (task, index, turn, attempt, author, content, metadata, status, created_at, finished_at)
    select tasks.id, index, index / 10 + 1, 1, 'agent', '{"type":"text","text":"a few words that an agent has said, as long as a short sentence is"}', '{}',
      'complete', created_at, created_at
    from tasks, generate_series(0, 99) as index`)
  await client.query('vacuum analyze')
  await client.end()
}

async function report(url: string, what: string, work: () => Promise<unknown>): Promise<void> {
  const probes = probesOf()
  const stopping = new AbortController()
  const probing = Promise.all(probes.map(probe => ask(url, probe, stopping.signal)))
  const began = performance.now()
  await work()
  const seconds = (performance.now() - began) / 1_000
  stopping.abort()
  await probing
  const waits = probes.map(({ name, longestMs, count }) => `${name} ${Math.round(longestMs)} (of ${count})`)
  console.log(`| ${what} | ${seconds.toFixed(1)} | ${waits.join(', ')} |`)
}

/** What an API does to these tables, on rows that are not removed here. */
function probesOf(): Probe[] {
  const last = '(select id from tasks order by id desc limit 1)'
  const texts = {
    'read a task': `select * from tasks where id = ${last}`,
    'change a task': `update tasks set updated_at = now() where id = ${last}`,
    'change a turn': `update turns set attempt = attempt + 1 where task = ${last} and number = 1`,
    'store a message': `insert into messages (task, index, turn, attempt, author, content, metadata, status, created_at)
      select id, (select max(index) + 1 from messages where task = id), 1, 1, 'agent', '{}', '{}', 'complete', now() from ${last} as newest (id)`,
  }
  return Object.entries(texts).map(([name, text]) => ({ name, text, longestMs: 0, count: 0 }))
}

async function ask(url: string, probe: Probe, signal: AbortSignal): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query("select set_config('rivulet.tenant', '*', false)")
  while (!signal.aborted) {
    const began = performance.now()
    await client.query(probe.text)
    probe.longestMs = Math.max(probe.longestMs, performance.now() - began)
    probe.count += 1
    await sleep(pauseMs)
  }
  await client.end()
}
