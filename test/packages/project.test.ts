/**
 * A project of `npx rivulet init`: each command of its README, and the commands of its Dockerfile as plain commands, up to its agent in an API and a
 * worker with traces and metrics. The packages come from a registry on this machine, because `npm ci` needs one that has them.
 */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@rivulet/client'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { commandsOf } from '../rules/documented-commands.ts'
import { createTestDatabase, keyPrefix } from '../support/engines/database.ts'
import { freePort } from '../support/free-port.ts'
import { type Environment, type Program, run, start } from '../support/process/typed-commands.ts'
import { readEnvFile } from '../support/texts/compose-file.ts'
import { createImageFolders, type ImageFolders } from '../support/texts/image-folders.ts'
import { until } from '../support/until.ts'
import { type Registry, startRegistry } from './registry.ts'
import { type SpanCollector, startSpanCollector } from './span-collector.ts'

const consumer = inject('consumer')
const folder = mkdtempSync(join(tmpdir(), 'rivulet-shop-'))
const shop = join(folder, 'shop')
const greeting = 'Hello, Ada! What shall we do today?'
let registry: Registry
/** In capitals, because `init` hides the settings of the npm that runs it from the npm that it runs. */
let published: Environment

beforeAll(async () => {
  // Postgres runs as another user when this is root.
  chmodSync(folder, 0o755)
  registry = await startRegistry(inject('tarballs'))
  published = { NPM_CONFIG_REGISTRY: registry.url }
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  await run('npm', ['install', '--no-audit', '--no-fund', '--silent', 'rivulet'], folder, published)
})
afterAll(async () => {
  await registry.close()
  rmSync(folder, { recursive: true, force: true })
})

test('init makes a project of versions, also where the packages are only tarballs', async () => {
  await run('npx', ['rivulet', 'init', 'shop'], consumer)
  await run('npx', ['rivulet', 'init', 'shop'], folder, published)
  for (const parent of [consumer, folder]) {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(parent, 'shop/package.json'), 'utf8'))
    for (const [name, range] of Object.entries({ ...dependencies, ...devDependencies }))
      expect([name, range]).toEqual([name, expect.stringMatching(/^\^\d/)])
    expect(await run('npm', ['test'], join(parent, 'shop'))).toMatch(/ pass 2\n[\s\S]* fail 0\n/)
  }
})

describe('its README', () => {
  const isRun: Record<string, boolean> = {}
  let platform: Program
  let port: string

  beforeAll(async () => {
    for (const command of commandsOf(readFileSync(join(shop, 'README.md'), 'utf8'))) isRun[command] = false
    await type('npm install', published)
    port = await freePort()
    isRun['npm start'] = true
    platform = start('npm', ['start'], shop, { PORT: port })
    await platform.says('Rivulet is ready')
  })
  afterAll(() => platform.interrupt())

  test('starts the project, and runs its agent from another terminal', async () => {
    expect(await type('npx rivulet run greeter Ada')).toBe(`${greeting}\n`)
    expect(await type('npx rivulet tasks')).toMatch(/greeter +completed/)
  })

  test('tests it, and checks its types', async () => {
    expect(await type('npm test')).toMatch(/ pass 2\n[\s\S]* fail 0\n/)
    await type('npm run check')
  })

  test('builds a worker for production, which runs the agent', async () => {
    await type('npm run build')
    const { redisUrl, url, workerKey } = JSON.parse(readFileSync(join(shop, '.rivulet/running.json'), 'utf8'))
    const own = { REDIS_URL: redisUrl, RIVULET_URL: url, RIVULET_WORKER_KEY: workerKey ?? '' }
    const command = 'node --enable-source-maps dist/main.mjs'
    isRun[command] = true
    const worker = start('sh', ['-c', command], shop, own)
    onTestFinished(() => worker.interrupt())
    await worker.says('worker is ready')
    const workers = await createClient({ url }).agents.workers()
    expect(workers).toHaveLength(2)
  })

  test('shows no command that was not run', () => {
    expect(Object.keys(isRun).filter(command => !isRun[command])).toEqual([])
  })

  function type(command: string, env: Environment = {}): Promise<string> {
    expect(Object.keys(isRun)).toContain(command)
    isRun[command] = true
    return run('sh', ['-c', command], shop, env)
  }
})

describe('its Dockerfile', () => {
  let images: ImageFolders
  let collector: SpanCollector
  let shared: Environment
  let secrets: Environment
  let port: string

  beforeAll(async () => {
    images = createImageFolders(shop, join(folder, 'images'))
    collector = await startSpanCollector()
    port = await freePort()
    await run('sh', ['scripts/make-env.sh'], shop)
    secrets = readEnvFile(readFileSync(join(shop, '.env'), 'utf8'))
    shared = { REDIS_URL: inject('redisUrl'), REDIS_PREFIX: keyPrefix(), ...collector.environment }
    mkdirSync(join(folder, 'images'))
    await images.build({ ...process.env, ...published })
  })
  afterAll(() => collector.close())

  test('makes an API and a worker that run the agent with plain Node, with spans, metrics and a key of the command line', async () => {
    const { RIVULET_KEY = '', RIVULET_WORKER_KEY = '', KEY_PEPPER = '' } = secrets
    const database = { DATABASE_URL: (await createTestDatabase()).url }
    const keys = { RIVULET_KEY, RIVULET_WORKER_KEY, KEY_PEPPER }
    const api = startImage('api', { ...database, ...keys, HOST: '127.0.0.1', PORT: port })
    await api.says('api is listening')
    const metricsPort = await freePort()
    const url = `http://127.0.0.1:${port}`
    const worker = startImage('worker', { RIVULET_URL: url, RIVULET_WORKER_KEY, WORKER_METRICS_PORT: metricsPort })
    await worker.says('worker is ready')
    for (const program of [api, worker]) await program.says('traces go to the OpenTelemetry SDK of this process (API 1.4.1)')

    const traceId = '0af7651916cd43dd8448eb211c80319c'
    const traced: typeof fetch = (input, init) => {
      const headers = new Headers(init?.headers)
      headers.set('traceparent', `00-${traceId}-b7ad6b7169203331-01`)
      return fetch(input, { ...init, headers })
    }
    const client = createClient({ url, key: RIVULET_KEY, fetch: traced })
    expect(await client.run({ agent: 'greeter', input: 'Ada' })).toMatchObject({ text: greeting })
    const names = () => collector.spans.filter(span => span.traceId === traceId).map(({ name }) => name)
    await until('the spans of both processes have reached the collector', () =>
      ['POST /v1/tasks', 'turn greeter'].every(name => names().includes(name)),
    )

    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    expect(metrics).toMatch(/^rivulet_worker_turns_running 0$/m)
    const check = images.stageOf('worker').healthcheck
    await runImage('worker', check, { WORKER_METRICS_PORT: metricsPort })
    await runImage('api', images.stageOf('api').healthcheck, { PORT: port })

    const create = ['node', 'main.mjs', 'keys', 'create', '--tenant', 'acme', '--scope', 'tasks:read', '--json']
    const { key } = JSON.parse(await runImage('api', create, { ...database, ...keys })) as { key: string }
    expect((await createClient({ url, key }).tasks.list()).data).toEqual([])
  })

  function startImage(image: string, env: Environment): Program {
    const { command, env: own } = images.stageOf(image)
    const [program = '', ...args] = command
    const started = start(program, args, images.placeOf(image), { ...own, ...shared, ...env })
    onTestFinished(() => started.interrupt())
    return started
  }

  function runImage(image: string, [program = '', ...args]: readonly string[], env: Environment): Promise<string> {
    return run(program, args, images.placeOf(image), env)
  }
})
