/**
 * `rivulet conform`: a worker in TypeScript and one in Python keep the laws of the worker protocol, and the output names the laws that another one breaks.
 * For Python it needs Python 3.10 or newer, and the title says so.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { type CliResult, runCli } from '../support/terminal.ts'

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

/** Limits are far above what a busy machine needs. */
const conform = (seeds: number, command: string[], env: Record<string, string> = {}): Promise<CliResult> =>
  runCli(['conform', '--json', '--patience', '20', '--seeds', String(seeds), '--', ...command], { env })

function expectAllLaws({ code, stdout, stderr }: CliResult): void {
  const { laws: verdicts } = JSON.parse(stdout) as { laws: { law: string; holds: boolean; detail: string }[] }
  expect(
    verdicts.filter(({ holds }) => !holds),
    stderr,
  ).toEqual([])
  expect(verdicts.map(({ law }) => law)).toEqual([...laws, 'faults, seed 1', 'faults, seed 2'])
  expect(code).toBe(0)
}

test('a worker in TypeScript keeps the laws', { timeout: 900_000 }, async () => {
  const worker = [
    process.execPath,
    '--import',
    'tsx',
    pathOf('../../apps/agents/src/main.ts'),
    pathOf('../support/agents/conform-agents.ts'),
  ]
  expectAllLaws(await conform(2, worker))
})

describe.skipIf(!hasPython)('[needs python3] a worker in Python', () => {
  test('keeps the laws', { timeout: 900_000 }, async () => {
    expectAllLaws(await conform(2, ['python3', pathOf('../support/python/conform_agents.py')], python))
  })

  test('that runs steps again and does not drain breaks these laws', { timeout: 900_000 }, async () => {
    const result = await conform(0, ['python3', pathOf('../support/python/lawless_agents.py')], python)
    const { laws: verdicts } = JSON.parse(result.stdout) as { laws: { law: string; holds: boolean; detail: string }[] }
    const broken = verdicts.filter(({ holds }) => !holds)
    expect(
      broken.map(({ law }) => law),
      result.stderr,
    ).toEqual(['steps not run twice', 'drain'])
    expect(broken[0]?.detail).toMatch(/^the step has run twice: its results are \[/)
    expect(broken[1]?.detail).toMatch(/SIGTERM.*not with code 0$/)
    expect(result.code).toBe(1)
  })
})

test('a command that is no worker is named', { timeout: 300_000 }, async () => {
  const { code, stdout } = await conform(0, ['no-such-worker'])
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({ isConforming: false, laws: laws.map(law => ({ law, holds: false })) })
  expect(stdout).toContain('ENOENT')
})
