/** An API and a worker that reach Redis by Sentinels, over TLS, with the logins in docs/security.md. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { whyNoTlsServers } from '../support/engines/redis/private-redis.ts'
import { documentedLogin, documentedSentinelLogin, refusalsIn } from '../support/engines/redis/redis-logins.ts'
import { startRedisSentinels } from '../support/engines/redis/redis-sentinels.ts'
import { withPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const reason = whyNoTlsServers ? ` (skipped: ${whyNoTlsServers})` : ''

test.skipIf(whyNoTlsServers)(`turns run before and after a failover, and nothing of that is refused${reason}`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-sentinels-'))
  const redis = await startRedisSentinels({ folder, downAfterMs: 3_000, isSecure: true })
  onTestFinished(async () => {
    await redis.close()
    rmSync(folder, { recursive: true, force: true })
  })
  await withPlatform({ workers: 0 }, async platform => {
    const api = await platform.startApi({ env: { ...redis.env, REDIS_URL: redis.urls.api } })
    await platform.startWorker({ ...redis.env, REDIS_URL: redis.urls.worker, RIVULET_URL: api.url, RIVULET_TRANSPORT: 'redis' })
    const client = platform.clientOf(api)
    const run = async () => (await client.finishedTask({ agent: 'echo', input: 'hello' })).task.status
    expect(await run()).toBe('completed')
    const old = await redis.master()
    await old.kill()
    await until('a replica has taken over', async () => (await redis.master()) !== old)
    expect(await run()).toBe('completed')
    const alive = [...redis.sentinels, ...redis.servers.filter(server => server !== old)]
    const refused = await Promise.all(alive.map(async ({ client }) => refusalsIn(await client.call('ACL', 'LOG'))))
    expect(refused.flat()).toEqual([])

    const REDIS_URL = redis.urls.api.replace(documentedSentinelLogin().password, 'guess')
    const stranger = await platform.startApi({ env: { ...redis.env, REDIS_URL, LOG_LEVEL: 'debug' }, untilReady: false })
    const why = /No Sentinel knows the master main: 127\.0\.0\.1:\d+: WRONGPASS/
    await until('it logs why it has no Redis', () => why.test(JSON.stringify(stranger.lines)))
    expect(JSON.stringify(stranger.lines)).not.toMatch(new RegExp(`guess|${documentedLogin('api').password}`))
    expect((await fetch(`${stranger.url}/readyz`)).status).toBe(503)
  })
})
