/** The agent, its test and its caller that the page on Python shows, as they stand there. */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { blocksOf } from '../support/texts/fenced-blocks.ts'
import { until } from '../support/until.ts'

const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 10))']).status === 0
const root = fileURLToPath(new URL('../..', import.meta.url))
const [agentText = '', testText = '', callerText = ''] = blocksOf(readFileSync(`${root}docs/python.md`, 'utf8'))
  .filter(({ language }) => language === 'python')
  .map(({ text }) => text)

describe.skipIf(!hasPython)('[needs python3] the page on Python', () => {
  let platform: Platform
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-python-'))
  const environment = () => ({
    ...{ ...process.env, RIVULET_URL: platform.url, PYTHONDONTWRITEBYTECODE: '1' },
    PYTHONPATH: `${folder}:${root}sdks/python/src`,
  })
  const run = (text: string) => promisify(execFile)('python3', ['-c', text], { env: environment() })

  beforeAll(async () => {
    writeFileSync(join(folder, 'desk.py'), agentText)
    platform = await startPlatform({ workers: 0 })
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true })
    await platform.close()
  })

  test('shows a test that passes without a platform', async () => {
    expect(testText).toContain('test_turn')
    await run(testText)
  })

  test('shows a caller that streams what the agent says', async () => {
    const worker = spawn('python3', ['-m', 'desk'], { env: environment(), stdio: 'ignore' })
    onTestFinished(() => void worker.kill('SIGKILL'))
    await until('the agent is there', async () => {
      const { body } = await platform.client.get<{ data: { name: string }[] }>('/v1/agents')
      return body.data.some(({ name }) => name === 'desk')
    })
    expect((await run(callerText)).stdout).toBe('GOOD MORNING AND GOOD NIGHT \n')
  })

  test('installs with pip, without an index, in the version of the other packages', { timeout: 300_000 }, async () => {
    const target = join(folder, 'installed')
    const quiet = ['--quiet', '--disable-pip-version-check', '--no-index']
    await promisify(execFile)('python3', ['-m', 'pip', 'install', ...quiet, '--target', target, `${root}sdks/python`])
    const env = { ...environment(), PYTHONPATH: target }
    const { stdout } = await promisify(execFile)('python3', ['-c', 'import rivulet; print(rivulet.__version__, rivulet.__file__)'], { env })
    const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
    expect(stdout.trim()).toBe(`${version} ${target}/rivulet/__init__.py`)
    expect(existsSync(`${target}/rivulet-${version}.dist-info/METADATA`)).toBe(true)
  })
})
