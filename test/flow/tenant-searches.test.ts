/** Many searches of one tenant at once, over tasks with large metadata: they wait for that tenant's share, and the calls of another tenant go on. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestKeyring, pepper, type TestKeyring } from '../support/platform/keyring.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test', KEY_PEPPER: pepper }
const later = { agent: 'echo', input: 'x', delayMs: 3_600_000 }

let platform: Platform
let keyring: TestKeyring

beforeAll(async () => {
  platform = await startPlatform({ env })
  keyring = openTestKeyring(platform.databaseUrl)
})
afterAll(async () => {
  await keyring.close()
  await platform.close()
})

async function callerOf(tenant: string) {
  const { key } = await keyring.create({ tenant, scopes: ['tasks:read', 'tasks:write'] })
  return async (path: string, body?: object): Promise<number> => {
    const headers = { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) }
    const init = body ? { method: 'POST', body: JSON.stringify(body) } : {}
    const response = await fetch(`${platform.url}${path}`, { ...init, headers })
    await response.arrayBuffer()
    return response.status
  }
}

test('80 searches over 70 tasks with large metadata make no call of another tenant fail', async () => {
  const [searching, other] = [await callerOf('searching'), await callerOf('other')]
  const metadata = { text: 'lorem ipsum '.repeat(15_000) }
  for (let i = 0; i < 70; i += 1) expect(await searching('/v1/tasks', { ...later, metadata })).toBe(201)
  const paths = ['/v1/tasks?metadata.text=nowhere', '/v1/tasks?q=nowhere']
  let open = 80
  const searches = Array.from({ length: open }, (_, i) => searching(paths[i % 2] ?? '').finally(() => (open -= 1)))
  const statuses: number[] = []
  const calls = [() => other('/v1/tasks', later), () => other('/v1/tasks?limit=10'), () => other('/v1/waits')]
  while (open > 0) for (const call of calls) statuses.push(await call())
  expect(new Set(statuses)).toEqual(new Set([201, 200]))
  for (const status of await Promise.all(searches)) expect([200, 503]).toContain(status)
})
