/** Postgres on a disk that is full: callers hear 503, nothing is half stored, and everything goes on when there is room. Needs to mount. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '@rivulet/api/migrate'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { startPlatform } from '../../support/platform/platform.ts'
import type { Accepted, ErrorReply } from '../../support/platform/platform-client.ts'
import { until } from '../../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'rivulet-disk-'))
const isMounted = mount('size=30m')
if (!isMounted) console.log('Nothing can be mounted here: the full disk is left out')

test.skipIf(!isMounted)('the disk of Postgres is full', { timeout: 180_000 }, async () => {
  const url = await createSmallDatabase()
  const platform = await startPlatform({ apis: 0, workers: 0, env: { DATABASE_URL: url } })
  onTestFinished(() => platform.close())
  const api = await platform.startApi()
  await platform.startWorker({ RIVULET_URL: api.url })
  const client = platform.clientOf(api)
  await client.finishedTask({ agent: 'echo', input: 'before' })
  const accepted: string[] = []
  const refused = await until('a task is refused', async () => {
    const body = { agent: 'echo', input: randomBytes(700_000).toString('base64') }
    const reply = await client.post<ErrorReply & Accepted>('/v1/tasks', body)
    if (reply.status !== 201) return reply
    accepted.push(reply.body.task.id)
    return null
  })
  expect([refused.status, refused.body.error.code]).toEqual([503, 'dependency_unavailable'])
  expect((await client.get('/healthz')).status).toBe(200)
  expect(mount('remount,size=300m')).toBe(true)
  await until('a task is taken again', async () => (await client.post('/v1/tasks', { agent: 'echo', input: 'after' })).status === 201)
  for (const task of accepted) expect((await client.waitForEnd(task, { timeoutMs: 60_000 })).turns).toMatchObject([{ status: 'completed' }])
})

/** A database whose tables, and nothing else, are on the small disk. */
async function createSmallDatabase(): Promise<string> {
  const admin = new pg.Client({ connectionString: inject('postgresUrl') })
  await admin.connect()
  const { rows } = await admin.query<{ data_directory: string }>('show data_directory')
  const { uid, gid } = statSync(rows[0]?.data_directory ?? '')
  chownSync(folder, uid, gid)
  await admin.query(`create tablespace small location '${folder}'`)
  await admin.query('create database small tablespace small')
  onTestFinished(async () => {
    await admin.query('drop database small with (force)')
    await admin.query('drop tablespace small')
    await admin.end()
    execFileSync('umount', [folder])
    rmSync(folder, { recursive: true })
  })
  const url = Object.assign(new URL(inject('postgresUrl')), { pathname: '/small' }).toString()
  await migrate(url)
  return url
}

function mount(options: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder], { stdio: 'ignore' })
    return true
  } catch {
    rmSync(folder, { recursive: true, force: true })
    return false
  }
}
