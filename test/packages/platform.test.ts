/** `npx rivulet dev` in a folder that has the packages and no clone: agents, clients, a page in a browser, and workers that were bundled. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { findChromium, launchBrowser } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { type Program, run, start } from '../support/process/typed-commands.ts'
import { until } from '../support/until.ts'
import { startSpanCollector } from './span-collector.ts'

const folder = inject('consumer')
const chromium = findChromium(process.env)
let platform: Program
let url: string

beforeAll(async () => {
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  platform = start('npx', ['rivulet', 'dev', 'agents.ts'], folder, { PORT: port })
  await platform.says('Rivulet is ready')
})
afterAll(() => platform.interrupt())

test('dev says what to do next', () => {
  expect(platform.output()).toContain('\n  npx rivulet run greeter "hello, world"\n')
  expect(platform.output()).toContain('traces are off: this process has no OpenTelemetry SDK')
})

test('runs an agent of TypeScript, and streams to a client', async () => {
  expect(await run('npx', ['rivulet', 'run', 'greeter', 'Ada'], folder)).toBe('Hello, Ada!\n')
  expect(await run(process.execPath, ['client.mjs'], folder, { RIVULET_URL: url })).toBe('Hello, Grace!\n')
})

test('serves its console and its documentation', async () => {
  const page = await (await fetch(url)).text()
  const [, script = 'none'] = /<script [^>]*src="([^"]+)"/.exec(page) ?? []
  for (const path of [script, '/docs/static/swagger-ui.css', '/openapi.json']) expect((await fetch(url + path)).status, path).toBe(200)
})

test.skipIf(!chromium)('a React page that Vite built shows an answer while it streams (skipped where there is no Chromium)', async () => {
  await run('npx', ['vite', 'build', 'page'], folder)
  const port = await freePort()
  const preview = start('npx', ['vite', 'preview', 'page', '--host', '127.0.0.1', '--port', port], folder, { RIVULET_URL: url })
  onTestFinished(() => preview.interrupt())
  await preview.says(port)
  const browser = await launchBrowser(chromium ?? '')
  onTestFinished(() => browser.close())
  const page = await browser.newPage()
  const complaints: string[] = []
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => message.type() === 'error' && complaints.push(message.text()))
  await page.goto(`http://127.0.0.1:${port}/`)
  const answer = page.locator('p')
  await until('the page shows the first half', async () => (await answer.textContent()) === 'Hello, ')
  writeFileSync(join(folder, 'go-on'), '')
  await page.locator('p[data-status=completed]').waitFor()
  expect(await answer.textContent()).toBe('Hello, Ada!')
  expect(complaints).toEqual([])
})

test('an error of the protocol that a user’s module throws keeps its code, and is not tried again', async () => {
  const headers = { 'content-type': 'application/json' }
  const created = await fetch(`${url}/v1/tasks`, { method: 'POST', headers, body: JSON.stringify({ agent: 'strict' }) })
  const { task } = (await created.json()) as { task: { id: string } }
  const turns = await until('the turn has failed', async () => {
    const detail = (await (await fetch(`${url}/v1/tasks/${task.id}`)).json()) as { task: { status: string }; turns: object[] }
    return detail.task.status === 'failed' && detail.turns
  })
  expect(turns).toMatchObject([{ status: 'failed', attempt: 1, error: { code: 'validation_failed' } }])
})

test.each([
  ['rivulet build', () => run('npx', ['rivulet', 'build', 'built.ts', '--out', 'own'], folder)],
  ['esbuild, with createWorker in a program of one’s own', () => bundleOwnWorker()],
])('runs a worker that was bundled by %s, elsewhere and with plain Node; its spans reach an older SDK', async (_, bundle) => {
  const { elsewhere, redisUrl } = await bundleElsewhere(bundle)
  const collector = await startSpanCollector()
  const worker = start(process.execPath, ['main.mjs'], elsewhere, { REDIS_URL: redisUrl, RIVULET_URL: url, ...collector.environment })
  onTestFinished(async () => {
    await worker.interrupt()
    await collector.close()
  })
  await worker.says('worker is ready')
  expect(await run('npx', ['rivulet', 'run', 'built', 'Ada'], folder)).toBe('Built for Ada\n')
  await until('the span of the turn has reached the collector', () => collector.spans.some(({ name }) => name === 'turn built'))
})

test('a worker that rivulet build made isolates a turn that killed two workers, and lets a turn end before it stops', async () => {
  const { elsewhere, redisUrl } = await bundleElsewhere(() => run('npx', ['rivulet', 'build', 'built.ts', '--out', 'own'], folder))
  const thrice = `${process.execPath} main.mjs; ${process.execPath} main.mjs; exec ${process.execPath} main.mjs`
  const worker = start('sh', ['-c', thrice], elsewhere, { REDIS_URL: redisUrl, RIVULET_URL: url })
  onTestFinished(() => worker.interrupt())
  await worker.says('worker is ready')
  expect(await run('npx', ['rivulet', 'run', 'fatal', 'Ada'], folder)).toBe('alone\n')
  expect(worker.output().split('worker is ready')).toHaveLength(4)

  const sign = join(elsewhere, 'go-on')
  const caller = start('npx', ['rivulet', 'run', 'lasting', sign], folder)
  await caller.says('begun')
  const stopped = worker.interrupt()
  await worker.says('worker is stopping')
  writeFileSync(sign, '')
  await caller.says('ended')
  await stopped
})

/** Bundles a worker, and copies it to a folder that has nothing else. */
async function bundleElsewhere(bundle: () => Promise<unknown>): Promise<{ elsewhere: string; redisUrl: string }> {
  rmSync(join(folder, 'own'), { recursive: true, force: true })
  await bundle()
  const elsewhere = mkdtempSync(join(tmpdir(), 'rivulet-bundle-'))
  onTestFinished(() => rmSync(elsewhere, { recursive: true, force: true }))
  cpSync(join(folder, 'own'), elsewhere, { recursive: true })
  const { redisUrl } = JSON.parse(readFileSync(join(folder, '.rivulet/running.json'), 'utf8'))
  return { elsewhere, redisUrl }
}

async function bundleOwnWorker(): Promise<void> {
  mkdirSync(join(folder, 'own'))
  const options = { bundle: true, platform: 'node', format: 'esm', logLevel: 'silent' } as const
  await build({ entryPoints: [join(folder, 'own-worker.ts')], outfile: join(folder, 'own/main.mjs'), ...options })
}
