/** To every route, a request for each place that a caller can write to, with a text in it that must not come back: path, query, headers, every field. */
import fc from 'fast-check'
import { rawRequest } from '../viewers/raw-http.ts'
import { bodySchemaOf, type FuzzedRequest, type Keys, type OpenApi, type Operation, parameterOf, words } from './requests.ts'
import { type JsonSchema, valuesOf } from './schema-values.ts'
import { marker, placesIn } from './spoiling.ts'

/** With what breaks lines, colours terminals and ends strings. */
const marked = `${marker} \r\n\u001b[31m"'<b>`

/** One by one, for each may decide about the request; and together those that should not. */
const deciding = ['content-type', 'content-encoding', 'accept', 'expect', 'idempotency-key', 'last-event-id', 'host']
const passing = [
  'origin',
  'referer',
  'user-agent',
  'cookie',
  'x-forwarded-for',
  'x-forwarded-host',
  'forwarded',
  'traceparent',
  'x-request-id',
]

export function markedRequests({ paths }: OpenApi, keys: Keys): FuzzedRequest[] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, operation]) => markRoute(method.toUpperCase(), path, operation, keys)),
  )
}

function markRoute(method: string, path: string, operation: Operation, keys: Keys): FuzzedRequest[] {
  const { parameters = [] } = operation
  const authorization = `Bearer ${path.startsWith('/internal') ? keys.worker : keys.client}`
  const parts = path.split('/')
  const fitting = parts.map(part => fittingValue(parameterOf(part, parameters)?.schema) ?? part)
  const good = fitting.join('/')
  const schema = bodySchemaOf(operation)
  // The largest of some, to have most of its fields.
  const [body] = schema ? fc.sample(valuesOf(schema, words), { seed: 1, numRuns: 30 }).sort((a, b) => size(b) - size(a)) : []
  const names = [...parameters.filter(each => each.in === 'query').map(({ name }) => name), `${marker}!`, `metadata.${marker}!`]
  return [
    ...parts.flatMap((part, i) => (parameterOf(part, parameters) ? [request(fitting.with(i, encodeURIComponent(marked)).join('/'))] : [])),
    request(`${good}/${encodeURIComponent(marked)}`),
    ...names.map(name => request(`${good}?${encodeURIComponent(name)}=${encodeURIComponent(marked)}`)),
    ...deciding.map(name => request(good, { [name]: marker })),
    request(good, Object.fromEntries(passing.map(name => [name, marker]))),
    request(good, { authorization: `Bearer ${marker}` }),
    ...markedBodies(body).map(each => request(good, {}, each)),
    request(good, {}, `{"${marker}`),
    request(good, {}, JSON.stringify(marked)),
  ]

  function request(
    target: string,
    headers: Record<string, string> = {},
    text = body === undefined ? undefined : JSON.stringify(body),
  ): FuzzedRequest {
    const piece = rawRequest(`${method} ${target}`, { headers: { authorization, ...headers }, ...(text !== undefined && { body: text }) })
    return { route: `${method} ${path}`, pieces: [piece], count: 1, isCut: false, isHead: false }
  }
}

/** One for each of its fields, at any depth, and one with a field too many. */
function markedBodies(body: unknown): string[] {
  const count = body === undefined ? 0 : placesIn({ body }).length
  const each = Array.from({ length: count }, (_, i) => {
    const root = { body: structuredClone(body) }
    const place = placesIn(root)[i]
    if (place) place.holder[place.name] = marked
    return root.body
  })
  const more = typeof body === 'object' && body !== null ? [{ ...body, [marked]: marked }] : []
  return [...each, ...more].map(value => JSON.stringify(value))
}

function fittingValue(schema: JsonSchema | undefined): string | undefined {
  return schema && String(fc.sample(valuesOf(schema, words), { seed: 1, numRuns: 1 })[0])
}

function size(value: unknown): number {
  return JSON.stringify(value)?.length ?? 0
}
