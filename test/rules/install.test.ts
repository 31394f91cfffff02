/** scripts/install.mjs, in a checkout of its own and with an npm that only notes that it was called. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

const zod = { 'node_modules/zod': { version: '4.6.7', integrity: 'sha512-a' } }
const otherPlatform = { 'node_modules/@os/other': { version: '1.0.0', integrity: 'sha512-b', optional: true } }

// Processes are started here, on machines that may be busy.
vi.setConfig({ testTimeout: 60_000 })

let root: string
let running: ChildProcess[]

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'rivulet-install-')))
  running = []
  for (const file of ['install.mjs', 'lock-file.mjs']) {
    cpSync(fileURLToPath(new URL(`../../scripts/${file}`, import.meta.url)), join(root, 'scripts', file))
  }
  write('package.json', { engines: { node: '>=20.19' } })
  writeLock({ ...zod, ...otherPlatform })
  writeNpm('cp installs.json node_modules/.package-lock.json')
  write('installs.json', { packages: zod })
})

afterEach(() => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(root, { recursive: true })
})

test('says nothing and does nothing when node_modules agrees with the lock', async () => {
  writeInstalled(zod)
  expect(await install()).toEqual({ code: 0, output: '' })
  expect(npmCalls()).toEqual([])
})

test('installs into a fresh clone, from whichever folder it is called, and then is content', async () => {
  mkdirSync(join(root, 'packages/broker'), { recursive: true })
  expect(await install('packages/broker')).toEqual({ code: 0, output: 'Running npm ci: nothing is installed yet.\n' })
  expect(npmCalls()).toEqual([`ci --include=dev --include=optional in ${root}`])
  expect(await install()).toEqual({ code: 0, output: '' })
})

test.each([
  [
    'another version',
    { 'node_modules/zod': { version: '4.6.6', integrity: 'sha512-a' } },
    'node_modules/zod is not the one in package-lock.json',
  ],
  [
    'other bytes',
    { 'node_modules/zod': { version: '4.6.7', integrity: 'sha512-c' } },
    'node_modules/zod is not the one in package-lock.json',
  ],
  ['a package too few', {}, 'node_modules/zod is not installed'],
])('installs again when node_modules has %s', async (_, installed, reason) => {
  writeInstalled(installed)
  expect(await install()).toEqual({ code: 0, output: `Running npm ci: ${reason}.\n` })
  expect(npmCalls()).toHaveLength(1)
})

test('refuses a Node that is too old, in one line, before anything else', async () => {
  write('package.json', { engines: { node: '>=99.1' } })
  expect(await install()).toEqual({ code: 1, output: `Rivulet needs Node >=99.1, and this is Node ${process.versions.node}.\n` })
  expect(npmCalls()).toEqual([])
})

test('accepts exactly the Node that is asked for', async () => {
  write('package.json', { engines: { node: `>=${process.versions.node}` } })
  writeInstalled(zod)
  expect(await install()).toEqual({ code: 0, output: '' })
})

test('fails when npm fails, and tries again the next time', async () => {
  writeNpm('exit 7')
  expect((await install()).code).toBe(1)
  expect((await install()).code).toBe(1)
  expect(npmCalls()).toHaveLength(2)
})

test('of several at once one installs and the others wait for it', async () => {
  writeNpm('until [ -e go ] || [ ! -e package.json ]; do sleep 0.02; done; cp installs.json node_modules/.package-lock.json')
  const first = start()
  await vi.waitFor(() => expect(npmCalls()).toHaveLength(1), 300_000)
  const others = [start(), start(), start()]
  await vi.waitFor(() => expect(others.map(other => other.output())).toEqual(Array(3).fill(waiting)), 300_000)
  write('go', {})
  expect((await first.end).code).toBe(0)
  for (const other of others) expect(await other.end).toEqual({ code: 0, output: waiting })
  expect(npmCalls()).toHaveLength(1)
})

test('a node_modules that looks complete is not trusted while an install is running', async () => {
  writeInstalled(zod)
  write('.rivulet/install.lock', String(process.pid))
  const waiter = start()
  await vi.waitFor(() => expect(waiter.output()).toBe(waiting), 300_000)
  rmSync(join(root, '.rivulet/install.lock'))
  expect(await waiter.end).toEqual({ code: 0, output: waiting })
})

test('the lock of a killed install is taken over, by one', async () => {
  write('.rivulet/install.lock', String(deadPid()))
  const ends = await Promise.all([start(), start(), start(), start()].map(({ end }) => end))
  expect(ends.map(({ code }) => code)).toEqual([0, 0, 0, 0])
  expect(npmCalls()).toHaveLength(1)
})

test('the lock of a killed install is respected while its npm lives on', async () => {
  write('.rivulet/install.lock', `${deadPid()} ${process.pid}`)
  const waiter = start()
  await vi.waitFor(() => expect(waiter.output()).toBe(waiting), 300_000)
  expect(npmCalls()).toEqual([])
  write('.rivulet/install.lock', `${deadPid()} ${deadPid()}`)
  expect((await waiter.end).code).toBe(0)
  expect(npmCalls()).toHaveLength(1)
})

const waiting = 'Waiting for another install in this checkout.\n'

function install(cwd = '.') {
  return start(cwd).end
}

function start(cwd = '.') {
  const env = { ...process.env, PATH: join(root, 'bin') + delimiter + process.env.PATH }
  const child = spawn(process.execPath, [join(root, 'scripts/install.mjs')], { cwd: join(root, cwd), env })
  running.push(child)
  let output = ''
  child.stdout.on('data', chunk => (output += chunk))
  child.stderr.on('data', chunk => (output += chunk))
  const end = new Promise<{ code: number | null; output: string }>(resolve => child.on('close', code => resolve({ code, output })))
  return { end, output: () => output }
}

function npmCalls(): string[] {
  const log = join(root, 'npm.log')
  return existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []
}

function writeNpm(installs: string): void {
  const script = ['#!/bin/sh', `echo "$@ in $(pwd -P)" >> npm.log`, 'mkdir -p node_modules', installs, '']
  write('bin/npm', script.join('\n'), 0o755)
}

function writeLock(packages: object): void {
  write('package-lock.json', { packages: { '': {}, ...packages } })
}

function writeInstalled(packages: object): void {
  write('node_modules/.package-lock.json', { packages })
}

function write(path: string, content: string | object, mode = 0o644): void {
  mkdirSync(join(root, path, '..'), { recursive: true })
  writeFileSync(join(root, path), typeof content === 'string' ? content : JSON.stringify(content), { mode })
}

function deadPid(): number {
  return spawnSync(process.execPath, ['--version']).pid
}
