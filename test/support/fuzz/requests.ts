/**
 * Requests at random, to every route that the API says it has: what fits its description, spoiled in one place or several, and brought to it in
 * odd ways. The same seed makes the same requests.
 */
import fc from 'fast-check'
import { type JsonSchema, type Vocabulary, valuesOf } from './schema-values.ts'
import { marker, oddity, spoiled, spoiledJson, text } from './spoiling.ts'

export type OpenApi = { paths: Record<string, Record<string, Operation>> }

export type Parameter = { name: string; in: string; schema: JsonSchema }

export type Operation = {
  parameters?: Parameter[]
  /** A file is of any type. */
  requestBody?: { content: { 'application/json'?: { schema: JsonSchema }; '*/*'?: object } }
}

/** What a body may be; that of a file is any text. */
export function bodySchemaOf({ requestBody }: Operation): JsonSchema | undefined {
  return requestBody?.content['*/*'] ? { type: 'string' } : requestBody?.content['application/json']?.schema
}

export type FuzzedRequest = {
  /** As the description names it: `POST /v1/keys/{id}/rotate`. */
  route: string
  /** Each in a write of its own. */
  pieces: Buffer[]
  /** How many requests there are in them. */
  count: number
  /** Leaves in the midst of it: there may be no answer. */
  isCut: boolean
  /** Its answer has no body, whatever its length says. */
  isHead: boolean
}

export type Keys = { client: string; worker: string }

/** They stand for what is there when the request is sent: ids of tasks and of turns, and of keys, as long as the real ones. */
export const placeholders = Array.from({ length: 8 }, (_, i) => `00000000-0000-7000-8000-00000000000${i}`)
export const keyPlaceholders = Array.from({ length: 2 }, (_, i) => `feed00000000000${i}`)

export const words: Vocabulary = {
  text,
  id: fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...placeholders) }, { weight: 1, arbitrary: fc.uuid() }),
  keyId: fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...keyPlaceholders) }, { weight: 1, arbitrary: fc.constant('0123456789abcdef') }),
  name: fc.constantFrom('idle', 'idle', 'idle', 'echo', 'never-seen', 'made-up'),
}

/** What is there for browsers, and not in the description. */
const pages: OpenApi['paths'] = Object.fromEntries(
  ['/', '/tasks/{id}', '/assets/{id}', '/docs', '/docs/static/{id}', '/openapi.json'].map(path => [path, { get: {} }]),
)

/** One for each route, so that a sample of each leaves no route out. */
export function requestsTo({ paths }: OpenApi, keys: Keys): fc.Arbitrary<FuzzedRequest>[] {
  return Object.entries({ ...paths, ...pages }).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => requestTo(method.toUpperCase(), path, operation, keys)),
  )
}

function requestTo(method: string, path: string, operation: Operation, keys: Keys): fc.Arbitrary<FuzzedRequest> {
  const { parameters = [] } = operation
  const schema = bodySchemaOf(operation)
  const key = path.startsWith('/internal') ? keys.worker : keys.client
  return fc
    .record({
      method: fc.oneof(
        { weight: 15, arbitrary: fc.constant(method) },
        {
          weight: 1,
          arbitrary: fc.constantFrom('GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'PURGE', marker.toUpperCase()),
        },
      ),
      path: pathOf(path, parameters),
      query: queryOf(parameters.filter(each => each.in === 'query')),
      headers: headersOf(key),
      body: schema ? spoiledJson(spoiled(valuesOf(schema, words))) : fc.option(spoiledJson(spoiled(fc.constant({}))), { freq: 12 }),
      carriage,
    })
    .map(parts => ({ ...assemble(parts), route: `${method} ${path}` }))
}

const oddNumber = fc.constantFrom('0', '-1', '01', '1.5', '1e3', '999999999', '9999999999', '0x1', '%31')

/** A parameter gets what its schema describes, and now and then something odd. */
function pathOf(path: string, parameters: readonly Parameter[]): fc.Arbitrary<string> {
  const odd = fc.constantFrom(
    marker,
    '%00',
    '..',
    '%2e%2e%2f',
    `${marker}%0d%0a`,
    '%zz',
    '%f0%9f%98%80',
    marker.repeat(40),
    '',
    '00000000-0000-0000-0000-000000000000',
  )
  const tail = fc.oneof(
    { weight: 25, arbitrary: fc.constant('') },
    { weight: 1, arbitrary: fc.constantFrom('/', '//', `/${marker}`, ';a=b', '%20') },
  )
  const parts = path.split('/').map(part => {
    const { schema } = parameterOf(part, parameters) ?? {}
    if (!schema) return fc.constant(part)
    return fc.oneof(
      { weight: 8, arbitrary: valuesOf(schema, words).map(value => encodeURIComponent(wellFormed(value))) },
      { weight: 2, arbitrary: isNumber(schema) ? fc.oneof(odd, oddNumber) : odd },
    )
  })
  return fc.tuple(fc.tuple(...parts), tail).map(([named, end]) => named.join('/') + end)
}

/** The parameter that this part of a path is. A page has no description: its parameter is an id. */
export function parameterOf(part: string, parameters: readonly Parameter[]): { schema: JsonSchema } | undefined {
  const [, name] = /^{(\w+)}$/.exec(part) ?? []
  if (!name) return undefined
  return parameters.find(each => each.in === 'path' && each.name === name) ?? { schema: { type: 'string', format: 'uuid' } }
}

function isNumber({ type, pattern = '' }: JsonSchema): boolean {
  return type === 'integer' || type === 'number' || /\\d/.test(pattern)
}

function queryOf(parameters: { name: string; schema: JsonSchema }[]): fc.Arbitrary<string> {
  const good = parameters.map(({ name, schema }) =>
    valuesOf(schema, words).map(value => `${name}=${encodeURIComponent(wellFormed(value))}`),
  )
  const oddValue = fc.oneof(oddity, fc.constantFrom('%00', '%ff', '%', '1-1', '0-0', '999999999999999-1', '1e9', 'rvt_e30.e30', '-1'))
  const names = fc.constantFrom(
    ...parameters.map(({ name }) => name),
    'metadata.a',
    'metadata.',
    `metadata.${marker}%00`,
    `${marker}!`,
    '__proto__',
    'a[b]',
    'limit',
  )
  const odd = fc
    .tuple(names, oddValue)
    .map(
      ([name, value]) =>
        `${name}=${typeof value === 'string' && /^%/.test(value) ? value : encodeURIComponent(wellFormed(value)).slice(0, 4_000)}`,
    )
  const part = good.length > 0 ? fc.oneof({ weight: 2, arbitrary: fc.oneof(...good) }, { weight: 1, arbitrary: odd }) : odd
  return fc
    .oneof(
      { weight: good.length > 0 ? 1 : 6, arbitrary: fc.constant([]) },
      { weight: 2, arbitrary: fc.array(part, { minLength: 1, maxLength: 3 }) },
    )
    .map(parts => (parts.length > 0 ? `?${parts.join('&')}` : ''))
}

function wellFormed(value: unknown): string {
  return (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed()
}

type Headers = [name: string, value: string][]

const oddHeader: fc.Arbitrary<[string, string]> = fc.oneof(
  fc.tuple(fc.constant('last-event-id'), fc.constantFrom('', '1-1', '0-0', '5-999', marker, '1-1, 2-2', '\u00e9', '9'.repeat(40))),
  fc.tuple(fc.constant('idempotency-key'), fc.constantFrom('a', `k-${marker}`, '', '\u00e9', marker.repeat(70), 'two words')),
  fc.tuple(fc.constant('accept'), fc.constantFrom('text/event-stream', 'application/json', marker, '*/*', ';;,')),
  fc.tuple(
    fc.constant('content-type'),
    fc.constantFrom('text/plain', 'application/json; charset=utf-8', 'application/json\ta', `${marker}/x`, ''),
  ),
  fc.tuple(fc.constant('content-encoding'), fc.constantFrom('gzip', 'identity', marker)),
  fc.tuple(fc.constant('accept-encoding'), fc.constantFrom('gzip', 'gzip;q=0', `gzip;${marker}`, '*', ',;=')),
  fc.tuple(fc.constant('sec-fetch-site'), fc.constantFrom('cross-site', 'same-origin', marker)),
  fc.tuple(fc.constant('host'), fc.constantFrom(marker, `${marker}.example:80`, '[', '[::1]:', 'a@b', ':', '\u00e9')),
  fc.tuple(fc.constant('expect'), fc.constantFrom('100-continue', marker)),
  fc.tuple(
    fc.constantFrom(
      'x-forwarded-for',
      'x-forwarded-host',
      'forwarded',
      'user-agent',
      'origin',
      'cookie',
      'referer',
      'traceparent',
      'upgrade',
      'range',
    ),
    fc.constantFrom(marker, `${marker}\u001b[31m`, `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, 'websocket'),
  ),
  fc.tuple(fc.constant(`x-${marker}`), fc.constantFrom(marker, 'a'.repeat(9_000))),
)

function headersOf(key: string): fc.Arbitrary<Headers> {
  const authorization = fc.oneof(
    { weight: 20, arbitrary: fc.constant<Headers>([['authorization', `Bearer ${key}`]]) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(
          '',
          marker,
          `Bearer ${marker}`,
          `Bearer rvt_${marker}.e30`,
          `Bearer rvk_${'0'.repeat(16)}_${'A'.repeat(43)}`,
          'Basic YTpi',
        )
        .map<Headers>(value => [['authorization', value]]),
    },
    { weight: 1, arbitrary: fc.constant<Headers>([]) },
  )
  const odd = fc.oneof(
    { weight: 2, arbitrary: fc.constant<Headers>([]) },
    { weight: 1, arbitrary: fc.array(oddHeader, { minLength: 1, maxLength: 2 }) },
  )
  return fc.tuple(authorization, odd).map(([first, more]) => [...first, ...more])
}

/** How a request travels. */
type Carriage = { kind: 'whole' | 'pieces' | 'chunks' | 'pipelined' | 'cut'; at: number[] }

const carriage: fc.Arbitrary<Carriage> = fc.record({
  kind: fc.constantFrom<Carriage['kind'][]>('whole', 'whole', 'whole', 'whole', 'whole', 'pieces', 'chunks', 'pipelined', 'cut'),
  at: fc.array(fc.nat(), { minLength: 1, maxLength: 3 }),
})

type Parts = { method: string; path: string; query: string; headers: Headers; body: Buffer | null; carriage: Carriage }

function assemble({ method, path, query, headers, body, carriage: { kind, at } }: Parts): Omit<FuzzedRequest, 'route'> {
  const isHead = method === 'HEAD'
  const isPipelined = kind === 'pipelined' && !isHead
  const isChunked = kind === 'chunks' && body !== null
  const own = new Set(headers.map(([name]) => name))
  const all: Headers = [
    ...(own.has('host') ? [] : [['host', '127.0.0.1'] as [string, string]]),
    ['connection', isPipelined ? 'keep-alive' : 'close'],
    ...(body && !own.has('content-type') ? [['content-type', 'application/json'] as [string, string]] : []),
    ...(isChunked
      ? [['transfer-encoding', 'chunked'] as [string, string]]
      : body
        ? [['content-length', String(body.length)] as [string, string]]
        : []),
    ...headers,
  ]
  const head = Buffer.from(
    [`${method} ${path}${query} HTTP/1.1`, ...all.map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n'),
    'latin1',
  )
  const whole = Buffer.concat([head, ...(body ? (isChunked ? chunksOf(body, at) : [body]) : [])])
  const last = Buffer.from('GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
  if (kind === 'cut') return { pieces: [whole.subarray(0, (at[0] ?? 0) % whole.length)], count: 1, isCut: true, isHead }
  if (isPipelined) return { pieces: [Buffer.concat([whole, last])], count: 2, isCut: false, isHead }
  return { pieces: kind === 'pieces' ? split(whole, at) : [whole], count: 1, isCut: false, isHead }
}

function split(bytes: Buffer, at: number[]): Buffer[] {
  const places = [0, ...at.map(place => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end))
}

function chunksOf(body: Buffer, at: number[]): Buffer[] {
  const chunks = split(body, at).filter(({ length }) => length > 0)
  return [
    ...chunks.map(chunk => Buffer.concat([Buffer.from(`${chunk.length.toString(16)};a=b\r\n`), chunk, Buffer.from('\r\n')])),
    Buffer.from('0\r\n\r\n'),
  ]
}
