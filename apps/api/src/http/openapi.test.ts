/** The description of the API: it is OpenAPI 3.1, has every route, and states for each which callers may use it and which errors it returns. */
import { entities } from '@rivulet/contract/entities'
import { callOf, routes } from '@rivulet/contract/routes'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readConfig } from '../config.ts'
import { protocols } from '../protocols/protocols.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { consolePages } from './routes/console.ts'
import { createServer } from './server.ts'
import type { Services } from './services.ts'

const schemaOrReference = z.record(z.string(), z.unknown())
const content = z.record(z.string().regex(/^(\*\/\*|\w+\/[\w.+-]+)$/), z.strictObject({ schema: schemaOrReference }))
const security = z.array(z.record(z.string(), z.array(z.string())))
const operation = z.strictObject({
  operationId: z.string().regex(/^[a-z]+([A-Z][a-z]*)*$/),
  summary: z.string().min(1),
  tags: z.array(z.string()).min(1),
  security,
  parameters: z
    .array(
      z.strictObject({
        name: z.string().min(1),
        in: z.enum(['path', 'query', 'header', 'cookie']),
        required: z.boolean().optional(),
        description: z.string().optional(),
        schema: schemaOrReference,
      }),
    )
    .optional(),
  requestBody: z.strictObject({ required: z.boolean().optional(), content }).optional(),
  responses: z.record(z.string().regex(/^([1-5]\d\d|default)$/), z.strictObject({ description: z.string(), content: content.optional() })),
})
const schemes = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('http'), scheme: z.literal('bearer'), description: z.string() }),
  z.strictObject({ type: z.literal('apiKey'), in: z.enum(['query', 'header', 'cookie']), name: z.string(), description: z.string() }),
])

/** The parts of OpenAPI 3.1 that we use, and no others. */
const openApi = z.strictObject({
  openapi: z.string().regex(/^3\.1\.\d+$/),
  info: z.strictObject({
    title: z.string(),
    version: z.string(),
    description: z.string(),
    license: z.strictObject({ name: z.string(), identifier: z.string() }),
  }),
  servers: z.array(z.strictObject({ url: z.string() })).min(1),
  components: z.strictObject({ schemas: z.record(z.string(), schemaOrReference), securitySchemes: z.record(z.string(), schemes) }),
  paths: z.record(z.string().startsWith('/'), z.partialRecord(z.enum(['get', 'post', 'put', 'delete', 'patch']), operation)),
})

let app: FastifyInstance
let document: z.output<typeof openApi>

async function describeServer(env: Record<string, string> = {}): Promise<FastifyInstance> {
  const config = readConfig({ REDIS_URL: 'redis://127.0.0.1', DATABASE_URL: 'postgres://127.0.0.1/none', ...env })
  // What is asked for when a route is called; none is.
  const services = { config, access: {}, metrics: createMetrics() } as unknown as Services
  const server = await createServer(services, protocols, pino({ level: 'silent' }), { clients: true, workers: true })
  await server.ready()
  return server
}

beforeAll(async () => {
  app = await describeServer({ RIVULET_KEY: 'a-key-that-is-asked-for' })
  document = openApi.parse(JSON.parse((await app.inject('/openapi.json')).body))
})

const operations = () =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { security, ...each }]) => ({
      route: `${method.toUpperCase()} ${path}`,
      path,
      callers: security,
      ...each,
    })),
  )

test('every route is there, but for the pages, their files and the description itself', () => {
  const files = /^\/(docs(\/.*)?|(worker\/v1\/)?openapi\.json|assets\/:name|favicon\.svg)$/
  const served = routesOf(app).filter(({ url, method }) => !files.test(url) && !consolePages.includes(url) && method !== 'HEAD')
  const expected = served.map(({ method, url }) => `${method} ${url.replaceAll(/(?<!\w):(\w+)/g, '{$1}').replaceAll('::', ':')}`)
  expect(expected.length).toBeGreaterThan(20)
  expect(
    operations()
      .map(({ route }) => route)
      .sort(),
  ).toEqual(expected.sort())
})

test('each route of the contract is served, and has its name and its sentence', () => {
  const described = operations().map(({ route, operationId, summary }) => [operationId, route, summary])
  const expected = Array.from(routes, ([name, row]) => [name, callOf(row), row.doc])
  expect(expected.length).toBeGreaterThan(50)
  expect(described.toSorted()).toEqual(expected.toSorted())
})

test('the parameters of a path are declared, and required', () => {
  for (const { route, path, parameters = [] } of operations()) {
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const declared = parameters.filter(each => each.in === 'path')
    expect([route, declared.map(({ name }) => name)]).toEqual([route, named])
    for (const { required } of declared) expect(required).toBe(true)
    expect(new Set(parameters.map(each => `${each.in} ${each.name}`)).size).toBe(parameters.length)
  }
})

test('an entity is one named component wherever a response has it', () => {
  const schemas = Object.keys(document.components.schemas)
  expect(Object.keys(entities).filter(name => !schemas.includes(name))).toEqual([])
  const task = operations().find(({ route }) => route === 'GET /v1/tasks/{id}')?.responses['200']?.content?.['application/json']?.schema
  expect(task).toMatchObject({ properties: { task: { $ref: '#/components/schemas/Task' } } })
})

test('the names of entities are in the document alone, not in what else converts a schema', () => {
  expect(JSON.stringify(z.toJSONSchema(entities.Message, { io: 'input', unrepresentable: 'any' }))).not.toContain('$ref')
})

test('every reference leads somewhere', () => {
  for (const reference of referencesIn(document)) expect([reference, lookUp(reference)]).toEqual([reference, expect.any(Object)])
})

describe('who may call', () => {
  test('is said of every route, in schemes that are described', () => {
    for (const { route, callers } of operations()) {
      const isPublic = /GET \/(healthz|readyz)$/.test(route)
      expect([route, callers.length > 0]).toEqual([route, !isPublic])
      for (const scheme of callers.flatMap(each => Object.keys(each))) expect(document.components.securitySchemes).toHaveProperty(scheme)
    }
  })

  test.each([
    ['GET /v1/tasks', [{ key: ['tasks:read'] }]],
    ['POST /v1/tasks', [{ key: ['tasks:write'] }]],
    ['POST /v1/tasks/{id}/turns', [{ key: ['tasks:write'] }, { token: ['send'] }]],
    ['GET /v1/tasks/{id}/events', [{ key: ['tasks:read'] }, { token: ['read'] }, { tokenInQuery: ['read'] }]],
    ['GET /metrics', [{ key: ['metrics'] }]],
    ['POST /internal/claim', [{ key: ['worker'] }]],
  ])('%s: %j', (route, callers) => {
    expect(operations().find(each => each.route === route)?.callers).toEqual(callers)
  })

  test('where no key is asked for, none is needed', async () => {
    const open = openApi.parse(JSON.parse((await (await describeServer()).inject('/openapi.json')).body))
    expect(open.paths['/v1/tasks']?.get?.security).toEqual([{ key: ['tasks:read'] }, {}])
  })
})

describe('an answer', () => {
  test('is described for each route that has one, and so is every error, in the one shape', () => {
    for (const { route, responses } of operations()) {
      const statuses = Object.keys(responses)
      expect([route, statuses.some(status => /^2/.test(status)), statuses.includes('default')]).toEqual([route, true, true])
      for (const [status, response] of Object.entries(responses)) {
        if (/^2/.test(status)) continue
        const error = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }
        expect([route, status, response.content]).toEqual([route, status, error])
      }
    }
  })

  test('of a route with a key can be that it is not good, or not enough', () => {
    for (const { route, callers, responses } of operations()) {
      expect([route, '401' in responses, '403' in responses]).toEqual([route, callers.length > 0, callers.length > 0])
    }
  })

  test('of a stream is a stream', () => {
    const stream = operations().find(({ route }) => route === 'GET /v1/tasks/{id}/events')
    expect(Object.keys(stream?.responses['200']?.content ?? {})).toEqual(['text/event-stream'])
  })
})

/** What Fastify itself says that it serves. */
function routesOf(server: FastifyInstance): { method: string; url: string }[] {
  const above: string[] = []
  return server
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap(line => {
      const [, indent = '', part = '', methods = ''] = /^([│ ]*)[├└]── (\S+) \(([^)]+)\)$/.exec(line) ?? []
      const depth = indent.length / 4
      above.splice(depth)
      above.push(part)
      const url = above.join('').replaceAll('//', '/')
      return methods ? methods.split(', ').map(method => ({ method, url })) : []
    })
}

function referencesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  const own = '$ref' in value && typeof value.$ref === 'string' ? [value.$ref] : []
  return [...own, ...Object.values(value).flatMap(referencesIn)]
}

function lookUp(reference: string): unknown {
  const steps = reference.replace(/^#\//, '').split('/')
  return steps.reduce<unknown>((value, step) => (value as Record<string, unknown> | undefined)?.[step], document)
}
