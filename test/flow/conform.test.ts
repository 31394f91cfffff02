/**
 * `rivulet conform`: a worker in TypeScript and one in Python keep the laws of the worker protocol, and the output names the laws that another one breaks.
 * For Python it needs Python 3.10 or newer, and the title says so.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { seedsUpTo } from '../support/seeds.ts'
import { type CliResult, cliArguments, runCli } from '../support/terminal.ts'
import { until } from '../support/until.ts'

const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 10))']).status === 0
const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const python = { PYTHONPATH: pathOf('../../sdks/python/src'), PYTHONDONTWRITEBYTECODE: '1' }
const laws = [
  'exact text',
  'idempotent repeats',
  'steps not run twice',
  'waits',
  'cancel within a second',
  'fenced after a lost lease',
  'drain',
]

/** A minute on a quiet machine. The runs are at once, because most of each is a wait. */
const timeout = 900_000
const seeds = seedsUpTo(20)

/** Limits are far above what a busy machine needs. */
const conform = (chosen: readonly number[], command: string[], env: Record<string, string> = {}): Promise<CliResult> => {
  const faults = ['--seeds', String(chosen.length), '--first-seed', String(chosen[0] ?? 1)]
  return runCli(['conform', '--json', '--patience', '20', ...faults, '--', ...command], { env })
}

function expectAllLaws({ code, stdout, stderr }: CliResult): void {
  const { laws: verdicts } = JSON.parse(stdout) as { laws: { law: string; holds: boolean; detail: string }[] }
  expect(
    verdicts.filter(({ holds }) => !holds),
    stderr,
  ).toEqual([])
  expect(verdicts.map(({ law }) => law)).toEqual([...laws, ...seeds.map(seed => `faults, seed ${seed}`)])
  // No echo of this seed can end before its first fault.
  expect(verdicts.find(({ law }) => law === 'faults, seed 1')?.detail).toMatch(/^6 tasks, of which [3-6], /)
  expect(code).toBe(0)
}

test.concurrent('a worker in TypeScript keeps the laws', { timeout }, async () => {
  const worker = [
    process.execPath,
    '--import',
    'tsx',
    pathOf('../../apps/agents/src/main.ts'),
    pathOf('../support/agents/conform-agents.ts'),
  ]
  expectAllLaws(await conform(seeds, worker))
})

const testInPython = hasPython ? test.concurrent : test.skip

testInPython(
  '[needs python3] a worker in Python keeps the laws, on a platform without the keys and listeners of the environment',
  { timeout },
  async () => {
    const ofAnother = { KEY_PEPPER: 'a'.repeat(32), KEY_PEPPER_OLD: 'b'.repeat(32), INTERNAL_PORT: '9', INTERNAL_HOST: '0.0.0.0' }
    expectAllLaws(await conform(seeds, ['python3', pathOf('../support/python/conform_agents.py')], { ...python, ...ofAnother }))
  },
)

testInPython(
  '[needs python3] one that runs steps again, does not drain, and repeats itself after a cut breaks these laws',
  { timeout },
  async () => {
    // A seed that cuts connections while texts are sent.
    const result = await conform([22], ['python3', pathOf('../support/python/lawless_agents.py')], python)
    const { laws: verdicts } = JSON.parse(result.stdout) as { laws: { law: string; holds: boolean; detail: string }[] }
    const broken = verdicts.filter(({ holds }) => !holds)
    expect(
      broken.map(({ law }) => law),
      result.stderr,
    ).toEqual(['steps not run twice', 'drain', 'faults, seed 22'])
    expect(broken[0]?.detail).toMatch(/^the step has run twice: its results are \[/)
    expect(broken[1]?.detail).toMatch(/SIGTERM.*not with code 0$/)
    expect(broken[2]?.detail).toMatch(/conform-echo: from character \d+ the text is \["again "\], not \[""\]/)
    expect(result.code).toBe(1)
  },
)

test.concurrent('a command that is no worker is named', { timeout }, async () => {
  const { code, stdout } = await conform([], ['no-such-worker'])
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({ isConforming: false, laws: laws.map(law => ({ law, holds: false })) })
  expect(stdout).toContain('ENOENT')
})

test.concurrent('Ctrl-C ends it with its worker and its platform', { timeout }, async ({ onTestFinished }) => {
  const folder = mkdtempSync(join(tmpdir(), 'conform-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  // Postgres runs as another user when this is root.
  chmodSync(folder, 0o755)
  const note = join(folder, 'worker')
  const silent = `fs.writeFileSync(${JSON.stringify(note)}, String(process.pid)); setInterval(() => {}, 1_000)`
  const command = cliArguments(['conform', '--patience', '20', '--', process.execPath, '-e', silent])
  const child = spawn(process.execPath, command, { env: { ...process.env, TMPDIR: folder }, stdio: 'ignore' })
  const exited = once(child, 'exit')
  const worker = await until('the worker runs', () => existsSync(note) && Number(readFileSync(note, 'utf8')), { timeoutMs: 300_000 })
  child.kill('SIGINT')
  expect(await exited).toEqual([130, null])
  expect(() => process.kill(worker, 0)).toThrow('ESRCH')
  expect(readdirSync(folder).filter(name => name.startsWith('rivulet-'))).toEqual([])
})
