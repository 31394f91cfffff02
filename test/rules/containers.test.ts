/** What Docker is told. That the images' steps work is shown by `test/slow/images.test.ts`. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { allVariables } from '../../scripts/variables-table.ts'
import { readComposeFile } from '../support/compose-file.ts'
import { parseDockerfile, parseDockerignore } from '../support/dockerfile.ts'
import { exists, filesUnder, readText, workspaceFolders } from './repository.ts'

const text = readText('docker-compose.yml')
const stages = parseDockerfile(readText('Dockerfile'))
const build = stages.find(({ name }) => name === 'build')
const isInContext = parseDockerignore(readText('.dockerignore'))
const composes = spawnSync('docker', ['compose', 'version']).status === 0

describe('docker-compose.yml', () => {
  const { services } = readComposeFile(text)

  test('fits the schema of the Compose specification', () => {
    const isCompose = composeSchema()
    expect([isCompose(parse(text, { merge: true })), isCompose.errors]).toEqual([true, null])
    expect(isCompose(parse(text.replace('restart: unless-stopped', 'restarts: unless-stopped'), { merge: true }))).toBe(false)
  })

  test('says in the words that are known here what there is', () => {
    expect(Object.keys(services)).toEqual(['redis', 'postgres', 'migrate', 'api', 'worker'])
  })

  test.runIf(composes)('fits what Docker Compose says itself', () => {
    const { status, stderr } = spawnSync('docker', ['compose', 'config', '--quiet'], {
      ...{ cwd: fileURLToPath(new URL('../..', import.meta.url)), encoding: 'utf8' },
    })
    expect([status, stderr]).toEqual([0, ''])
  })

  test.each([
    ['a word that nobody knows', 'restart: unless-stopped', 'restarts: unless-stopped'],
    ['a duration without a unit', 'stop_grace_period: 20s', 'stop_grace_period: 20'],
    ['a port that is open to everybody', '"127.0.0.1:6379:6379"', '"6379:6379"'],
    ['a service that is not there', 'migrate: { condition', 'migrations: { condition'],
    ['a condition that there is not', 'service_completed_successfully', 'service_done'],
    ['a volume that is not declared', '- redis:/data', '- memory:/data'],
    ['a variable in a way that versions of Compose differ on', 'PORT:-4000', 'PORT:+4000'],
  ])('%s would be noticed', (_, find, replace) => {
    expect(text).toContain(find)
    expect(() => readComposeFile(text.replace(find, replace))).toThrow()
  })

  test.each([{}, { HOST: '0.0.0.0', PORT: '5000' }])('nothing is open to others than this machine, whatever is in .env: %o', variables => {
    const ports = Object.values(readComposeFile(text, variables).services).flatMap(({ ports }) => ports)
    expect(ports).toHaveLength(3)
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/)
  })

  test('the API asks for a key: one that everybody knows, or the one in .env', () => {
    const keyFor = (variables: Record<string, string>) => readComposeFile(text, variables).services.api?.environment.RIVULET_KEY
    expect([keyFor({}), keyFor({ RIVULET_KEY: '' }), keyFor({ RIVULET_KEY: 'mine' })]).toEqual([
      ...['rivulet-on-this-machine', 'rivulet-on-this-machine', 'mine'],
    ])
  })

  test.each([
    ['api', 'API'],
    ['worker', 'worker'],
  ] as const)('every variable of the %s is decided there, or handed on from .env', (service, program) => {
    // Files of this machine are none of the container's.
    const variables = allVariables().filter(
      ({ name, readBy, isInternal }) => readBy.includes(program) && !isInternal && name !== 'AGENT_FILES',
    )
    expect(Object.keys(services[service]?.environment ?? {}).sort()).toEqual(variables.map(({ name }) => name).sort())
  })

  test('a worker has no way to the database, and its door is not published', () => {
    expect(JSON.stringify(services.worker)).not.toMatch(/postgres|PEPPER|RIVULET_KEY/)
    const { INTERNAL_PORT: internal } = services.api?.environment ?? {}
    expect(services.worker?.environment.RIVULET_URL).toBe(`http://api:${internal}`)
    expect(services.api?.ports.some(port => port.endsWith(`:${internal}`))).toBe(false)
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

/** The specification's own schema, which a linter of Compose files brings along. */
function composeSchema() {
  const linter = createRequire(import.meta.url).resolve('dclint/package.json')
  const schema = JSON.parse(readFileSync(join(dirname(linter), 'schemas/compose.schema.json'), 'utf8'))
  // It names a version of JSON Schema by an address that is not the one Ajv knows it by.
  return new Ajv({ strict: false, validateSchema: false, validateFormats: false }).compile(schema)
}
