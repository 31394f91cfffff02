/** Turns that keep the event loop of their worker busy, or block it for good: others go on, and the turn ends after its third death. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { metric } from '../support/platform/metrics.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import { watch } from '../support/viewers/viewer.ts'

/** Plain JavaScript, as a worker of the image loads it. */
const agents = `
import { pbkdf2Sync } from 'node:crypto'

const rest = ms => new Promise(resolve => setTimeout(resolve, ms))
const agent = (name, run) => ({ name, description: '', run })

export const talker = agent('talker', async function* () {
  yield say('begin')
  for (let i = 0; i < 60; i += 1) {
    await rest(50)
    yield say('.')
  }
})

export const busy = agent('busy', async turn => {
  await turn.send('before')
  const end = performance.now() + turn.params
  while (performance.now() < end);
  await turn.send('after')
})

export const spinner = agent('spinner', async turn => {
  await turn.send('before')
  await think()
})

const matcher = agent('matcher', async turn => {
  await turn.send('before')
  await rest(20)
  if (turn.attempt === 1) /(a+)+b/.test('a'.repeat(200))
})

export const caller = agent('caller', async turn => {
  await turn.send('before')
  await new Promise(resolve => setTimeout(() => {
    while (turn.attempt === 1);
    resolve()
  }, 20))
})

const hasher = agent('hasher', async turn => {
  await turn.send('before')
  await rest(20)
  if (turn.attempt === 1) pbkdf2Sync('a', 'b', 2 ** 31 - 1, 32, 'sha256')
})

async function think() {
  await rest(20)
  for (;;);
}

function say(text) {
  return { type: 'delta', index: 0, delta: { type: 'text', text } }
}
`

let folder: string
let platform: Platform
let env: Record<string, string>

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rivulet-agents-'))
  const file = join(folder, 'agents.mjs')
  writeFileSync(file, agents)
  env = { AGENT_FILES: file, WATCHDOG_MS: '1500' }
  platform = await startPlatform({ workers: 0, env: shortLease })
})
afterAll(async () => {
  await platform.close()
  rmSync(folder, { recursive: true, force: true })
})

test('a turn that keeps its process busy for longer than a lease keeps its lease, and so do the others', async () => {
  const worker = await platform.startWorker({ ...env, WATCHDOG_MS: '60000' })
  const talking = await startTalking()
  const { task } = await platform.client.createTask({ agent: 'busy', params: 6_000 })
  await platform.client.waitForTask(task.id, ({ turns: [turn] }) => turn?.status === 'running')
  const other = await platform.startWorker(env)
  expect((await platform.client.waitForEnd(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  expect((await platform.client.waitForEnd(talking.task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  await Promise.all([worker, other].map(each => each.kill('SIGTERM')))
})

test('a turn that blocks its worker counts a death, the others are given back, and the third death ends it', async () => {
  const blocked = await metric(platform.url, 'rivulet_turns_blocking_total')
  const deaths = await metric(platform.url, 'rivulet_worker_deaths_total')
  const first = await platform.startWorker(env)
  const talking = await startTalking()
  const { task } = await platform.client.createTask({ agent: 'spinner' })
  expect(await first.exited).toEqual({ code: 70, signal: null })
  const said = first.lines.find(({ msg }) => msg === 'the event loop was blocked; this process ends')
  expect(said).toMatchObject({ released: 1, stack: expect.stringMatching(/think \(.*agents\.mjs/) })

  const second = await platform.startWorker(env)
  expect(await second.exited).toEqual({ code: 70, signal: null })
  const third = await platform.startWorker(env)
  expect((await platform.client.waitForEnd(task.id)).turns).toMatchObject([
    { status: 'failed', attempt: 3, error: { code: 'worker_lost' } }, //
  ])
  expect((await platform.client.waitForEnd(talking.task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  expect(third.hasExited()).toBe(false)
  expect(await metric(platform.url, 'rivulet_turns_blocking_total')).toBe(blocked + 3)
  expect(await metric(platform.url, 'rivulet_worker_deaths_total')).toBe(deaths + 3)
  const reports = platform.apis.flatMap(({ lines }) => lines.filter(({ msg }) => msg === 'a turn blocked the event loop of its worker'))
  expect(reports).toMatchObject(Array(3).fill({ task: task.id, turn: 1, stack: expect.stringContaining('agents.mjs') }))
  expect(await deathsOf(talking.task.id)).toBe(0)
  for (const id of [task.id, talking.task.id]) expect(await faultsOf(platform, id)).toEqual([])
  expect(await faultsOfViewers(platform, [talking])).toEqual([])
  await third.kill('SIGTERM')
})

test('a turn that blocks in a regular expression is found, and its worker ends, also after a SIGTERM that it cannot receive', async () => {
  const first = await platform.startWorker(env)
  const talking = await startTalking()
  const { task } = await platform.client.createTask({ agent: 'matcher' })
  await platform.client.waitForTask(task.id, ({ turns: [turn] }) => turn?.status === 'running')
  expect(await first.kill('SIGTERM')).toEqual({ code: 70, signal: null })
  const second = await platform.startWorker(env)
  expect((await platform.client.waitForEnd(task.id)).turns).toMatchObject([{ status: 'completed', attempt: 2 }])
  expect((await platform.client.waitForEnd(talking.task.id)).turns).toMatchObject([{ status: 'completed', attempt: 1 }])
  await second.kill('SIGTERM')
})

test.each([
  ['in a callback', 'caller', { code: 70, signal: null }],
  ['in native code', 'hasher', { code: null, signal: 'SIGKILL' }],
])('a worker that is blocked %s does not say by which turn: each counts a death, and is tried again at once', async (_, agent, exit) => {
  const first = await platform.startWorker(env)
  const talking = await startTalking()
  const { task } = await platform.client.createTask({ agent })
  expect(await first.exited).toEqual(exit)
  const second = await platform.startWorker(env)
  for (const id of [task.id, talking.task.id]) {
    expect((await platform.client.waitForEnd(id)).turns).toMatchObject([{ status: 'completed', attempt: 2 }])
    expect(await deathsOf(id)).toBe(1)
    expect(await faultsOf(platform, id)).toEqual([])
  }
  await second.kill('SIGTERM')
})

/** A turn of a few seconds that has begun, and its viewer. */
async function startTalking() {
  const { task } = await platform.client.createTask({ agent: 'talker' })
  const viewer = watch(task.id, { urls: [platform.url] })
  await viewer.until('it has begun', ({ text }) => text() !== '')
  return { ...viewer, task }
}

async function deathsOf(task: string): Promise<number | undefined> {
  const { rows } = await platform.pg.query<{ deaths: number }>('select deaths from turns where task = $1', [task])
  return rows[0]?.deaths
}
