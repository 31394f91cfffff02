/** Connections to Postgres itself, two that share a session, and those of PgBouncer if it is installed. */
import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { freePort } from '../../../../../test/support/free-port.ts'
import { until } from '../../../../../test/support/until.ts'
import { whySessionsAreUnfit } from './session-fitness.ts'

const hasPgBouncer = canRun('pgbouncer')

test('connections to Postgres are sessions', async () => {
  expect(await whySessionsAreUnfit(openPool(inject('postgresUrl')))).toBeNull()
})

test('two connections that share a session are refused, with the setting to change', async () => {
  const session = await openPool(inject('postgresUrl')).connect()
  onTestFinished(() => session.release())
  const shared = { query: (text: string, values?: unknown[]) => session.query(text, values), release() {} }
  expect(await whySessionsAreUnfit({ connect: async () => shared } as unknown as pg.Pool)).toMatch(/pool_mode = session/)
})

test.skipIf(!hasPgBouncer).each([
  ['session', true],
  ['transaction', false],
])(`connections through PgBouncer in %s mode are fit: %s${hasPgBouncer ? '' : ' (skipped: no pgbouncer on PATH)'}`, async (mode, isFit) => {
  const pool = openPool(await startPgBouncer(mode))
  await until('it responds', () => pool.query('select').then(Boolean, () => false))
  expect((await whySessionsAreUnfit(pool)) === null).toBe(isFit)
})

function openPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {})
  onTestFinished(() => pool.end())
  return pool
}

async function startPgBouncer(mode: string): Promise<string> {
  const { hostname, port: target, username, password, pathname } = new URL(inject('postgresUrl'))
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-pgbouncer-'))
  chmodSync(folder, 0o755)
  const port = await freePort()
  const settings = {
    ...{ listen_addr: '127.0.0.1', listen_port: port, unix_socket_dir: '', auth_type: 'any', pool_mode: mode, default_pool_size: 4 },
    // It refuses to run as root.
    ...(userInfo().uid === 0 && { user: 'daemon' }),
  }
  const database = `* = host=${hostname} port=${target} dbname=${pathname.slice(1)} user=${username} password=${decodeURIComponent(password)}`
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  writeFileSync(join(folder, 'pgbouncer.ini'), ['[databases]', database, '[pgbouncer]', ...lines, ''].join('\n'))
  const server = spawn('pgbouncer', ['-q', join(folder, 'pgbouncer.ini')], { stdio: 'ignore' })
  onTestFinished(() => {
    server.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  })
  return `postgres://anyone@127.0.0.1:${port}${pathname}`
}

function canRun(program: string): boolean {
  try {
    return execFileSync(program, ['--version'], { stdio: ['ignore', 'pipe', 'ignore'] }).length > 0
  } catch {
    return false
  }
}
