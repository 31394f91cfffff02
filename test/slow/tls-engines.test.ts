/** An API and a worker that reach Redis and Postgres over TLS, and reject a certificate that they do not trust. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createCertificate, hasOpenssl } from '../support/engines/certificate.ts'
import { startTlsProxy } from '../support/engines/tls-proxy.ts'
import { withPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

test('a task runs over TLS to both engines, and not with a certificate that is not trusted', async context => {
  if (!hasOpenssl) return context.skip('no openssl')
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-tls-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const certificate = createCertificate(folder)
  await withPlatform({ workers: 0 }, async platform => {
    const REDIS_URL = await startTlsProxy('redis', inject('redisUrl'), certificate)
    const DATABASE_URL = await startTlsProxy('postgres', platform.databaseUrl, certificate)
    const trusting = { REDIS_URL, DATABASE_URL, NODE_EXTRA_CA_CERTS: certificate.path }
    const api = await platform.startApi({ env: trusting })
    await platform.startWorker({ ...trusting, RIVULET_URL: api.url })
    const client = platform.clientOf(api)
    const { body } = await client.post<{ task: { id: string } }>('/v1/tasks', { agent: 'echo', input: 'hello' })
    expect((await client.waitForEnd(body.task.id)).task.status).toBe('completed')
    const doubting = await platform.startApi({ env: { REDIS_URL, DATABASE_URL }, untilReady: false })
    await until('it has tried', () => doubting.lines.some(({ msg }) => msg === 'could not prepare the schema; retrying'))
    expect((await fetch(`${doubting.url}/readyz`)).status).toBe(503)
    expect(JSON.stringify(doubting.lines)).toMatch(/self.signed certificate/)
  })
})
