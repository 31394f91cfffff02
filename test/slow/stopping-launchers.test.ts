/** Every way to stop a platform that npm, npx or a shell has started, and what starts again by itself: nothing of it is left, engines included. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { leftoverProcesses, runVariable } from '../support/process/leftovers.ts'
import { cli, plainEnvironment, runCli } from '../support/terminal.ts'
import { until } from '../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'rivulet-stopping-'))
/** Marks every process of this file. */
const mark = randomUUID()
let port: string

beforeAll(async () => {
  // Postgres runs as another user when this is root.
  chmodSync(folder, 0o755)
  port = await freePort()
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
  symlinkSync(cli, join(folder, 'node_modules/.bin/rivulet'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', scripts: { start: 'rivulet start agents.ts' } }))
  writeAgent('first')
})
afterEach(async () => {
  // Only when a test failed.
  for (const line of await ownProcesses()) kill(Number(/\d+/.exec(line)?.[0]), 'SIGKILL')
  await until('the processes of the test are gone', async () => (await ownProcesses()).length === 0)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('SIGTERM to npm stops everything; until then, commands find the platform in their folder', async () => {
  const npm = startProgram('npm', ['start'])
  await until('the platform is ready', () => npm.output().includes('npx rivulet run speaker "hello, world"\n'))
  expect(await runCli(['run', 'speaker'], { cwd: folder })).toMatchObject({ code: 0, stdout: 'first\n' })
  npm.child.kill('SIGTERM')
  await untilNothingIsLeft(npm)
})

test('so does SIGTERM to the shell that npm runs, also while the programs are starting', async () => {
  const npm = startProgram('npm', ['start'])
  await until('the engines run', () => /^postgres /m.test(npm.output()))
  const [shell] = processes().filter(({ parent }) => parent === npm.child.pid)
  expect(shell?.command).toMatch(/^sh -c /)
  kill(shell?.pid ?? 0, 'SIGTERM')
  await untilNothingIsLeft(npm)
})

test('a program in the background outlives the shell that started it; SIGKILL to it ends its programs and engines', async () => {
  const shell = startProgram('sh', ['-c', 'nohup npx rivulet start agents.ts > log.txt 2>&1 &'])
  expect(await shell.exited).toBe(0)
  // The shell creates the file for the background program, maybe after it has exited itself.
  const file = join(folder, 'log.txt')
  const log = { output: () => (existsSync(file) ? readFileSync(file, 'utf8') : '') }
  await untilReady(log)
  expect(log.output()).not.toContain('stopping')
  kill(JSON.parse(readFileSync(join(folder, '.rivulet/running.json'), 'utf8')).pid, 'SIGKILL')
  await untilNothingIsLeft({ ...log, ended: shell.ended })
})

test('dev shows where a file cannot be loaded, once, and loads it when it changes; a debugger can attach; SIGTERM to npx stops it all', async () => {
  writeFileSync(join(folder, 'agents.ts'), 'const a: number = 1\nexport default {{\n')
  const inspectPort = await freePort()
  const npx = startProgram('npx', ['rivulet', 'dev', `--inspect=${inspectPort}`, 'agents.ts'])
  const waits = 'worker waits for a change of its files'
  await until('dev waits for a change', () => npx.output().includes(waits))
  // The worker has had the time to be started again by then.
  await until('the API listens', () => npx.output().includes('api is listening'))
  expect(npx.output().match(/agents\.ts cannot be loaded: agents\.ts:2:\d+: /g)).toHaveLength(1)
  expect(npx.output()).not.toContain('starting it again')
  writeAgent('second')
  await untilReady(npx)
  expect(await runCli(['run', 'speaker'], { cwd: folder })).toMatchObject({ code: 0, stdout: 'second\n' })
  const targets = await (await fetch(`http://127.0.0.1:${inspectPort}/json/list`)).json()
  expect(targets).toMatchObject([{ type: 'node', title: expect.stringContaining('apps/agents/src/main.ts') }])
  rmSync(join(folder, 'agents.ts'))
  await until('the missing file is reported', () => npx.output().includes('No such file: agents.ts'))
  await until('dev waits again', () => npx.output().split(waits).length > 2)
  npx.child.kill('SIGTERM')
  await untilNothingIsLeft(npx)
  expect(npx.output().split(waits)).toHaveLength(3)
})

test('start gives up on a file that cannot be loaded, and never begins with one that is missing', async () => {
  const env = { PORT: port, [runVariable]: mark }
  const missing = await runCli(['start', 'agents.ts'], { cwd: folder, env })
  expect([missing.code, missing.stdout, missing.stderr]).toEqual([2, '', expect.stringContaining('No such file: agents.ts')])
  writeFileSync(join(folder, 'agents.ts'), "import './nowhere.ts'\n")
  const broken = await runCli(['start', 'agents.ts'], { cwd: folder, env })
  expect(broken).toMatchObject({ code: 1, stderr: expect.stringMatching(/^The worker cannot load its agents[^\n]*\n$/) })
  expect(broken.stdout.match(/agents\.ts:1: Cannot find module/g)).toHaveLength(1)
})

function writeAgent(word: string): void {
  const content = `{ type: 'text', text: '${word}', format: 'plain' }`
  const run = `async *run() { yield { type: 'full', index: 0, content: ${content} } }`
  writeFileSync(join(folder, 'agents.ts'), `export default { name: 'speaker', description: '', ${run} }\n`)
}

type Program = { child: ChildProcess; output: () => string; exited: Promise<number | null>; ended: Promise<unknown> }

function startProgram(command: string, args: string[]): Program {
  const env = plainEnvironment({ PORT: port, [runVariable]: mark })
  const child = spawn(command, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => (output += bytes))
  return { child, output: () => output, exited: once(child, 'exit').then(([code]) => code), ended: once(child, 'close') }
}

async function untilReady({ output }: Pick<Program, 'output'>): Promise<void> {
  await until('the platform is ready', () => output().includes('Rivulet is ready'))
}

async function untilNothingIsLeft({ output, ended }: Pick<Program, 'output' | 'ended'>): Promise<void> {
  await until('nothing is left', async () => (await ownProcesses()).length === 0).catch(async error => {
    throw new Error(`${error.message}\n${(await ownProcesses()).join('\n')}\n${output()}`)
  })
  await ended
  await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow()
}

/** Those with the mark, and servers of engines, whose environment is empty but whose command names their folder. */
async function ownProcesses(): Promise<string[]> {
  const engines = processes().filter(({ command }) => command.includes(folder))
  return [...(await leftoverProcesses(mark)), ...engines.map(({ pid, command }) => `process ${pid} ${command}`)]
}

function processes(): { pid: number; parent: number; command: string }[] {
  const lines = execFileSync('ps', ['-Aww', '-o', 'pid=,ppid=,command='], { encoding: 'utf8' }).trim().split('\n')
  return lines.map(line => {
    const [pid, parent, ...command] = line.trim().split(/\s+/)
    return { pid: Number(pid), parent: Number(parent), command: command.join(' ') }
  })
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // Gone meanwhile.
  }
}
