/** A new project, from nothing to a running agent, without a network: `init`, `npm test`, `npm start`, `worker`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { cli, plainEnvironment, runCli } from '../support/terminal.ts'
import { until } from '../support/until.ts'

const parent = mkdtempSync(join(tmpdir(), 'rivulet-project-'))
const folder = join(parent, 'my agents')
let url: string
let npmStart: Program | null = null

beforeAll(async () => {
  // Postgres runs as another user when this is root.
  chmodSync(parent, 0o755)
  url = `http://127.0.0.1:${await freePort()}`
})
afterAll(async () => {
  // Only when a test before the last one failed.
  if (npmStart) await interrupt(npmStart)
  rmSync(parent, { recursive: true, force: true })
})

test('init makes a project of relative links, and refuses to do it twice', async () => {
  const made = await runCli(['init', folder])
  expect([made.code, made.stderr]).toEqual([0, ''])
  expect(made.stdout).toContain(`  cd '${folder}'\n  npm start\n  npm test\n`)
  expect(existsSync(join(folder, 'node_modules/.bin/rivulet'))).toBe(true)
  for (const file of ['package.json', 'package-lock.json']) expect(readFileSync(join(folder, file), 'utf8')).not.toMatch(/"(file:)?\//)
  const again = await runCli(['init', folder])
  expect([again.code, again.stdout]).toEqual([1, ''])
  expect(again.stderr).toMatch(/^[^\n]* is not empty: [^\n]*\n$/)
})

test('its types are right', async () => {
  const tsc = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))
  const checked = startProgram(process.execPath, [tsc, '-p', folder, '--listFilesOnly'])
  expect(await checked.ended, checked.output()).toBe(0)
  for (const file of ['agents.ts', 'agents.test.ts']) expect(checked.output()).toContain(`${folder}/${file}\n`)
  const faults = startProgram(process.execPath, [tsc, '-p', folder])
  expect(await faults.ended, faults.output()).toBe(0)
})

test('its test passes', async () => {
  const tested = startProgram('npm', ['test'])
  expect(await tested.ended, tested.output()).toBe(0)
  expect(tested.output()).toMatch(/ pass 2\n[\s\S]* fail 0\n/)
})

test('it starts, says so in readable lines, and runs its agent', async () => {
  const started = startProgram('npm', ['start'])
  npmStart = started
  await until('the project is ready', () => started.output().includes('npx rivulet run greeter "hello, world"\n'))
  await until('the worker says so', () => /\n\d\d:\d\d:\d\d\.\d{3} worker info {2}worker is ready /.test(started.output()))
  expect(started.output()).not.toMatch(/^{"level"/m)
  expect(await greeting('Ada')).toBe('Hello, Ada! What shall we do today?\n')
})

test('a change of its agent is there a moment later', async () => {
  const file = join(folder, 'agents.ts')
  writeFileSync(file, readFileSync(file, 'utf8').replace('Hello, ', 'Bonjour, '))
  await until('the worker has started again', async () => (await greeting('Ada')).startsWith('Bonjour, Ada!'))
  expect(npmStart?.output()).toContain('worker changed; restarting')
})

test('a worker for another file finds the platform by itself, and starts again with a change', async () => {
  const file = join(parent, 'other.ts')
  const agent = (word: string) =>
    `export default { name: 'other', description: '', async *run() { yield { type: 'full', index: 0, content: { type: 'text', text: '${word}', format: 'plain' } } } }\n`
  writeFileSync(file, agent('first'))
  const worker = startProgram(process.execPath, [cli, 'worker', file])
  try {
    await until('it says first', async () => (await runCli(['run', 'other', '--url', url])).stdout === 'first\n')
    writeFileSync(file, agent('second'))
    await until('it says second', async () => (await runCli(['run', 'other', '--url', url])).stdout === 'second\n')
    expect(worker.output()).toContain('worker changed; restarting')
  } finally {
    worker.child.kill('SIGTERM')
  }
  expect(await worker.ended).toBe(0)
})

test('a second one on its port says so, and ends', async () => {
  const second = await runCli(['start'], { cwd: parent, env: { PORT: new URL(url).port } })
  expect([second.code, second.stderr]).toEqual([1, `${new URL(url).host} is taken by Rivulet: set PORT to a free one\n`])
})

test('SIGINT, as by Ctrl-C, stops everything, and the platform can no longer be found', async () => {
  if (npmStart) await interrupt(npmStart)
  expect(npmStart?.output()).toContain('stopping')
  await expect(fetch(`${url}/healthz`)).rejects.toThrow()
  const orphan = await runCli(['worker', join(parent, 'other.ts')], { cwd: folder })
  expect([orphan.code, orphan.stderr]).toEqual([
    1,
    'No platform runs in this folder: start one with npm start, or set REDIS_URL and RIVULET_URL\n',
  ])
})

test('so does a SIGTERM to the one that watches', async () => {
  const started = startProgram(process.execPath, [cli, 'start', '--watch', 'agents.ts'])
  await until('it is ready', () => started.output().includes('Rivulet is ready'))
  started.child.kill('SIGTERM')
  expect([await started.ended, started.output()]).toEqual([0, expect.stringContaining('stopping')])
  await expect(fetch(`${url}/healthz`)).rejects.toThrow()
})

async function greeting(name: string): Promise<string> {
  return (await runCli(['run', 'greeter', name], { cwd: folder })).stdout
}

type Program = { child: ChildProcess; output: () => string; ended: Promise<number | null> }

async function interrupt({ child, ended }: Program): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGINT')
  await ended
}

/** Its own group, so that the whole of it can be sent what Ctrl-C sends. */
function startProgram(command: string, args: string[]): Program {
  const env = plainEnvironment({ PORT: new URL(url).port })
  const child = spawn(command, args, { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => (output += bytes))
  return { child, output: () => output, ended: once(child, 'close').then(([code]) => code) }
}
