/**
 * What agents and the API find in their environment when the command line starts them. The secrets of the platform are canaries: each is looked
 * for in all that the agent can read there.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@rivulet/client'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { createTestDatabase, keyPrefix } from '../support/engines/database.ts'
import { freePort } from '../support/free-port.ts'
import { cli, plainEnvironment, runCli } from '../support/terminal.ts'
import { until } from '../support/until.ts'

const secrets = {
  RIVULET_KEY: 'canary-of-the-root-key',
  KEY_PEPPER: 'canary-of-the-pepper-with-32-characters',
  SECRETS_KEY: 'canary-of-the-key-of-secrets-with-32',
  PGPASSWORD: 'canary-of-the-database',
}
const ofAgents = { OPENAI_API_KEY: 'for-the-model', STRIPE_KEY: 'for-the-agent', AGENT_DATABASE_URL: 'postgres://an-agent' }

/** It says what it finds; with `die`, only in a process of the turn's own. */
const agent = (name: string) => `
  export default {
    name: '${name}',
    description: '',
    async *run(turn) {
      if (turn.params?.die && !process.env.RIVULET_ISOLATED_TURN) process.kill(process.pid, 'SIGKILL')
      yield { type: 'full', index: 0, content: { type: 'text', text: JSON.stringify(process.env), format: 'plain' } }
    },
  }`

type Variables = Record<string, string>

const folder = mkdtempSync(join(tmpdir(), 'rivulet-environment-'))
const dataDir = join(folder, 'data')
const started: ChildProcess[] = []
let environment: Variables
let url: string

beforeAll(async () => {
  for (const name of ['teller', 'other']) writeFileSync(join(folder, `${name}.ts`), agent(name))
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  environment = plainEnvironment({
    ...{ PORT: port, DATA_DIR: dataDir, LEASE_MS: '2500', HEARTBEAT_MS: '500', RECONCILE_MS: '500' },
    ...{ REDIS_URL: inject('redisUrl'), REDIS_PREFIX: keyPrefix().replace(/:$/, ''), DATABASE_URL: (await createTestDatabase()).url },
    ...secrets,
    ...ofAgents,
  })
  start('start')
  await until('the agent is there', () => hasWorker('teller'))
})
afterAll(async () => {
  for (const child of started.reverse()) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  rmSync(folder, { recursive: true, force: true })
})

test('an agent finds what is meant for it, and no secret of the platform', async () => {
  const found = await toldBy('teller')
  expectNoSecret(found)
  expect(found).toMatchObject({
    ...ofAgents,
    REDIS_URL: environment.REDIS_URL,
    RIVULET_URL: url,
    PATH: environment.PATH,
    HEARTBEAT_MS: '500',
  })
  expect(found.RIVULET_WORKER_KEY).toMatch(/^[\w-]{43}$/)
  // Theirs are settings of the API and of the command line.
  for (const name of ['LEASE_MS', 'PORT', 'DATA_DIR']) expect(found).not.toHaveProperty(name)
})

test('so it does in the process that a turn has to itself', async () => {
  const found = await toldBy('teller', { die: true })
  expect(found.RIVULET_ISOLATED_TURN).toBeTruthy()
  expectNoSecret(found)
  expect(found).toMatchObject(ofAgents)
})

test('so it does in another worker, which finds the key of workers in the note', async () => {
  start('worker', 'other')
  await until('the other agent is there', () => hasWorker('other'))
  const found = await toldBy('other')
  expectNoSecret(found)
  expect(found).toMatchObject(ofAgents)
  expect(found.RIVULET_WORKER_KEY).toBe((await toldBy('teller')).RIVULET_WORKER_KEY)
  expect(statSync(join(dataDir, 'running.json')).mode & 0o777).toBe(0o600)
})

test('a worker for a platform elsewhere gets neither the root key nor the key of the note, and says what it needs', async () => {
  const elsewhere = { ...environment, RIVULET_URL: 'http://127.0.0.1:1' }
  const { code, stderr } = await runCli(['worker', join(folder, 'other.ts')], { env: elsewhere })
  expect([code, stderr]).toEqual([1, expect.stringContaining('A worker does not get RIVULET_KEY, because its agents could read it')])
})

test.each([
  ['start', 'LEASE_MS', 'of this API process'],
  ['dev', 'LEASE_MS', 'of this API process'],
  ['start', 'WATCHDOG_MS', 'of this worker process'],
  ['worker', 'WATCHDOG_MS', 'of this worker process'],
])('%s with an invalid %s exits with 78 before it starts anything', async (command, name, whose) => {
  const elsewhere = { PORT: await freePort(), DATABASE_URL: '', DATA_DIR: join(folder, 'unused'), RIVULET_WORKER_KEY: 'a worker key' }
  const env = { ...environment, ...elsewhere, [name]: 'soon' }
  const { code, stdout, stderr } = await runCli([command, join(folder, 'other.ts')], { env })
  expect([code, stdout, stderr]).toEqual([78, '', `Invalid environment ${whose}:\n  ${name}: must be a number\n`])
  expect(readdirSync(folder)).not.toContain('unused')
})

test('a platform with keys rejects webhooks to this machine, because a proxy may pass on the requests of other machines', async () => {
  const webhooks = createClient({ url, key: secrets.RIVULET_KEY, maxRetries: 0 }).webhooks
  await expect(webhooks.create({ url: 'http://127.0.0.1:1/hook', events: ['turn.finished'] })).rejects.toMatchObject({
    code: 'validation_failed',
    details: [{ path: '/url', reason: expect.stringContaining('WEBHOOK_ALLOW_PRIVATE') }],
  })
})

test('the key of workers opens nothing else', async () => {
  const { RIVULET_WORKER_KEY: key } = await toldBy('teller')
  await expect(createClient({ url, key, maxRetries: 0 }).tasks.list()).rejects.toMatchObject({ code: 'forbidden' })
})

test.skipIf(process.platform !== 'linux')('the API does not have the key of the model', () => {
  const pid = readdirSync('/proc').find(name => /^\d+$/.test(name) && isApi(name))
  const found = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
  expect(found).toContain(`KEY_PEPPER=${secrets.KEY_PEPPER}`)
  expect(found.filter(text => text.includes(ofAgents.OPENAI_API_KEY))).toEqual([])
})

function start(command: 'start' | 'worker', name = 'teller'): void {
  const child = spawn(process.execPath, [cli, command, join(folder, `${name}.ts`)], {
    env: environment,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  started.push(child)
}

async function hasWorker(agent: string): Promise<boolean> {
  const agents = await createClient({ url, key: secrets.RIVULET_KEY, maxRetries: 0 })
    .agents.list()
    .catch(() => [])
  return agents.some(({ name, workers }) => name === agent && workers > 0)
}

async function toldBy(agent: string, params: { die?: boolean } = {}): Promise<Variables> {
  const task = await createClient({ url, key: secrets.RIVULET_KEY }).tasks.create({ agent, params })
  const { text } = await task.result()
  return JSON.parse(text)
}

function expectNoSecret(found: Variables): void {
  for (const name of [...Object.keys(secrets), 'DATABASE_URL']) expect(found).not.toHaveProperty(name)
  const canaries = [...Object.values(secrets), new URL(environment.DATABASE_URL ?? '').password]
  const leaks = Object.entries(found).filter(([, value]) => canaries.some(canary => value.includes(canary)))
  expect(leaks).toEqual([])
}

function isApi(pid: string): boolean {
  try {
    const isOurs = readFileSync(`/proc/${pid}/status`, 'utf8').includes(`PPid:\t${started[0]?.pid}\n`)
    return isOurs && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('dist/api.mjs')
  } catch {
    return false
  }
}
