/**
 * The description of the API at `/openapi.json`. A route has its own schemas of input and output. Its callers and its errors are the same for all routes
 * of a kind, so this module adds them, from the values that the guard uses.
 */
import type { FastifyDynamicSwaggerOptions, SwaggerTransform } from '@fastify/swagger'
import { entities } from '@rivulet/contract/entities'
import type { Route } from '@rivulet/contract/route'
import { type ErrorCode, type ErrorRow, errorTable } from '@rivulet/protocol'
import type { FastifyInstance, FastifySchema } from 'fastify'
import { createJsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod'
import { z } from 'zod'

export function openApiOptions({ isOpen }: { isOpen: boolean }): FastifyDynamicSwaggerOptions {
  const toJson = createJsonSchemaTransform({})
  return {
    openapi,
    transformObject: document => jsonSchemaTransformObject(document as Parameters<typeof jsonSchemaTransformObject>[0]),
    transform: (given: Parameters<SwaggerTransform>[0]) => {
      const { schema, url } = toJson(given as Parameters<typeof toJson>[0])
      const { contract } = given.route.config ?? {}
      const security = contract ? callersOf(contract, isOpen) : []
      const response = { ...(schema.response as object | undefined), ...rejections(contract ?? {}) }
      return { url, schema: { ...schema, security, response } as FastifySchema }
    },
  }
}

type Document = { info: object; paths?: Record<string, object>; components?: { schemas?: Record<string, object> } }

/**
 * The document, or the part of it that is about some paths. Entities have their names in zod's registry only meanwhile, because everything in the process
 * that converts a schema to JSON would get references otherwise.
 */
export function describeApi(app: FastifyInstance, isAbout: (path: string) => boolean = () => true): Document {
  const named = Object.entries(entities).map(([id, schema]) => ({ schema, meta: z.globalRegistry.get(schema), id }))
  for (const { schema, meta, id } of named) z.globalRegistry.add(schema, { ...meta, id })
  try {
    const { paths = {}, components, ...rest } = app.swagger() as Document
    const own = Object.fromEntries(Object.entries(paths).filter(([path]) => isAbout(path)))
    const schemas = components?.schemas ?? {}
    const used = referencesFrom(own, schemas)
    return {
      ...rest,
      paths: own,
      components: { ...components, schemas: Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name))) },
    }
  } finally {
    for (const { schema, meta } of named) {
      z.globalRegistry.remove(schema)
      if (meta) z.globalRegistry.add(schema, meta)
    }
  }
}

/** An entity as a body, `TaskInput`, is there for most entities, and used for few. */
function referencesFrom(from: object, schemas: Record<string, object>, found = new Set<string>()): Set<string> {
  for (const [, name = ''] of JSON.stringify(from).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    if (found.has(name)) continue
    found.add(name)
    referencesFrom(schemas[name] ?? {}, schemas, found)
  }
  return found
}

/** The roles are scopes of a key, and rights of a token. */
function callersOf({ scope, token, tokenAlso, tokenInQuery }: Route, isOpen: boolean): Record<string, string[]>[] {
  if (scope === null) return []
  const rights = [token ?? []].flat()
  const also = tokenAlso ? [tokenAlso] : []
  return [
    { key: [scope] },
    ...rights.map(right => ({ token: [right, ...also] })),
    ...(tokenInQuery ? rights.map(right => ({ tokenInQuery: [right] })) : []),
    ...(isOpen ? [{}] : []),
  ]
}

const ofKeys = {
  kept: ['idempotency_key_invalid', 'in_flight', 'idempotency_key_reused'],
  rejected: ['idempotency_key_invalid'],
} as const satisfies Record<string, readonly ErrorCode[]>

/** By status, with the codes that it can come with; `default` is for what can be wrong with any request. */
function rejections({ query, params, body, scope, addsWork, idempotencyKey, errors = [] }: Partial<Route>): Record<string, object> {
  const codes = new Set<ErrorCode>([
    'bad_request',
    ...asCodes(query || params || body, 'validation_failed', 'invalid_characters'),
    ...asCodes(body, 'invalid_json', 'invalid_utf8', 'json_too_deep', 'json_too_complex', 'forbidden_key'),
    ...asCodes(body, 'body_too_large', 'unsupported_media_type'),
    ...asCodes(params, 'url_too_long'),
    ...asCodes(scope, 'unauthorized', 'forbidden', 'dependency_unavailable'),
    ...asCodes(scope && scope !== 'worker', 'rate_limited'),
    ...asCodes(addsWork, 'overloaded'),
    ...(idempotencyKey ? ofKeys[idempotencyKey] : []),
    ...errors,
  ])
  const statuses = new Set(Array.from(codes, statusOf))
  const responses = Array.from(statuses, status => [status, rejection([...codes].filter(code => statusOf(code) === status).join(', '))])
  return { ...Object.fromEntries(responses), default: rejection('Any other error of the table') }
}

function statusOf(code: ErrorCode): number {
  const { status = 500 }: ErrorRow = errorTable[code]
  return status
}

function asCodes<C extends ErrorCode>(isSo: unknown, ...codes: C[]): C[] {
  return isSo ? codes : []
}

function rejection(description: string): object {
  return { description, content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } }
}

const openapi: NonNullable<FastifyDynamicSwaggerOptions['openapi']> = {
  openapi: '3.1.0',
  info: {
    title: 'Rivulet',
    version: '1',
    description: 'Agents as asynchronous workers, streamed live.',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  // The API that serves this document, under whatever name its caller knows it.
  servers: [{ url: '/' }],
  components: {
    securitySchemes: {
      key: { type: 'http', scheme: 'bearer', description: 'A key, `rvk_…`. Its roles are scopes; `admin` includes those of tasks.' },
      token: { type: 'http', scheme: 'bearer', description: 'A token for one task, `rvt_…`. Its roles are what it may do.' },
      tokenInQuery: {
        type: 'apiKey',
        in: 'query',
        name: 'token',
        description: 'The same token, for an EventSource, which sends no headers.',
      },
    },
    schemas: {
      Error: {
        type: 'object',
        required: ['error'],
        additionalProperties: false,
        properties: {
          error: {
            type: 'object',
            required: ['code', 'message', 'requestId'],
            properties: {
              code: { type: 'string', enum: Object.entries<ErrorRow>(errorTable).flatMap(([code, { status }]) => (status ? [code] : [])) },
              message: { type: 'string' },
              requestId: { type: 'string', format: 'uuid' },
              details: {
                type: 'array',
                items: {
                  type: 'object',
                  required: ['path', 'reason'],
                  properties: { path: { type: 'string', description: 'A JSON pointer' }, reason: { type: 'string' } },
                },
              },
            },
          },
        },
      },
    },
  },
}
