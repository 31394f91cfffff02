/** An API and a worker that reach Redis by Sentinels, over TLS, with a login of the servers and the one of the Sentinels in docs/security.md. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createCertificate, hasOpenssl } from '../support/engines/certificate.ts'
import { hasNativeRedis } from '../support/engines/redis/private-redis.ts'
import { documentedSentinelLogin, refusalsIn } from '../support/engines/redis/redis-logins.ts'
import { startRedisSentinels } from '../support/engines/redis/redis-sentinels.ts'
import { withPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const isPossible = hasNativeRedis && hasOpenssl
const reason = isPossible ? '' : ' (skipped: no redis-server or no openssl on PATH)'

test.skipIf(!isPossible)(`turns run before and after a failover, and a Sentinel refuses nothing of that${reason}`, async () => {
  const { name: sentinelUsername, password: sentinelPassword, rules: sentinelRules } = documentedSentinelLogin()
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-sentinels-'))
  const certificate = createCertificate(folder)
  const login = { username: 'rivulet', password: 'of-servers', sentinelUsername, sentinelPassword, sentinelRules }
  const redis = await startRedisSentinels({ folder, downAfterMs: 3_000, login, certificate })
  onTestFinished(async () => {
    await redis.close()
    rmSync(folder, { recursive: true, force: true })
  })
  await withPlatform({ workers: 0 }, async platform => {
    const trusting = { REDIS_URL: redis.url, NODE_EXTRA_CA_CERTS: certificate.path }
    const api = await platform.startApi({ env: trusting })
    await platform.startWorker({ ...trusting, RIVULET_URL: api.url, RIVULET_TRANSPORT: 'redis' })
    const client = platform.clientOf(api)
    const run = async () => (await client.finishedTask({ agent: 'echo', input: 'hello' })).task.status
    expect(await run()).toBe('completed')
    const old = await redis.master()
    await old.kill()
    await until('a replica has taken over', async () => (await redis.master()) !== old)
    expect(await run()).toBe('completed')
    const refused = await Promise.all(redis.sentinels.map(async sentinel => refusalsIn(await sentinel.client.call('ACL', 'LOG'))))
    expect(refused.flat()).toEqual([])

    const REDIS_URL = redis.url.replace(sentinelPassword, 'guess')
    const stranger = await platform.startApi({ env: { ...trusting, REDIS_URL, LOG_LEVEL: 'debug' }, untilReady: false })
    const why = /No Sentinel knows the master main: 127\.0\.0\.1:\d+: WRONGPASS/
    await until('it logs why it has no Redis', () => why.test(JSON.stringify(stranger.lines)))
    expect(JSON.stringify(stranger.lines)).not.toMatch(/guess|of-servers/)
    expect((await fetch(`${stranger.url}/readyz`)).status).toBe(503)
  })
})
