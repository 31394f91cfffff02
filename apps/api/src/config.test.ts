import { expect, test } from 'vitest'
import { readConfig } from './config.ts'

const needed = { REDIS_URL: 'redis://here', DATABASE_URL: 'postgres://here/db' }

test('what is not set has its default', () => {
  expect(readConfig(needed)).toMatchObject({
    ...{ host: '127.0.0.1', port: 4000, migrate: true, redisPrefix: 'rivulet', logLevel: 'info' },
    ...{ leaseMs: 30_000, reconcileMs: 5_000, logRetentionMs: 600_000 },
    ...{ key: undefined, workerKey: undefined },
  })
})

test('an empty key is no key, and a set one is kept', () => {
  expect(readConfig({ ...needed, RIVULET_KEY: '', RIVULET_WORKER_KEY: 'secret' })).toMatchObject({ key: undefined, workerKey: 'secret' })
})

test('everything that is wrong is said in one list, without the values', () => {
  const wrong = () => readConfig({ REDIS_URL: 'http://secret', PORT: '70000', LEASE_MS: '-1', MIGRATE: 'maybe' })
  expect(wrong).toThrow(/PORT.*\n.*REDIS_URL.*\n.*DATABASE_URL.*\n.*MIGRATE.*\n.*LEASE_MS/)
  expect(wrong).not.toThrow(/secret/)
})
