/** The Dockerfile and the compose file. `test/slow/images.test.ts` shows that the images work. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { allVariables } from '../../scripts/generated/variables.ts'
import { readComposeFile, readEnvFile } from '../support/texts/compose-file.ts'
import { parseDockerfile, parseDockerignore } from '../support/texts/dockerfile.ts'
import { exists, filesUnder, readText, workspaceFolders } from './repository.ts'

const text = readText('docker-compose.yml')
const secrets = makeSecrets()
const stages = parseDockerfile(readText('Dockerfile'))
const build = stages.find(({ name }) => name === 'build')
const isInContext = parseDockerignore(readText('.dockerignore'))
const composes = spawnSync('docker', ['compose', 'version']).status === 0

describe('docker-compose.yml', () => {
  const { services } = readComposeFile(text, secrets)

  test('fits the schema of the Compose specification', () => {
    const isCompose = composeSchema()
    expect([isCompose(parse(text, { merge: true })), isCompose.errors]).toEqual([true, null])
    expect(isCompose(parse(text.replace('restart: unless-stopped', 'restarts: unless-stopped'), { merge: true }))).toBe(false)
  })

  test('says in the words that are known here what there is', () => {
    expect(Object.keys(services)).toEqual(['redis', 'postgres', 'roles', 'migrate', 'api', 'worker'])
  })

  test.runIf(composes)('fits what Docker Compose says itself', () => {
    const { status, stderr } = spawnSync('docker', ['compose', 'config', '--quiet'], {
      ...{ cwd: fileURLToPath(new URL('../..', import.meta.url)), encoding: 'utf8', env: { ...process.env, ...secrets } },
    })
    expect([status, stderr]).toEqual([0, ''])
  })

  test.each([
    ['an unknown word', 'restart: unless-stopped', 'restarts: unless-stopped'],
    ['a duration without a unit', 'stop_grace_period: 20s', 'stop_grace_period: 20'],
    ['a port that is open to other machines', '"127.0.0.1:6379:6379"', '"6379:6379"'],
    ['a service that is not there', 'migrate: { condition', 'migrations: { condition'],
    ['a condition that there is not', 'service_completed_successfully', 'service_done'],
    ['a volume that is not declared', '- redis:/data', '- memory:/data'],
    ['a variable in a way that versions of Compose differ on', 'PORT:-4000', 'PORT:+4000'],
    ['a file of this machine that a container could change', 'roles.sql:ro', 'roles.sql'],
  ])('%s would be noticed', (_, find, replace) => {
    expect(text).toContain(find)
    expect(() => readComposeFile(text.replace(find, replace), secrets)).toThrow()
  })

  test.each([{}, { HOST: '0.0.0.0', PORT: '5000' }])('nothing is open to others than this machine, whatever is in .env: %o', variables => {
    const ports = Object.values(readComposeFile(text, { ...secrets, ...variables }).services).flatMap(({ ports }) => ports)
    expect(ports).toHaveLength(3)
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/)
  })

  test.each(Object.keys(secrets))('without %s nothing starts, and the error says what to do', name => {
    for (const value of [undefined, ''])
      expect(() => readComposeFile(text, { ...secrets, [name]: value })).toThrow(`${name} is missing: run sh scripts/make-env.sh`)
  })

  test('no password in it is the same for every installation', () => {
    const other = readComposeFile(text, makeSecrets()).services
    const passwords = Object.entries(services).flatMap(([service, { environment }]) =>
      Object.entries(environment)
        .filter(([name, value]) => value !== null && /(PASSWORD|AUTH|KEY|PEPPER|(REDIS|DATABASE)_URL)$/.test(name))
        .map(([name, value]) => [name, value, other[service]?.environment[name]]),
    )
    expect(passwords.length).toBeGreaterThan(8)
    expect(passwords.filter(([, here, there]) => here === there)).toEqual([])
  })

  test('each container has the secrets that it needs, and no others', () => {
    const held = Object.entries(services).map(([service, definition]) => {
      const said = JSON.stringify(definition)
      return [service, Object.keys(secrets).filter(name => said.includes(secrets[name] ?? ''))]
    })
    expect(Object.fromEntries(held)).toEqual({
      redis: ['REDIS_PASSWORD'],
      postgres: ['POSTGRES_PASSWORD'],
      roles: ['POSTGRES_PASSWORD', 'POSTGRES_API_PASSWORD'],
      migrate: ['POSTGRES_PASSWORD'],
      api: ['RIVULET_KEY', 'RIVULET_WORKER_KEY', 'KEY_PEPPER', 'SECRETS_KEY', 'REDIS_PASSWORD', 'POSTGRES_API_PASSWORD'],
      worker: ['RIVULET_WORKER_KEY', 'REDIS_PASSWORD'],
    })
  })

  test('the API logs in as a role of its own, and what it mounts is there', () => {
    expect(new URL(services.api?.environment.DATABASE_URL ?? '').username).toBe('rivulet_api')
    expect(readText('ops/postgres/roles.sql')).toContain('CREATE ROLE rivulet_api NOSUPERUSER NOBYPASSRLS')
    expect(services.roles?.volumes).toEqual(['./ops/postgres/roles.sql:/roles.sql:ro'])
  })

  test.each([
    ['api', 'API'],
    ['worker', 'worker'],
  ] as const)('every variable of the %s is decided there, or handed on from .env', (service, program) => {
    // The container has no files of this machine.
    const variables = allVariables().filter(
      ({ name, readBy, isInternal }) => readBy.includes(program) && !isInternal && name !== 'AGENT_FILES',
    )
    expect(Object.keys(services[service]?.environment ?? {}).sort()).toEqual(variables.map(({ name }) => name).sort())
  })

  test('a worker cannot reach the database, and the port for workers is not published', () => {
    expect(JSON.stringify(services.worker)).not.toMatch(/postgres|PEPPER|RIVULET_KEY/)
    const { INTERNAL_PORT: internal } = services.api?.environment ?? {}
    expect(services.worker?.environment.RIVULET_URL).toBe(`http://api:${internal}`)
    expect(services.api?.ports.some(port => port.endsWith(`:${internal}`))).toBe(false)
  })
})

describe('scripts/make-env.sh', () => {
  test('writes what docker-compose.yml needs, for its owner alone, each different and long enough', () => {
    const needed = new Set(Array.from(text.matchAll(/\$\{(\w+):\?/g), ([, name]) => name))
    expect(Object.keys(secrets).sort()).toEqual([...needed].sort())
    expect(new Set(Object.values(secrets)).size).toBe(needed.size)
    for (const secret of Object.values(secrets)) expect(secret).toMatch(/^[0-9a-f]{64}$/)
    expect(Object.values(makeSecrets()).some(secret => Object.values(secrets).includes(secret))).toBe(false)
  })

  test('keeps what is set already', () => {
    const own = makeSecrets('PORT=4100\nRIVULET_KEY=my own\nKEY_PEPPER=\n# REDIS_PASSWORD=\nLOG_LEVEL=debug')
    expect(own).toMatchObject({ PORT: '4100', RIVULET_KEY: 'my own', LOG_LEVEL: 'debug' })
    expect(Object.keys(own)).toEqual(expect.arrayContaining(Object.keys(secrets)))
    expect(own.KEY_PEPPER).toMatch(/^[0-9a-f]{64}$/)
  })
})

describe('the Dockerfile', () => {
  test('copies what is there and part of the context', () => {
    const sources = stages.flatMap(({ steps }) =>
      steps.filter(({ instruction, flags }) => instruction === 'COPY' && !flags.from).flatMap(({ text }) => text.split(/\s+/).slice(0, -1)),
    )
    expect(sources).toContain('package-lock.json')
    expect(sources.filter(path => !exists(path) || !isInContext(path))).toEqual([])
  })

  test('installs every workspace before it copies a source', () => {
    const steps = build?.steps ?? []
    const install = steps.findIndex(({ text }) => text.startsWith('npm ci'))
    const manifests = steps.slice(0, install).map(({ text }) => text)
    expect(manifests.slice(1)).toEqual(
      workspaceFolders()
        .sort()
        .map(folder => `${folder}/package.json ${folder}/`),
    )
    expect(manifests[0]).toBe('package.json package-lock.json .npmrc ./')
  })

  test.each(['api', 'worker'])('the image of the %s runs as a user without rights, ends by SIGTERM, and tells how it is', name => {
    const stage = stages.find(stage => stage.name === name)
    expect(stage).toMatchObject({ user: 'node', stopSignal: 'SIGTERM', command: ['node', '--enable-source-maps', 'main.mjs'] })
    expect(stage?.healthcheck[0]).toBe('node')
    expect(stage?.steps.map(({ flags, text }) => [flags, text])).toEqual([[{ from: 'build' }, `/app/dist/${name} ./`]])
  })
})

test.each(['Dockerfile', 'apps/cli/template/Dockerfile.template', 'docker-compose.yml'])(
  'every image that %s takes is named by its digest',
  file => {
    const stageNames = new Set(stages.map(({ name }) => name))
    const images = Array.from(readText(file).matchAll(/^(?:FROM| +image:) (\S+)/gm), ([, image = '']) => image)
    const foreign = images.filter(image => !stageNames.has(image) && !image.startsWith('rivulet-'))
    expect(foreign.length).toBeGreaterThan(0)
    for (const image of foreign) expect(image).toMatch(/^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/)
  },
)

test('every action of the workflows is named by its commit, and the packages are published with their provenance', () => {
  const workflows = filesUnder('.github/workflows').map(readText)
  const actions = workflows.flatMap(text => Array.from(text.matchAll(/uses: (.+)/g), ([, action = '']) => action))
  expect(actions.length).toBeGreaterThan(5)
  for (const action of actions) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  const release = readText('.github/workflows/release.yml')
  expect([release.includes('id-token: write'), release.includes('NPM_CONFIG_PROVENANCE: "true"')]).toEqual([true, true])
})

test('no password of docker-compose.yml is on a command line', () => {
  for (const { command } of Object.values(readComposeFile(text, secrets).services))
    for (const secret of Object.values(secrets)) expect(JSON.stringify(command ?? '')).not.toContain(secret)
})

test('no secret, no installed package and no leftover is sent to a build', () => {
  for (const path of [
    '.env',
    '.git/config',
    '.rivulet/postgres',
    'node_modules/zod',
    'apps/api/node_modules/x',
    'dist/api',
    'apps/console/dist',
  ])
    expect([path, isInContext(path)]).toEqual([path, false])
  for (const path of [...filesUnder('packages/broker/src/lua'), 'apps/api/src/main.ts', '.npmrc'])
    expect([path, isInContext(path)]).toEqual([path, true])
})

/** What the script makes of a file that holds this. */
function makeSecrets(before?: string): Record<string, string> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-env-'))
  const file = join(folder, '.env')
  try {
    if (before !== undefined) writeFileSync(file, before, { mode: 0o644 })
    // A second run changes nothing.
    const texts = [1, 2].map(() => {
      execFileSync('sh', [fileURLToPath(new URL('../../scripts/make-env.sh', import.meta.url)), file])
      return readFileSync(file, 'utf8')
    })
    if (texts[0] !== texts[1] || (statSync(file).mode & 0o777) !== 0o600) throw new Error('It did not keep what it wrote to itself')
    return readEnvFile(texts[1] ?? '')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The specification's own schema, which a linter of Compose files brings along. */
function composeSchema() {
  const linter = createRequire(import.meta.url).resolve('dclint/package.json')
  const schema = JSON.parse(readFileSync(join(dirname(linter), 'schemas/compose.schema.json'), 'utf8'))
  // It names a version of JSON Schema by an address that is not the one Ajv knows it by.
  return new Ajv({ strict: false, validateSchema: false, validateFormats: false }).compile(schema)
}
