/** The agent, its test and its caller that the page on Python shows, as they stand there. */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { cli, plainEnvironment } from '../support/terminal.ts'
import { blocksOf } from '../support/texts/fenced-blocks.ts'
import { until } from '../support/until.ts'

const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 10))']).status === 0
const root = fileURLToPath(new URL('../..', import.meta.url))
const [agentText = '', testText = '', callerText = '', portedText = ''] = blocksOf(readFileSync(`${root}docs/python.md`, 'utf8'))
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

  test('its agent runs with `rivulet worker`, which restarts it when the file changes', async () => {
    const file = join(mkdtempSync(join(folder, 'watched-')), 'desk.py')
    writeFileSync(file, agentText.replace('"desk"', '"watched-desk"'))
    const { RIVULET_TRANSPORT: _, ...env } = plainEnvironment({ RIVULET_URL: platform.url, PYTHONDONTWRITEBYTECODE: '1' })
    const worker = spawn(process.execPath, [cli, 'worker', file], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [worker.stdout, worker.stderr]) stream.setEncoding('utf8').on('data', text => (output += text))
    onTestFinished(async () => {
      const exit = once(worker, 'exit')
      worker.kill('SIGTERM')
      await exit
    })
    const timesReady = () => output.split('worker is ready').length - 1
    const answer = async () => {
      const { messages } = await platform.client.finishedTask({ agent: 'watched-desk', input: 'one two' })
      return messages.flatMap(({ author, content }) => (author === 'agent' && 'text' in content ? [content.text] : [])).join()
    }
    await until('the worker is ready', async () => timesReady() === 1)
    expect(await answer()).toBe('ONE TWO ')
    writeFileSync(file, 'this is no Python')
    await until('the mistake is named', async () => /desk\.py:1 cannot be loaded: SyntaxError.*[\s\S]*waits for a change/.test(output))
    writeFileSync(file, agentText.replace('"desk"', '"watched-desk"').replace('upper', 'title'))
    await until('the worker is ready again', async () => timesReady() === 2)
    expect(await answer()).toBe('One Two ')
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

  test('shows an agent in the words of Agentex that runs, and learns of a cancel', async () => {
    writeFileSync(join(folder, 'ported.py'), portedText)
    const worker = spawn('python3', ['-m', 'ported'], { env: environment(), stdio: ['ignore', 'pipe', 'ignore'] })
    onTestFinished(() => void worker.kill('SIGKILL'))
    let said = ''
    worker.stdout.setEncoding('utf8').on('data', text => (said += text))
    await until('the agent is there', async () => {
      const { body } = await platform.client.get<{ data: { name: string }[] }>('/v1/agents')
      return body.data.some(({ name }) => name === 'ported')
    })
    const { task, messages } = await platform.client.finishedTask({ agent: 'ported', input: 'hello there' })
    const texts = messages.flatMap(({ author, content }) => (author === 'agent' && 'text' in content ? [content.text] : []))
    expect(texts).toEqual(['Welcome', 'HELLO THERE '])
    await platform.client.addTurn(task.id, { input: 'wait' })
    const live = () => platform.client.messages(task.id)
    await until('the second turn streams', async () => (await live()).some(({ turn, author }) => turn === 2 && author === 'agent'))
    await platform.client.cancel(task.id)
    await until('the handler of cancels runs', async () => said.includes(`canceled ${task.id}`))
  })

  test('installs with pip, without an index, in the version of the other packages', async () => {
    const target = join(folder, 'installed')
    const quiet = ['--quiet', '--disable-pip-version-check', '--no-index']
    const install = (what: string, to: string) => promisify(execFile)('python3', ['-m', 'pip', 'install', ...quiet, '--target', to, what])
    await install(`${root}sdks/python`, target)
    const env = { ...environment(), PYTHONPATH: target }
    const { stdout } = await promisify(execFile)('python3', ['-c', 'import rivulet; print(rivulet.__version__, rivulet.__file__)'], { env })
    const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
    expect(stdout.trim()).toBe(`${version} ${target}/rivulet/__init__.py`)
    // The archives that `npm run tarballs` builds.
    const build = 'import sys, backend; backend.build_wheel(sys.argv[1]); backend.build_sdist(sys.argv[1])'
    await promisify(execFile)('python3', ['-B', '-c', build, folder], { cwd: `${root}sdks/python` })
    for (const file of [`rivulet-${version}-py3-none-any.whl`, `rivulet-${version}.tar.gz`]) {
      await install(join(folder, file), join(folder, file, '..', `from-${file}`))
      expect(existsSync(join(folder, `from-${file}`, 'rivulet', 'agentex.py')), file).toBe(true)
    }
  })
})
