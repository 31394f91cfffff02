/** `npm start` runs bundles: the API, the worker, and the process of a turn that has killed its workers. TypeScript is loaded for the user's files alone. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient } from '@rivulet/client'
import { afterAll, afterEach, expect, inject, test } from 'vitest'
import { createTestDatabase, keyPrefix } from '../support/engines/database.ts'
import { freePort } from '../support/free-port.ts'
import { plainEnvironment } from '../support/terminal.ts'
import { until } from '../support/until.ts'

const checkout = fileURLToPath(new URL('../../', import.meta.url))

/** It says how its process was started; with `die`, only in a process of the turn's own. */
const agent = `
  export default {
    name: 'teller',
    description: '',
    async *run(turn) {
      const { argv, execArgv, env } = process
      if (turn.params?.die && !env.RIVULET_ISOLATED_TURN) process.kill(process.pid, 'SIGKILL')
      const text = JSON.stringify({ program: argv[1], flags: execArgv, parent: process.ppid, isAlone: Boolean(env.RIVULET_ISOLATED_TURN) })
      yield { type: 'full', index: 0, content: { type: 'text', text, format: 'plain' } }
    },
  }`

type Started = { program: string; flags: string[]; parent: number; isAlone: boolean }

const folder = mkdtempSync(join(tmpdir(), 'rivulet-start-bundle-'))
let npm: ChildProcess
let url: string

afterEach(async () => {
  process.kill(-(npm.pid ?? 0), 'SIGINT')
  await once(npm, 'close')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('API, worker and the process of one turn are started from a bundle that has no failpoint', async () => {
  await startPlatform('teller.mjs')
  const worker = await toldBy({})
  expect(worker).toMatchObject({
    flags: [],
    isAlone: false,
    program: expect.stringMatching(/\/dist\/start\/[0-9a-f]{16}\/dist\/worker\.mjs$/),
  })
  const api = worker.program.replace('worker.mjs', 'api.mjs')
  expect(childrenOf(worker.parent)).toContain(`${process.execPath} ${api}`)
  expect(await toldBy({ die: true })).toMatchObject({ flags: [], isAlone: true, program: worker.program })
  for (const program of [worker.program, api]) expect(readFileSync(program, 'utf8')).not.toMatch(/failpoint/i)
})

test('with agents of TypeScript, the bundle of the worker gets a loader for them', async () => {
  await startPlatform('teller.ts')
  const worker = await toldBy({})
  expect(worker).toMatchObject({
    flags: ['--import', expect.stringContaining('tsx')],
    program: expect.stringMatching(/dist\/worker\.mjs$/),
  })
  expect(await toldBy({ die: true })).toEqual({ ...worker, isAlone: true, parent: expect.any(Number) })
  expect(childrenOf(worker.parent).filter(command => command.includes('tsx'))).toHaveLength(1)
})

async function startPlatform(name: string): Promise<void> {
  const file = join(folder, name)
  writeFileSync(file, agent)
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const env = plainEnvironment({
    ...{ PORT: port, DATA_DIR: join(folder, 'data'), LEASE_MS: '2500', HEARTBEAT_MS: '500', RECONCILE_MS: '500' },
    ...{ REDIS_URL: inject('redisUrl'), REDIS_PREFIX: keyPrefix().replace(/:$/, ''), DATABASE_URL: (await createTestDatabase()).url },
  })
  npm = spawn('npm', ['start', '--', file], { cwd: checkout, env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  npm.stdout?.on('data', bytes => (output += bytes))
  await until('the platform is ready', () => output.includes('Rivulet is ready'))
}

async function toldBy(params: { die?: boolean }): Promise<Started> {
  const task = await createClient({ url }).tasks.create({ agent: 'teller', params })
  return JSON.parse((await task.result()).text)
}

function childrenOf(parent: number): string[] {
  const lines = execFileSync('ps', ['-Aww', '-o', 'ppid=,command='], { encoding: 'utf8' }).trim().split('\n')
  return lines.flatMap(line => {
    const [, ppid, command = ''] = /^\s*(\d+) (.*)$/.exec(line) ?? []
    return Number(ppid) === parent ? [command.trim()] : []
  })
}
