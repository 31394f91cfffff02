/**
 * The images' steps as plain commands, in folders instead of containers: what the Dockerfile copies and runs is copied and run, and what it and
 * docker-compose.yml start is started, as a user without rights where this one has them, on the engines of the test.
 *
 * Addresses are the test's own: a name like `redis` is nobody's here, and a port may be somebody's.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient } from '@rivulet/client'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type ComposeFile, environmentOf, readComposeFile } from '../support/compose-file.ts'
import { parseDockerfile, parseDockerignore, type Stage } from '../support/dockerfile.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'

const checkout = fileURLToPath(new URL('../../', import.meta.url))
const stages = parseDockerfile(readFileSync(join(checkout, 'Dockerfile'), 'utf8'))
const { services }: ComposeFile = readComposeFile(readFileSync(join(checkout, 'docker-compose.yml'), 'utf8'))
const database = `images_${randomBytes(4).toString('hex')}`
const running: ChildProcess[] = []

type Image = 'api' | 'worker'
type Service = Image | 'migrate'

let folder: string
let addresses: Record<string, string>
let ports: Record<'4000' | '4001' | '9464', string>

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rivulet-images-'))
  // The programs run as another user.
  chmodSync(folder, 0o755)
  ports = { 4000: await freePort(), 4001: await freePort(), 9464: await freePort() }
  await administer(`create database ${database}`)
  addresses = {
    REDIS_URL: inject('redisUrl'),
    REDIS_PREFIX: database,
    DATABASE_URL: Object.assign(new URL(inject('postgresUrl')), { pathname: `/${database}` }).href,
    RIVULET_URL: `http://127.0.0.1:${ports[4001]}`,
    ...{ HOST: '127.0.0.1', PORT: ports[4000], INTERNAL_HOST: '127.0.0.1', INTERNAL_PORT: ports[4001], WORKER_METRICS_PORT: ports[9464] },
  }
})
afterAll(async () => {
  for (const child of running) child.kill('SIGKILL')
  await administer(`drop database ${database} with (force)`)
  rmSync(folder, { recursive: true, force: true })
})

test('every step of the Dockerfile works on what .dockerignore lets through', { timeout: 900_000 }, () => {
  const isInContext = parseDockerignore(readFileSync(join(checkout, '.dockerignore'), 'utf8'))
  const filter = (path: string) => path === checkout || isInContext(relative(checkout, path))
  cpSync(checkout, join(folder, 'context'), { recursive: true, filter })
  for (const stage of stages) {
    mkdirSync(placeIn(stage, stage.workdir), { recursive: true })
    for (const { instruction, flags, text } of stage.steps) {
      if (instruction === 'COPY') copy(stage, flags.from, text.split(/\s+/))
      // What npm has in its cache need not be fetched again.
      else
        execFileSync('sh', ['-c', text], { cwd: placeIn(stage, stage.workdir), env: { ...process.env, npm_config_prefer_offline: 'true' } })
    }
  }
})

test('beyond its own machine, the API refuses to start without a key', () => {
  const [program, args] = commandLine(stageOf('api').command)
  const { REDIS_URL = '', DATABASE_URL = '' } = addresses
  const env = { ...stageOf('api').env, REDIS_URL, DATABASE_URL }
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8', ...placeOf('api'), env })
  expect([status, stderr]).toEqual([1, expect.stringContaining('others than this machine could call without a key: set RIVULET_KEY')])
})

test('migrations, API and worker start as docker-compose.yml says, and a task runs through them', async () => {
  const migrated = start('migrate', 'api')
  expect(await ended(migrated)).toEqual([0, null])

  const api = start('api', 'api')
  await healthy('api', 'api')
  const worker = start('worker', 'worker')
  await healthy('worker', 'worker')

  const url = `http://127.0.0.1:${ports[4000]}`
  const client = createClient({ url, key: 'rivulet-on-this-machine' })
  await until('the worker has come', async () => (await client.agents.list()).length > 0)
  const task = await client.tasks.create({ agent: 'echo', input: 'hello from an image' })
  expect(await task.result()).toMatchObject({ status: 'completed', text: 'hello from an image' })
  expect((await fetch(`${url}/v1/tasks`)).status).toBe(401)

  const page = await (await fetch(url)).text()
  const [script = ''] = /\/assets\/[\w.-]+\.js/.exec(page) ?? []
  expect((await fetch(url + script)).headers.get('content-type')).toContain('javascript')
  expect((await fetch(`${url}/docs/static/swagger-ui-bundle.js`)).status).toBe(200)
  expect((await fetch(`http://127.0.0.1:${ports[4001]}/v1/tasks`)).status).toBe(404)

  for (const [child, name] of [[worker, 'worker'] as const, [api, 'api'] as const]) {
    const asked = performance.now()
    child.kill(stageOf(name).stopSignal as NodeJS.Signals)
    expect(await ended(child)).toEqual([0, null])
    expect(performance.now() - asked).toBeLessThan(1_000 * Number.parseInt(services[name]?.stop_grace_period ?? '', 10))
  }
})

function copy(stage: Stage, from: string | undefined, paths: string[]): void {
  const target = paths.at(-1) ?? ''
  for (const path of paths.slice(0, -1)) {
    const source = from ? placeIn(stageOf(from), path) : join(folder, 'context', path)
    const isFile = target.endsWith('/') && !from
    const destination = join(placeIn(stage, stage.workdir), target, isFile ? basename(path) : '')
    cpSync(source, destination, { recursive: true })
  }
}

/** A service of docker-compose.yml, in the image that it names. */
function start(service: Service, image: Image): ChildProcess {
  const { command } = services[service] ?? {}
  const [program, args] = commandLine(Array.isArray(command) ? command : stageOf(image).command)
  const child = spawn(program, args, { ...placeOf(image), env: environment(image, service), stdio: ['ignore', 'inherit', 'inherit'] })
  running.push(child)
  return child
}

/** Both the image and docker-compose.yml say how to ask. */
async function healthy(service: Service, image: Image): Promise<void> {
  const { healthcheck } = services[service] ?? {}
  const own = healthcheck && 'test' in healthcheck ? healthcheck.test.slice(1).map(withPorts) : []
  for (const command of [stageOf(image).healthcheck, own]) {
    const [program, args] = commandLine(command)
    const options = { ...placeOf(image), env: environment(image, service) }
    await until(`${service} is healthy`, () => spawnSync(program, args, options).status === 0)
  }
}

function withPorts(text: string): string {
  return text.replaceAll(/\b(4000|4001|9464)\b/g, (_, port: keyof typeof ports) => ports[port])
}

function commandLine([program, ...args]: readonly string[]): [string, string[]] {
  if (program !== 'node') throw new Error(`No test starts ${program}`)
  return [process.execPath, args]
}

function placeOf(image: Image): { cwd: string; uid?: number; gid?: number } {
  const stage = stageOf(image)
  return { cwd: placeIn(stage, stage.workdir), ...(process.getuid?.() === 0 && { uid: 65_534, gid: 65_534 }) }
}

/** What the image sets, and what the service sets, if that is not about where something is. */
function environment(image: Image, service: Service): Record<string, string> {
  const own = environmentOf(services[service] ?? missing(service), addresses)
  const here = Object.entries(own).map(([name, value]) => [name, addresses[name] ?? value])
  return { PATH: process.env.PATH ?? '', ...stageOf(image).env, ...Object.fromEntries(here) }
}

function placeIn({ name }: Stage, path: string): string {
  return join(folder, 'stages', name, path)
}

function stageOf(name: string): Stage {
  return stages.find(stage => stage.name === name) ?? missing(name)
}

function missing(name: string): never {
  throw new Error(`There is no ${name}`)
}

async function ended(child: ChildProcess): Promise<unknown[]> {
  return child.exitCode === null && child.signalCode === null ? once(child, 'exit') : [child.exitCode, child.signalCode]
}

async function administer(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') })
  await client.connect()
  await client.query(sql)
  await client.end()
}
