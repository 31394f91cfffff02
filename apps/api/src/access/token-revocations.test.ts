/** Which tokens are revoked, against a real database. */
import { createTaskBody } from '@rivulet/contract/tasks'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openStore } from '../../test/open-store.ts'
import { beginTokenSession, forgetRevocations } from '../store/access/token-revocations.ts'
import type { DatabaseHandle } from '../store/connection/database.ts'
import { tokenRevocations } from '../store/schema.ts'
import { createTask } from '../store/tasks/accept/create-task.ts'
import { believedMs } from './key-check.ts'
import type { TokenClaims } from './token-claims.ts'
import { createTokenRevocations } from './token-revocations.ts'

let store: DatabaseHandle
beforeAll(async () => {
  store = await openStore()
})
afterAll(() => store.close())

async function newTask(tenant = 'acme'): Promise<string> {
  const request = createTaskBody.parse({ agent: 'echo' })
  return (await store.databaseFor(tenant).transaction(tx => createTask(tx, tenant, request, 10))).task.id
}

async function begin(task: string, subject: string | null = null, tenant = 'acme'): Promise<TokenClaims> {
  const startedAt = await beginTokenSession(store.databaseFor(tenant), { tenant }, task)
  return { tenant, task, subject, startedAt, session: '', can: ['read'], key: 'k', issuedAt: 0, expiresAt: 0, endsAt: 0 }
}

const unaudited = async () => {}
const acme = { tenant: 'acme' }

test('a revocation counts for sessions that began before it: of one subject, or of all', async () => {
  const revocations = createTokenRevocations(store)
  const [task, other] = [await newTask(), await newTask()]
  const [anna, ben, nameless, elsewhere] = await Promise.all([
    ...[begin(task, 'anna'), begin(task, 'ben'), begin(task), begin(other, 'anna')],
  ])
  const all = [anna, ben, nameless, elsewhere].flatMap(claims => claims ?? [])
  const states = async () => [await Promise.all(all.map(revocations.isRevoked)), all.map(claims => among.has(claims))]
  let among = await revocations.revokedAmong(all)
  expect(await states()).toEqual(Array(2).fill([false, false, false, false]))
  await revocations.revoke(acme, { task, subject: 'anna' }, unaudited)
  among = await revocations.revokedAmong(all)
  expect(await states()).toEqual(Array(2).fill([true, false, false, false]))
  const later = await begin(task, 'anna')
  expect(await revocations.isRevoked(later)).toBe(false)
  await revocations.revoke(acme, { task, subject: null }, unaudited)
  among = await revocations.revokedAmong(all)
  expect(await states()).toEqual(Array(2).fill([true, true, true, false]))
  expect(await revocations.isRevoked(later)).toBe(true)
})

test('a task of another tenant can neither be revoked nor have a token', async () => {
  const { revoke } = createTokenRevocations(store)
  const task = await newTask('rival')
  await expect(revoke(acme, { task, subject: null }, unaudited)).rejects.toMatchObject({ code: 'task_not_found' })
  await expect(begin(task)).rejects.toMatchObject({ code: 'task_not_found' })
})

test('Postgres is asked once for all holders that come at once, and again after a while', async () => {
  const { isRevoked } = createTokenRevocations(store)
  const { revoke } = createTokenRevocations(store)
  const task = await newTask()
  const tokens = await Promise.all(Array.from({ length: 30 }, (_, i) => begin(task, `subject ${i % 3}`)))
  const asked = vi.spyOn(store.pool, 'connect')
  await Promise.all(tokens.map(isRevoked))
  expect(asked.mock.calls.length).toBe(1)
  await revoke(acme, { task, subject: null }, unaudited)
  expect(await Promise.all(tokens.map(isRevoked))).toEqual(Array(30).fill(false))
  const now = performance.now()
  vi.spyOn(performance, 'now').mockImplementation(() => now + believedMs + 1)
  await expect.poll(async () => (await Promise.all(tokens.map(isRevoked))).every(is => is)).toBe(true)
  vi.restoreAllMocks()
})

test('what could not be asked is asked again', async () => {
  const { isRevoked } = createTokenRevocations(store)
  const token = await begin(await newTask())
  vi.spyOn(store.pool, 'connect').mockRejectedValueOnce(new Error('away') as never)
  await expect(isRevoked(token)).rejects.toThrow()
  expect(await isRevoked(token)).toBe(false)
  vi.restoreAllMocks()
})

test('revocations are removed when no token that they are about can live any more', async () => {
  const { revoke } = createTokenRevocations(store)
  const [old, young] = [await newTask(), await newTask()]
  for (const task of [old, young]) await revoke(acme, { task, subject: 'anna' }, unaudited)
  await store.db.execute(`update token_revocations set revoked_at = now() - interval '121 minutes' where task = '${old}'`)
  await store.db.execute(`update token_revocations set revoked_at = now() - interval '61 minutes' where task = '${young}'`)
  await forgetRevocations(store.db)
  const left = (await store.db.select().from(tokenRevocations)).map(({ task }) => task)
  expect([left.includes(old), left.includes(young)]).toEqual([false, true])
})
