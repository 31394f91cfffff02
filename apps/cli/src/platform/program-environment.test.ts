import { variables as ofWorker } from '@rivulet/agents/config'
import { variables as ofApi } from '@rivulet/api/config'
import { expect, test } from 'vitest'
import { variables as ofCommandLine } from '../config.ts'
import { environmentFor, requireValidEnvironment } from './program-environment.ts'

const everything = Object.fromEntries(
  [ofApi, ofWorker, ofCommandLine].flatMap(({ shape }) => Object.keys(shape)).map(name => [name, `value of ${name}`]),
)

test.each([
  ['api', ofApi],
  ['worker', ofWorker],
] as const)('of our variables, the %s gets those that it declares, and no other', (program, { shape }) => {
  expect(Object.keys(environmentFor(program, everything)).sort()).toEqual(Object.keys(shape).sort())
})

test('a worker gets no secret of the platform, and an API none of the agents', () => {
  for (const name of ['KEY_PEPPER', 'RIVULET_KEY', 'DATABASE_URL', 'PORT', 'DATA_DIR'])
    expect(environmentFor('worker', everything)).not.toHaveProperty(name)
  expect(environmentFor('api', everything)).not.toHaveProperty('OPENAI_API_KEY')
  expect(environmentFor('worker', { ...everything, RIVULET_TRANSPORT: 'http' })).not.toHaveProperty('REDIS_URL')
})

test("the user's own variables reach both, and what Postgres' clients log in by the API alone", () => {
  const own = { PATH: '/bin', HOME: '/home/ada', NODE_OPTIONS: '--import ./tracing.mjs', STRIPE_KEY: 'sk', PGVECTOR_URL: 'x' }
  const login = { PGPASSWORD: 'secret', PGUSER: 'rivulet', PGSSLMODE: 'require' }
  expect(environmentFor('worker', { ...own, ...login })).toEqual(own)
  expect(environmentFor('api', { ...own, ...login })).toEqual({ ...own, ...login })
})

test('an invalid variable is reported by the program that reads it, before engines have URLs', () => {
  const environment = { LEASE_MS: 'soon', WORKER_CONCURRENCY: '0', REDIS_URL: '' }
  expect(() => requireValidEnvironment('api', environment)).toThrow(
    'Invalid environment of this API process:\n  LEASE_MS: must be a number',
  )
  expect(() => requireValidEnvironment('worker', environment)).toThrow(
    /^Invalid environment of this worker process:\n {2}WORKER_CONCURRENCY: /,
  )
  for (const program of ['api', 'worker'] as const) requireValidEnvironment(program, {})
})
