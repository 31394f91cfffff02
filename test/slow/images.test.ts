/**
 * The images' steps as plain commands, in folders instead of containers: what the Dockerfile copies and runs is copied and run, and what it and
 * docker-compose.yml start is started, as a user without rights where this one has them, on the engines of the test.
 *
 * Addresses are the test's own: a name like `redis` does not resolve here, and a port may be taken.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient } from '@rivulet/client'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { runPsqlFile } from '../support/engines/psql-file.ts'
import { freePort } from '../support/free-port.ts'
import { type ComposeFile, environmentOf, readComposeFile, readEnvFile } from '../support/texts/compose-file.ts'
import { createImageFolders } from '../support/texts/image-folders.ts'
import { until } from '../support/until.ts'

const checkout = fileURLToPath(new URL('../../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'rivulet-images-'))
const images = createImageFolders(checkout, folder)
const secrets = makeSecrets()
const { services }: ComposeFile = readComposeFile(readFileSync(join(checkout, 'docker-compose.yml'), 'utf8'), secrets)
const database = `images_${randomBytes(4).toString('hex')}`
const running: ChildProcess[] = []
const hasRedis = ['redis-server', 'redis-cli'].every(program => spawnSync(program, ['--version']).status === 0)

type Image = 'api' | 'worker'
type Service = Image | 'migrate'

let addresses: Record<string, string>
let ports: Record<'4000' | '4001' | '9464', string>

beforeAll(async () => {
  // The programs run as another user.
  chmodSync(folder, 0o755)
  ports = { 4000: await freePort(), 4001: await freePort(), 9464: await freePort() }
  await administer(`create database ${database}`)
  addresses = {
    REDIS_URL: inject('redisUrl'),
    REDIS_PREFIX: database,
    RIVULET_URL: `http://127.0.0.1:${ports[4001]}`,
    ...{ HOST: '127.0.0.1', PORT: ports[4000], INTERNAL_HOST: '127.0.0.1', INTERNAL_PORT: ports[4001], WORKER_METRICS_PORT: ports[9464] },
  }
})
afterAll(async () => {
  for (const child of running) child.kill('SIGKILL')
  await administer(`drop database ${database} with (force)`)
  await administer('drop role if exists rivulet_api')
  rmSync(folder, { recursive: true, force: true })
})

test('every step of the Dockerfile works on what .dockerignore lets through', { timeout: 900_000 }, async () => {
  // What npm has in its cache need not be fetched again.
  await images.build({ ...process.env, npm_config_prefer_offline: 'true' })
})

test('beyond its own machine, the API refuses to start without a key', () => {
  const [program, args] = commandLine(images.stageOf('api').command)
  const { REDIS_URL = '' } = addresses
  const env = { ...images.stageOf('api').env, REDIS_URL, DATABASE_URL: inject('postgresUrl') }
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8', ...placeOf('api'), env })
  expect([status, stderr]).toEqual([78, expect.stringContaining('other machines could call without a key: set RIVULET_KEY')])
})

test('roles, migrations, API and worker start as docker-compose.yml says, and a task runs through them', async () => {
  await makeRoles()
  const migrated = start('migrate', 'api')
  expect(await ended(migrated)).toEqual([0, null])

  const api = start('api', 'api')
  await healthy('api', 'api')
  const worker = start('worker', 'worker')
  await healthy('worker', 'worker')

  const url = `http://127.0.0.1:${ports[4000]}`
  const client = createClient({ url, key: secrets.RIVULET_KEY })
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
    child.kill(images.stageOf(name).stopSignal as NodeJS.Signals)
    expect(await ended(child)).toEqual([0, null])
    expect(performance.now() - asked).toBeLessThan(1_000 * Number.parseInt(services[name]?.stop_grace_period ?? '', 10))
  }
})

test.skipIf(!hasRedis)('Redis starts as docker-compose.yml says, asks for the password, and its health check has it', async () => {
  const { command, healthcheck } = services.redis ?? missing('redis')
  const [shell = '', flag = '', script = ''] = [command ?? ''].flat()
  const port = await freePort()
  mkdirSync(join(folder, 'redis'))
  const here = `--port ${port} --bind 127.0.0.1 --dir ${join(folder, 'redis')} <<`
  const own = script.replace('docker-entrypoint.sh ', '').replace('<<', here)
  const env = { ...process.env, ...environmentOf(services.redis ?? missing('redis')) }
  running.push(spawn(shell, [flag, own], { stdio: 'ignore', env }))
  const [cli = '', ...question] = healthcheck && 'test' in healthcheck ? healthcheck.test.slice(1) : []
  const ask = (own: Record<string, string>) =>
    spawnSync(cli, ['-p', port, ...question], { env: { PATH: process.env.PATH, ...own }, encoding: 'utf8' })
  await until('Redis is healthy', () => ask(environmentOf(services.redis ?? missing('redis'))).status === 0)
  expect(ask({})).toMatchObject({ status: 1, stderr: expect.stringContaining('NOAUTH') })
})

/** A service of docker-compose.yml, in the image that it names. */
function start(service: Service, image: Image): ChildProcess {
  const { command } = services[service] ?? {}
  const [program, args] = commandLine(Array.isArray(command) ? command : images.stageOf(image).command)
  const child = spawn(program, args, { ...placeOf(image), env: environment(image, service), stdio: ['ignore', 'inherit', 'inherit'] })
  running.push(child)
  return child
}

/** Both the image and docker-compose.yml say how to ask. */
async function healthy(service: Service, image: Image): Promise<void> {
  const { healthcheck } = services[service] ?? {}
  const own = healthcheck && 'test' in healthcheck ? healthcheck.test.slice(1).map(withPorts) : []
  for (const command of [images.stageOf(image).healthcheck, own]) {
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
  return { cwd: images.placeOf(image), ...(process.getuid?.() === 0 && { uid: 65_534, gid: 65_534 }) }
}

/** As the service does it, in the place of psql. */
async function makeRoles(): Promise<void> {
  const { environment, volumes } = services.roles ?? missing('roles')
  const [file = ''] = volumes[0]?.split(':') ?? []
  const { POSTGRES_API_PASSWORD = '' } = environmentOf(services.roles ?? missing('roles'))
  expect(environment).toMatchObject({ PGUSER: 'rivulet', PGDATABASE: 'rivulet' })
  await runPsqlFile(join(checkout, file), ownDatabase().href, { POSTGRES_API_PASSWORD })
}

/** As the service logs in: the engine of the test has a password of its own for its superuser. */
function databaseUrl(service: Service): string {
  const { username, password } = new URL(services[service]?.environment.DATABASE_URL ?? '')
  return username === 'rivulet' ? ownDatabase().href : Object.assign(ownDatabase(), { username, password }).href
}

function ownDatabase(): URL {
  return Object.assign(new URL(inject('postgresUrl')), { pathname: `/${database}` })
}

/** What the image sets, and what the service sets, if that is not about where something is. */
function environment(image: Image, service: Service): Record<string, string> {
  const own = environmentOf(services[service] ?? missing(service), addresses)
  const places: Record<string, string> = { ...addresses, ...(own.DATABASE_URL && { DATABASE_URL: databaseUrl(service) }) }
  const here = Object.entries(own).map(([name, value]) => [name, places[name] ?? value])
  return { PATH: process.env.PATH ?? '', ...images.stageOf(image).env, ...Object.fromEntries(here) }
}

function makeSecrets(): Record<string, string> {
  const place = mkdtempSync(join(tmpdir(), 'rivulet-env-'))
  execFileSync('sh', [join(checkout, 'scripts/make-env.sh'), join(place, '.env')])
  const made = readEnvFile(readFileSync(join(place, '.env'), 'utf8'))
  rmSync(place, { recursive: true })
  return made
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
