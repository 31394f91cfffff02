/**
 * The public packages as a user gets them: packed, installed from their tarballs into an empty folder without a clone beside it, and used there.
 *
 * The dependencies of the packages come from the registry, so this needs one. It is not part of `npm test`: `npm run test:packages`.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { plainEnvironment } from '../support/terminal.ts'
import { until } from '../support/until.ts'

const checkout = fileURLToPath(new URL('../../', import.meta.url))
const tarballs = join(checkout, 'dist/tarballs')
const folder = mkdtempSync(join(tmpdir(), 'rivulet-packages-'))
const patience = { timeoutMs: 120_000 }
const names = ['protocol', 'runtime', 'broker', 'client', 'worker', 'agent', 'views'].map(name => `@rivulet/${name}`)
let port: string

beforeAll(async () => {
  // Postgres runs as another user when this is root.
  chmodSync(folder, 0o755)
  port = String(await freePort())
  run('npm', ['run', '--silent', 'tarballs'], checkout)
  cpSync(fileURLToPath(new URL('./consumer/', import.meta.url)), folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  const files = readdirSync(tarballs).map(file => join(tarballs, file))
  run('npm', [
    'install',
    '--no-audit',
    '--no-fund',
    '--silent',
    ...files,
    ...toolsOf('typescript', '@types/node', '@types/react', 'react', 'zod'),
  ])
}, 300_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the tarballs', () => {
  test.each([...names, 'rivulet'])('%s has a license, a repository, a README, and nothing but what it needs', name => {
    const home = join(folder, 'node_modules', name)
    const manifest = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
    expect(manifest).toMatchObject({ license: 'MIT', repository: { type: 'git' }, engines: { node: expect.any(String) }, version: '0.2.0' })
    for (const file of ['README.md', 'LICENSE']) expect(existsSync(join(home, file)), file).toBe(true)
    for (const range of Object.values<string>(manifest.dependencies)) expect(range).toMatch(/^[\^>]/)
    expect(filesUnder(home).filter(file => /(?<!\.d)\.ts$|\.test\./.test(file) && !file.includes('template'))).toEqual([])
  })

  test('there is one copy of each package', () => {
    const manifest = /(?:^|node_modules\/)(@rivulet\/[a-z]+|react|zod)\/package\.json$/
    const copies = filesUnder(join(folder, 'node_modules')).flatMap(file => manifest.exec(file)?.[1] ?? [])
    expect(copies.sort()).toEqual([...names, 'react', 'zod'].sort())
  })
})

test.each([
  ['nodenext', { module: 'nodenext', moduleResolution: 'nodenext' }],
  ['bundler', { module: 'esnext', moduleResolution: 'bundler' }],
])('a strict consumer type-checks under %s, declarations of libraries included', (_, modules) => {
  const compilerOptions = {
    ...modules,
    target: 'es2023',
    lib: ['es2023', 'dom'],
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    jsx: 'react-jsx',
  }
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { ...compilerOptions, types: ['node'] }, include: ['*.ts', '*.tsx'] }),
  )
  expect(run('npx', ['tsc'])).toBe('')
})

test('the browser client is at most 20 kB of gzip, and has no validation library', async () => {
  const stdin = { contents: "export * from '@rivulet/client'; export * from '@rivulet/client/react'", resolveDir: folder }
  const { outputFiles, metafile } = await build({
    stdin,
    bundle: true,
    minify: true,
    format: 'esm',
    write: false,
    metafile: true,
    external: ['react'],
  })
  expect(
    Object.values(metafile.outputs)
      .flatMap(({ inputs }) => Object.keys(inputs))
      .filter(file => file.includes('node_modules/zod')),
  ).toEqual([])
  expect(gzipSync(outputFiles[0]?.contents ?? '').length).toBeLessThanOrEqual(20_000)
})

describe('a platform from the package', () => {
  let platform: Program

  beforeAll(async () => {
    platform = start('npx', ['rivulet', 'dev', 'agents.ts'])
    await until('the platform is ready', () => platform.output().includes('Rivulet is ready'), patience)
  }, 180_000)
  afterAll(() => interrupt(platform))

  test('runs an agent of TypeScript, and streams to a client', () => {
    expect(run('npx', ['rivulet', 'run', 'greeter', 'Ada'])).toBe('Hello, Ada!\n')
    expect(run(process.execPath, ['client.mjs'])).toBe('Hello, Grace!\n')
  })

  test('serves its console and its documentation', async () => {
    const page = await (await fetch(url('/'))).text()
    const [, script = 'none'] = /<script [^>]*src="([^"]+)"/.exec(page) ?? []
    for (const path of [script, '/docs/static/swagger-ui.css', '/openapi.json']) expect((await fetch(url(path))).status, path).toBe(200)
  })

  test('an error of the protocol that a user’s module throws keeps its code, and is not tried again', async () => {
    const headers = { 'content-type': 'application/json' }
    const created = await fetch(url('/v1/tasks'), { method: 'POST', headers, body: JSON.stringify({ agent: 'strict' }) })
    const { task } = (await created.json()) as { task: { id: string } }
    const turns = await until('the turn has failed', async () => {
      const detail = (await (await fetch(url(`/v1/tasks/${task.id}`))).json()) as { task: { status: string }; turns: object[] }
      return detail.task.status === 'failed' && detail.turns
    })
    expect(turns).toMatchObject([{ status: 'failed', attempt: 1, error: { code: 'validation_failed' } }])
  })

  test.each([
    ['rivulet build', () => run('npx', ['rivulet', 'build', 'built.ts', '--out', 'own'])],
    ['esbuild, with createWorker in a program of one’s own', () => bundleOwnWorker()],
  ])('runs a worker that was bundled by %s, elsewhere and with plain Node', async (_, bundle) => {
    rmSync(join(folder, 'own'), { recursive: true, force: true })
    await bundle()
    const elsewhere = mkdtempSync(join(tmpdir(), 'rivulet-bundle-'))
    cpSync(join(folder, 'own'), elsewhere, { recursive: true })
    const note = JSON.parse(readFileSync(join(folder, '.rivulet/running.json'), 'utf8'))
    const worker = start(process.execPath, ['main.mjs'], elsewhere, { REDIS_URL: note.redisUrl, RIVULET_URL: note.url })
    try {
      await until('the worker is ready', () => worker.output().includes('worker is ready'), patience)
      expect(run('npx', ['rivulet', 'run', 'built', 'Ada'])).toBe('Built for Ada\n')
    } finally {
      await interrupt(worker)
      rmSync(elsewhere, { recursive: true, force: true })
    }
  })
})

test('init makes a project of versions, which type-checks, passes its test and builds', { timeout: 300_000 }, () => {
  run('npx', ['rivulet', 'init', 'shop'])
  const shop = join(folder, 'shop')
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(shop, 'package.json'), 'utf8'))
  for (const [name, range] of Object.entries({ ...dependencies, ...devDependencies }))
    expect([name, range]).toEqual([name, expect.stringMatching(/^\^\d/)])
  expect(run('npm', ['run', '--silent', 'check'], shop)).toBe('')
  expect(run('npm', ['test'], shop)).toMatch(/ pass 2\n[\s\S]* fail 0\n/)
  run('npm', ['run', '--silent', 'build'], shop)
  expect(statSync(join(shop, 'dist/main.mjs')).size).toBeGreaterThan(100_000)
})

async function bundleOwnWorker(): Promise<void> {
  mkdirSync(join(folder, 'own'))
  const options = { bundle: true, platform: 'node', format: 'esm', logLevel: 'silent' } as const
  await build({ entryPoints: [join(folder, 'own-worker.ts')], outfile: join(folder, 'own/main.mjs'), ...options })
}

type Program = { child: ChildProcess; output: () => string }

function start(command: string, args: string[], cwd = folder, env: Record<string, string> = {}): Program {
  const own = plainEnvironment({ PORT: port, RIVULET_URL: url(''), ...env })
  const child = spawn(command, args, { cwd, env: own, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => (output += bytes))
  return { child, output: () => output }
}

/** The whole group, as Ctrl-C does. */
async function interrupt({ child }: Program): Promise<void> {
  const ended = once(child, 'close')
  if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGINT')
  else return
  await ended
}

function run(command: string, args: string[], cwd = folder): string {
  const env = plainEnvironment({ RIVULET_URL: url('') })
  try {
    return execFileSync(command, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    throw new Error(`${command} ${args.join(' ')}:\n${stdout}${stderr}`)
  }
}

/** Of the versions that this checkout uses itself. */
function toolsOf(...tools: string[]): string[] {
  const { devDependencies, dependencies } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'))
  return tools.map(name => `${name}@${{ ...dependencies, ...devDependencies }[name]}`)
}

function url(path: string): string {
  return `http://127.0.0.1:${port}${path}`
}

function filesUnder(home: string): string[] {
  return readdirSync(home, { recursive: true, encoding: 'utf8' })
}
