import { fileURLToPath } from 'node:url'
import { defaultLimits, type Limits, limitNames } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { readConfig, readDatabaseUrl } from './config.ts'

const needed = { REDIS_URL: 'redis://127.0.0.1', DATABASE_URL: 'postgres://127.0.0.1/db' }

test('what is not set has its default', () => {
  expect(readConfig(needed)).toMatchObject({
    ...{ host: '127.0.0.1', port: 4000, migrate: true, redisPrefix: 'rivulet', logLevel: 'info' },
    ...{ leaseMs: 30_000, reconcileMs: 5_000, logRetentionMs: 600_000 },
    ...{ key: undefined, workerKey: undefined },
  })
})

test('ended tasks stay, unless it is said for how many days', () => {
  expect(readConfig(needed).taskRetentionMs).toBeNull()
  expect(readConfig({ ...needed, TASK_RETENTION_DAYS: '0.5' }).taskRetentionMs).toBe(43_200_000)
  for (const wrong of ['0', '-1', 'soon'])
    expect(() => readConfig({ ...needed, TASK_RETENTION_DAYS: wrong })).toThrow(/TASK_RETENTION_DAYS/)
})

test('localhost is one address, so that every listener has our limits', () => {
  const { host, internal } = readConfig({ ...needed, HOST: 'localhost', INTERNAL_PORT: '4001' })
  expect([host, internal?.host]).toEqual(['127.0.0.1', '127.0.0.1'])
})

test('an empty key is no key, and a set one is kept', () => {
  expect(readConfig({ ...needed, RIVULET_KEY: '', RIVULET_WORKER_KEY: 'secret' })).toMatchObject({ key: undefined, workerKey: 'secret' })
})

test('everything that is wrong is said in one list, without the values', () => {
  const wrong = () => readConfig({ REDIS_URL: 'http://secret', PORT: '70000', LEASE_MS: '-1', MIGRATE: 'maybe' })
  expect(wrong).toThrow(/PORT.*\n.*REDIS_URL.*\n.*DATABASE_URL.*\n.*MIGRATE.*\n.*LEASE_MS/)
  expect(wrong).not.toThrow(/secret/)
})

describe('who may call', () => {
  const anywhere = { ...needed, HOST: '0.0.0.0' }
  const long = 'x'.repeat(32)

  test.each(['127.0.0.1', '127.8.8.8', '::1', 'localhost'])('%s needs no key', host => {
    expect(readConfig({ ...needed, HOST: host })).toMatchObject({ isOpen: true, isInternalOpen: true })
  })

  test.each(['0.0.0.0', '::', '192.168.1.5', '127.0.0.1.example.com', 'example.com'])(
    '%s is refused without one, and told how to make it',
    host => {
      expect(() => readConfig({ ...needed, HOST: host })).toThrow(/HOST.*RIVULET_KEY.*rivulet keys create/)
      expect(() => readConfig({ ...needed, HOST: host, RIVULET_WORKER_KEY: long })).toThrow(/HOST/)
      expect(readConfig({ ...needed, HOST: host, RIVULET_KEY: long })).toMatchObject({ isOpen: false, isInternalOpen: false })
      expect(readConfig({ ...needed, HOST: host, KEY_PEPPER: long })).toMatchObject({ isOpen: false, isInternalOpen: false })
    },
  )

  test('an old pepper without a current one is rejected, because such an API would require no key', () => {
    expect(() => readConfig({ ...needed, KEY_PEPPER_OLD: long })).toThrow(/KEY_PEPPER: is required/)
    expect(readConfig({ ...needed, KEY_PEPPER: long, KEY_PEPPER_OLD: long }).oldPepper).toBe(long)
  })

  test('a listener of workers that others reach needs a key, too', () => {
    expect(() => readConfig({ ...needed, INTERNAL_HOST: '0.0.0.0', INTERNAL_PORT: '4001' })).toThrow(/INTERNAL_HOST.*RIVULET_WORKER_KEY/)
    expect(readConfig({ ...needed, INTERNAL_HOST: '0.0.0.0', INTERNAL_PORT: '4001', RIVULET_WORKER_KEY: long })).toMatchObject({
      ...{ isOpen: true, isInternalOpen: false, internal: { host: '0.0.0.0', port: 4001 } },
    })
  })

  test('a key that can be guessed is one for this machine only', () => {
    expect(readConfig({ ...needed, RIVULET_KEY: 'short' })).toMatchObject({ key: 'short' })
    expect(() => readConfig({ ...anywhere, RIVULET_KEY: 'short' })).toThrow(/RIVULET_KEY.*16/)
    expect(() => readConfig({ ...needed, KEY_PEPPER: 'short' })).toThrow(/KEY_PEPPER.*32/)
  })
})

describe('an engine on another machine', () => {
  const remote = { REDIS_URL: 'redis://:secret@cache.example:6379', DATABASE_URL: 'postgres://me:secret@db.example/app' }

  test('is rejected without TLS, by an error that says how to change that and repeats no password', () => {
    const reading = () => readConfig(remote)
    expect(reading).toThrow(/REDIS_URL: .*rediss:.*ALLOW_PLAINTEXT=on[\s\S]*DATABASE_URL: .*sslmode=verify-full/)
    expect(reading).not.toThrow(/secret/)
    expect(readConfig({ ...remote, ALLOW_PLAINTEXT: 'on' }).redisUrl).toBe(remote.REDIS_URL)
    expect(() => readDatabaseUrl(remote)).toThrow(/DATABASE_URL: .*without TLS/)
  })

  test.each([
    ['redis://10.0.0.1:6379,10.0.0.2:6379', 'postgres://127.0.0.1/app', false],
    ['redis://127.0.0.1:6379,10.0.0.2:6379', 'postgres://127.0.0.1/app', false],
    ['redis+sentinel://10.0.0.1,10.0.0.2/main', 'postgres://127.0.0.1/app', false],
    ['redis://127.0.0.1', 'postgres://db/app?sslmode=disable', false],
    ['redis://127.0.0.1', 'postgres://db/app?sslmode=prefer', false],
    ['redis://127.0.0.1', 'postgres://127.0.0.1/app?host=db', false],
    ['rediss://10.0.0.1:6379,10.0.0.2:6379', 'postgres://db/app?sslmode=require', true],
    ['rediss+sentinel://10.0.0.1,10.0.0.2/main', 'postgres://127.0.0.1/app', true],
    ['redis+sentinel://localhost,127.0.0.1:26380/main', 'postgres://127.0.0.1/app', true],
    ['rediss://cache', 'postgres://db/app?application_name=a&sslmode=verify-full', true],
    ['redis://localhost:6379', 'postgres:///app?host=/var/run/postgresql', true],
    ['redis://[::1]:6379', 'postgresql://me:a@localhost/app', true],
    ['redis://127.0.0.1', 'postgres://%2Fvar%2Frun/app', true],
  ])('%s and %s', (REDIS_URL, DATABASE_URL, isAllowed) => {
    const reading = () => readConfig({ REDIS_URL, DATABASE_URL })
    if (isAllowed) expect(reading).not.toThrow()
    else expect(reading).toThrow(/without TLS/)
  })
})

test('origins are a list without a wildcard, and each limit has its name', () => {
  expect(readConfig({ ...needed, CORS_ORIGINS: 'https://a.example, http://127.0.0.1:5173' }).origins).toEqual(
    new Set(['https://a.example', 'http://127.0.0.1:5173']),
  )
  for (const wrong of ['*', 'https://a.example/', 'a.example'])
    expect(() => readConfig({ ...needed, CORS_ORIGINS: wrong })).toThrow(/CORS_ORIGINS/)
  const limits = {
    ...{ RATE_LIMIT_PER_SECOND: '5', RATE_LIMIT_BURST: '6', MAX_STREAMS_PER_KEY: '7', MAX_STREAMS: '8' },
    ...{ MAX_STREAMS_PER_TOKEN: '11', MAX_STREAMS_PER_TASK: '12', MAX_STREAMS_PER_TENANT: '16' },
    ...{ RATE_LIMIT_TENANT_PER_SECOND: '14', RATE_LIMIT_TENANT_BURST: '15' },
    ...{ MAX_QUEUED_TURNS: '9', MAX_TURNS_PER_TENANT: '10', MAX_KEYS_PER_TENANT: '13', MAX_REDIS_MEMORY_PERCENT: '50' },
  }
  expect(readConfig({ ...needed, ...limits })).toMatchObject({
    rateLimits: { key: { perSecond: 5, burst: 6 }, tenant: { perSecond: 14, burst: 15 } },
    streamLimits: { perToken: 11, perTask: 12, perKey: 7, perTenant: 16, perProcess: 8 },
    maxKeysPerTenant: 13,
    capacityLimits: { queuedTurns: 9, turnsPerTenant: 10, redisMemory: 0.5 },
  })
})

test('hosts are a list of names, in any case', () => {
  expect(readConfig(needed).allowedHosts).toEqual(new Set())
  expect(readConfig({ ...needed, ALLOWED_HOSTS: 'API.example.com, rivulet_api' }).allowedHosts).toEqual(
    new Set(['api.example.com', 'rivulet_api']),
  )
  for (const wrong of ['*', '*.example.com', 'https://a.example', 'a.example:4000', 'a.example/', 'a..example'])
    expect(() => readConfig({ ...needed, ALLOWED_HOSTS: wrong })).toThrow(/ALLOWED_HOSTS/)
})

test('streams leave room for other connections', () => {
  expect(readConfig(needed).maxConnections).toBe(25_000)
  expect(readConfig({ ...needed, MAX_STREAMS: '4', MAX_CONNECTIONS: '5' }).maxConnections).toBe(5)
  for (const wrong of [{ MAX_STREAMS: '25000' }, { MAX_CONNECTIONS: '20000' }])
    expect(() => readConfig({ ...needed, ...wrong })).toThrow(/MAX_CONNECTIONS.*more than MAX_STREAMS/)
})

test('every limit of the contract is set by the variable that its error names, and one that nothing could live with is refused', () => {
  expect(readConfig(needed).limits).toEqual(defaultLimits)
  for (const [limit, name] of Object.entries(limitNames)) {
    const given = defaultLimits[limit as keyof Limits] + 1
    expect(readConfig({ ...needed, [name]: String(given) }).limits).toEqual({ ...defaultLimits, [limit]: given })
    for (const wrong of ['0', '1.5', 'many']) expect(() => readConfig({ ...needed, [name]: wrong })).toThrow(name)
  }
})

test('a certificate for the port of workers needs its key and that port, and its file must be there', () => {
  const [file, port] = [fileURLToPath(import.meta.url), { INTERNAL_PORT: '4001' }]
  const [INTERNAL_TLS_CERT, INTERNAL_TLS_KEY] = [file, file]
  expect(readConfig({ ...needed, ...port }).internalTls).toBeNull()
  expect(readConfig({ ...needed, ...port, INTERNAL_TLS_CERT, INTERNAL_TLS_KEY }).internalTls?.key).toContain('needs its key')
  expect(() => readConfig({ ...needed, ...port, INTERNAL_TLS_CERT })).toThrow(/INTERNAL_TLS_KEY: is required/)
  expect(() => readConfig({ ...needed, ...port, INTERNAL_TLS_KEY })).toThrow(/INTERNAL_TLS_CERT: is required/)
  expect(() => readConfig({ ...needed, INTERNAL_TLS_CERT, INTERNAL_TLS_KEY })).toThrow(/INTERNAL_PORT: is required/)
  const missing = { INTERNAL_TLS_CERT: `${file}.none`, INTERNAL_TLS_KEY }
  expect(() => readConfig({ ...needed, ...port, ...missing })).toThrow(/INTERNAL_TLS_CERT: must be the path of a file/)
})
