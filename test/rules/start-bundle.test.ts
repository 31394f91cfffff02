/** scripts/start-bundle.mjs, in a checkout of its own and with a builder that only notes that it was called. */
import { spawn } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

const checkout = fileURLToPath(new URL('../..', import.meta.url))
const built = /^programs built in \d+\.\d s\n/
const builder = `
  import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
  appendFileSync('builds.log', 'build\\n')
  mkdirSync(process.argv[2] + '/dist', { recursive: true })
  writeFileSync(process.argv[2] + '/dist/cli.mjs', "console.log('started')")`

// Processes are started here, on machines that may be busy.
vi.setConfig({ testTimeout: 60_000 })

let root: string

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'rivulet-start-')))
  for (const file of ['start-bundle.mjs', 'digest.mjs', 'lock-file.mjs']) {
    cpSync(join(checkout, 'scripts', file), join(root, 'scripts', file))
  }
  write('scripts/build-programs.ts', builder)
  write('open.mjs', "import { openStartBundle } from './scripts/start-bundle.mjs'\nawait import(await openStartBundle())")
  for (const file of ['apps/api/src/main.ts', 'packages/worker/src/index.ts', 'migrations/0.sql']) write(file, '1')
  for (const file of ['package.json', 'package-lock.json']) write(file, '{ "type": "module" }')
  symlinkSync(join(checkout, 'node_modules'), join(root, 'node_modules'))
})

afterEach(() => rmSync(root, { recursive: true }))

test('builds the programs of a fresh clone once, and then starts them without a word', async () => {
  expect(await open()).toEqual({ code: 0, output: expect.stringMatching(built) })
  expect(await open()).toEqual({ code: 0, output: 'started\n' })
  expect([builds(), bundles().length]).toEqual([1, 1])
})

test.each(['apps/api/src/main.ts', 'migrations/0.sql', 'scripts/new.ts', 'package-lock.json'])(
  'builds again when %s changes',
  async file => {
    await open()
    write(file, '2')
    expect(await open()).toEqual({ code: 0, output: expect.stringMatching(built) })
    expect([builds(), bundles().length]).toEqual([2, 1])
  },
)

test('file times and tests are no reason to build again', async () => {
  await open()
  utimesSync(join(root, 'apps/api/src/main.ts'), new Date(), new Date())
  write('apps/api/src/main.test.ts', '2')
  expect(await open()).toEqual({ code: 0, output: 'started\n' })
})

test('of several at once one builds, and the others wait for it', async () => {
  const ends = await Promise.all([open(), open(), open()])
  for (const { code, output } of ends) expect([code, output]).toEqual([0, expect.stringMatching(/started\n$/)])
  expect([builds(), bundles().length]).toEqual([1, 1])
})

test('a bundle that a platform runs from stays until the first build after its end', async () => {
  await open()
  const [first = ''] = bundles()
  const mark = join(root, 'dist/start', first, 'used-by', String(process.pid))
  write(mark.slice(root.length + 1), '')
  write('migrations/0.sql', '2')
  await open()
  expect(bundles()).toContain(first)
  rmSync(mark)
  write('migrations/0.sql', '3')
  await open()
  expect(bundles()).toHaveLength(1)
})

test('a build that fails says so, and is tried again', async () => {
  write('scripts/build-programs.ts', "throw new Error('no space')")
  const failed = await open()
  expect([failed.code, failed.output]).toEqual([
    1,
    expect.stringMatching(/no space[\s\S]*The programs could not be built, for the reason above/),
  ])
  expect(bundles()).toEqual([])
  write('scripts/build-programs.ts', builder)
  expect((await open()).code).toBe(0)
})

async function open(): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [join(root, 'open.mjs')], { cwd: tmpdir() })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (output += chunk))
  return { code: await new Promise<number | null>(resolve => child.on('close', resolve)), output }
}

function builds(): number {
  return readFileSync(join(root, 'builds.log'), 'utf8').trim().split('\n').length
}

function bundles(): string[] {
  return readdirSync(join(root, 'dist/start'))
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}
