/**
 * Bad input and the expected responses: one case or more for each row of docs/bad-input.md that one request can show. What takes more
 * to show (a process that is stopped, a second request, a stream) is in the tests that the page links to.
 */
import { randomUUID } from 'node:crypto'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { defaultLimits, type ErrorCode } from '@rivulet/protocol'
import { type RawRequest, rawRequest } from '../viewers/raw-http.ts'

/** What a case may need to know of the platform that it is sent to. */
export type BadInputWorld = {
  /** May do everything. */
  key: string
  /** May only read. */
  readKey: string
  /** A task that has ended, of the tenant of these keys; and one of another tenant. */
  task: string
  foreignTask: string
}

export type BadInput = {
  row: number
  input: string
  /** As bytes; several pieces are several writes. */
  send: (world: BadInputWorld) => (string | Buffer)[]
  status: number
  /** Null where it is no error. */
  code: ErrorCode | null
  /** Whether the API closes the connection after the response, even if the client wants to keep it. */
  closes?: true
  headers?: Record<string, RegExp>
  /** What the message or the details say. */
  says?: RegExp
}

const { bodyBytes, jsonDepth, jsonItems } = defaultLimits
const KiB = 1024
const nested = (depth: number) => `{"agent":"idle","params":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
const smuggled = 'GET /v1/agents HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'

export const badInputs: readonly BadInput[] = [
  ...broken(1, 'bytes that are not HTTP', 'hello, is this a server?\r\n\r\n'),
  ...broken(1, 'a TLS greeting', Buffer.from('16030100c8010000c40303', 'hex')),
  ...broken(2, 'both a length and chunks', head('transfer-encoding: chunked', 'content-length: 5') + smuggled),
  ...broken(2, 'two lengths', `${head('content-length: 2', 'content-length: 40')}{}`),
  ...broken(2, 'a length that is no number', `${head('content-length: +2')}{}`),
  ...broken(2, 'a chunk whose size is no number', `${head('transfer-encoding: chunked')}zz\r\n{}\r\n0\r\n\r\n`),
  ...broken(2, 'a line that ends without a line feed', 'GET /healthz HTTP/1.1\rhost: a\r\n\r\n'),
  {
    ...{ row: 3, input: 'more than 16 KiB of headers', send: asked('GET /v1/agents', { headers: { 'x-long': 'a'.repeat(17 * KiB) } }) },
    ...{ status: 431, code: 'headers_too_large', closes: true, says: /16384/ },
  },
  {
    row: 3,
    input: 'more than 2,000 headers',
    send: ({ key }) => [`GET /v1/agents HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\n${'a:\r\n'.repeat(2_000)}\r\n`],
    ...{ status: 431, code: 'headers_too_large', closes: true, says: /2000/ },
  },
  {
    row: 4,
    input: 'no Host',
    send: asked('GET /v1/agents', { headers: { host: '' } }),
    ...{ status: 400, code: 'bad_request', closes: true, says: /Host/ },
  },
  {
    ...{ row: 4, input: 'an empty Host', send: () => ['GET /healthz HTTP/1.1\r\nhost:\r\n\r\n'] },
    ...{ status: 400, code: 'bad_request', closes: true, says: /Host/ },
  },
  ...broken(6, 'an unknown method', 'BREW /v1/tasks HTTP/1.1\r\nhost: a\r\n\r\n'),
  {
    ...{ row: 6, input: 'CONNECT', send: () => ['CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n'], status: 400, code: 'bad_request' },
  },
  {
    ...{ row: 6, input: 'a method that the route does not take', send: asked('PUT /v1/tasks'), status: 405, code: 'method_not_allowed' },
    headers: { allow: /^GET, POST$/ },
  },
  {
    row: 6,
    input: 'a method that no route takes',
    send: asked('PROPFIND /v1/tasks/01890000-0000-7000-8000-000000000000'),
    ...{ status: 405, code: 'method_not_allowed', headers: { allow: /^GET, PATCH, DELETE$/ } },
  },
  refused(7, 'an id of more than 100 characters', `GET /v1/tasks/${'a'.repeat(101)}`, 414, 'url_too_long', { says: /100/ }),
  refused(7, 'an invalid escape', 'GET /v1/tasks/%zz', 400, 'bad_url'),
  ...['%00', '%2e%2e', '%0d%0aset-cookie:%20a', '..%2f..%2fetc'].map(id =>
    refused(7, `an id that is ${id}`, `GET /v1/tasks/${id}/messages`, 400, 'validation_failed', { says: /"\/id"/ }),
  ),
  ...['{01890000-0000-7000-8000-000000000000}', '01890000000070008000000000000000'].map(id =>
    refused(7, `an id that is spelled ${id}`, `GET /v1/tasks/${id}`, 400, 'validation_failed', { says: /"\/id"/ }),
  ),
  ...['0', '-1', '01', '1e1', '1.5', '9999999999', '%00'].map(
    (number): BadInput => ({
      ...{ row: 7, input: `${number} for the number of a turn`, status: 400, code: 'validation_failed', says: /"\/number"/ },
      send: ({ key, task }) => [rawRequest(`GET /v1/tasks/${task}/turns/${number}`, { headers: bearer(key) })],
    }),
  ),
  {
    ...{ row: 7, input: 'a turn that the task does not have', status: 404, code: 'not_found' },
    send: ({ key, task }) => [rawRequest(`GET /v1/tasks/${task}/turns/999`, { headers: bearer(key) })],
  },
  refused(8, 'an expectation that we do not know', 'POST /v1/tasks', 417, 'expectation_failed', {
    request: { headers: { expect: 'the-unexpected' }, body: '{"agent":"idle"}' },
  }),
  ...['', 'application/xml', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=a'].map(type =>
    ofType(9, `a body of type ${JSON.stringify(type)}`, type, 415, 'unsupported_media_type'),
  ),
  ofType(10, 'a body of plain text', 'text/plain', 415, 'unsupported_media_type'),
  ...['application/json\ta', 'application/jsonx', 'application/json,text/plain', ' ;application/json'].map(type =>
    ofType(11, `a type that is not quite JSON: ${JSON.stringify(type)}`, type, 415, 'unsupported_media_type'),
  ),
  ...['APPLICATION/JSON', 'application/json;', 'application/json; charset=latin1'].map(type =>
    ofType(11, `JSON in another spelling, ${type}: checked as ever`, type, 400, 'validation_failed'),
  ),
  encoded('gzip', gzipSync('{"agent":"idle"}')),
  encoded('br', brotliCompressSync('{"agent":"idle"}')),
  encoded('identity, gzip', gzipSync('{"agent":"idle"}')),
  refused(13, 'a length beyond the limit', 'POST /v1/tasks', 413, 'body_too_large', {
    request: { headers: { 'content-type': 'application/json', 'content-length': String(bodyBytes + 1) } },
    says: new RegExp(`${bodyBytes}.*MAX_BODY_BYTES`),
  }),
  refused(13, 'chunks beyond the limit', 'POST /v1/tasks', 413, 'body_too_large', {
    request: { headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' } },
    after: [`${(bodyBytes + 1).toString(16)}\r\n`, Buffer.alloc(bodyBytes + 1, ' '), '\r\n0\r\n\r\n'],
    says: new RegExp(`${bodyBytes}.*MAX_BODY_BYTES`),
  }),
  ...[
    '',
    '{',
    '{"agent":"idle"',
    'NaN',
    '{"agent":"idle",}',
    '{"agent":NaN}',
    '{} {}',
    '{"agent":"idle"}\u0000',
    "{'agent':'idle'}",
    '\ufeff{',
  ].map(body => posted(14, `${JSON.stringify(body)} for a body`, body, 400, 'invalid_json')),
  ...['ff', 'c080', 'eda080', 'f8888080', 'e282'].map(bytes =>
    posted(
      15,
      `bytes that are not UTF-8 (${bytes})`,
      Buffer.concat([Buffer.from('{"agent":"'), Buffer.from(`${bytes}227d`, 'hex')]),
      400,
      'invalid_utf8',
    ),
  ),
  ...['[]', 'null', '"text"', '5', 'true'].map(body => posted(16, `${body} and no object`, body, 400, 'validation_failed')),
  ...[
    '{"agent":"idle","__proto__":{}}',
    '{"agent":"idle","params":{"a":[{"__proto__":1}]}}',
    '{"agent":"idle","metadata":{"constructor":{"prototype":{"a":1}}}}',
    '{"agent":"idle","params":{"\\u005f_proto__":1}}',
  ].map(body => posted(17, `a key that reaches for the prototype: ${body}`, body, 400, 'forbidden_key')),
  ...[jsonDepth + 1, 5_000, 500_000].map(depth =>
    posted(18, `JSON ${depth.toLocaleString('en')} deep`, nested(depth), 400, 'json_too_deep', {
      says: new RegExp(`${jsonDepth}.*MAX_JSON_DEPTH`),
    }),
  ),
  posted(19, 'more than 10,000 items', `{"agent":"idle","params":[${Array(jsonItems).fill(0)}]}`, 400, 'json_too_complex', {
    says: new RegExp(`${jsonItems}.*MAX_JSON_ITEMS`),
  }),
  posted(
    19,
    'more than 10,000 keys',
    `{"agent":"idle","params":{${Array.from({ length: jsonItems }, (_, i) => `"k${i}":0`)}}}`,
    400,
    'json_too_complex',
  ),
  posted(19, 'a name of more than 200 characters', JSON.stringify({ agent: 'idle', name: 'n'.repeat(201) }), 400, 'validation_failed', {
    says: /"\/name".*200/,
  }),
  posted(20, 'a key that is there twice: the last one counts', '{"agent":"unknown","agent":"idle","params":1,"params":2}', 201, null, {
    says: /"agent":"idle".*"params":2/,
  }),
  posted(21, 'an unknown field', '{"agent":"idle","agnet":1}', 400, 'validation_failed', { says: /"\/agnet","reason":"Unknown field"/ }),
  refused(21, 'an unknown parameter', 'GET /v1/tasks?statsu=running', 400, 'validation_failed', { says: /"\/statsu"/ }),
  posted(22, 'a text for a number', '{"agent":"idle","priority":"5"}', 400, 'validation_failed', { says: /"\/priority"/ }),
  posted(
    22,
    'a number for a truth',
    '{"agent":"idle","input":{"type":"tool_response","callId":"c","name":"n","content":1,"isError":1}}',
    400,
    'validation_failed',
    {
      says: /"\/input\/isError"/,
    },
  ),
  refused(22, 'a number that is not spelled in digits', 'GET /v1/agents/activity?minutes=0x10', 400, 'validation_failed'),
  ...['{"agent":"idle","priority":1e400}', '{"agent":"idle","params":{"a":[1e400]}}', '{"agent":"idle","params":-1e999}'].map(body =>
    posted(23, `a number that no double holds: ${body}`, body, 400, 'validation_failed'),
  ),
  ...['9007199254740993', '-0', '-1', '1.5'].map(delay =>
    posted(23, `${delay} for a time`, `{"agent":"idle","delayMs":${delay}}`, 400, 'validation_failed', { says: /"\/delayMs"/ }),
  ),
  refused(23, 'a limit below zero', 'GET /v1/tasks?limit=-5', 400, 'validation_failed', { says: /"\/limit"/ }),
  ...['"input":"a\\u0000b"', '"metadata":{"a\\u0000":1}', '"params":[["\\u0000"]]'].map(field =>
    posted(24, `NUL in ${field}`, `{"agent":"idle",${field}}`, 400, 'invalid_characters'),
  ),
  ...['name=a%00', 'metadata.a=%00', 'metadata.%00=a', '%00=1'].map(query =>
    refused(24, `NUL in ?${query}`, `GET /v1/tasks?${query}`, 400, 'invalid_characters'),
  ),
  ...['"input":"\\ud800"', '"metadata":{"\\udfff":1}', '"params":["a\\ud83d\\ud83d"]'].map(field =>
    posted(25, `half a surrogate pair in ${field}`, `{"agent":"idle",${field}}`, 400, 'invalid_characters'),
  ),
  ...['"No Such Name"', '""', `"${'a'.repeat(65)}"`, '"a:b"', '"a\\nb"'].map(name =>
    posted(26, `a name that no agent can have: ${name}`, `{"agent":${name}}`, 400, 'validation_failed', { says: /"\/agent"/ }),
  ),
  posted(26, 'an agent that no worker has registered', '{"agent":"never-seen"}', 422, 'unknown_agent'),
  ...[
    '"priority":101',
    '"maxAttempts":0',
    '"maxAttempts":101',
    '"timeoutMs":0',
    '"timeoutMs":2592000001',
    '"delayMs":31536000001',
    '"budget":{"tokens":-1}',
    '"budget":{"usd":0}',
    '"budget":{}',
  ].map(field =>
    posted(27, `${field}`, `{"agent":"idle",${field}}`, 400, 'validation_failed', { says: new RegExp(`"/${/\w+/.exec(field)?.[0]}["/]`) }),
  ),
  refused(28, 'no key', 'GET /v1/agents', 401, 'unauthorized', { request: { headers: { authorization: '' } }, headers: challenge() }),
  ...[
    'Bearer',
    'Bearer ',
    'Basic YTpi',
    'Bearer nonsense',
    `Bearer rvk_${'0'.repeat(16)}_${'A'.repeat(43)}`,
    'Bearer rvt_e30.e30',
    'rvk_0',
  ].map(given =>
    refused(29, `an invalid key: ${given}`, 'GET /v1/agents', 401, 'unauthorized', {
      request: { headers: { authorization: given } },
      headers: challenge(),
    }),
  ),
  ...['key', 'token', 'access_token'].map(name => ({
    ...{ row: 30, input: `a good key in ?${name}=`, status: 401, code: 'unauthorized' as const, headers: challenge() },
    send: ({ key }: BadInputWorld) => [rawRequest(`GET /v1/agents?${name}=${key}`)],
  })),
  {
    ...{ row: 31, input: 'a key without the scope', status: 403, code: 'forbidden' },
    send: ({ readKey }) => [rawRequest('POST /v1/tasks', { headers: bearer(readKey), body: '{"agent":"idle"}' })],
  },
  refused(32, 'an unknown id', `GET /v1/tasks/${randomUUID()}`, 404, 'task_not_found'),
  {
    ...{ row: 32, input: 'an id of another tenant', status: 404, code: 'task_not_found' },
    send: ({ readKey, foreignTask }) => [rawRequest(`GET /v1/tasks/${foreignTask}`, { headers: bearer(readKey) })],
  },
  ...['a'.repeat(256), 'two words', '\u00e4', 'a\tb'].map(key =>
    posted(33, `an invalid Idempotency-Key: ${key.slice(0, 20)}`, '{"agent":"idle"}', 400, 'idempotency_key_invalid', {
      request: { headers: { 'idempotency-key': key } },
    }),
  ),
  ...['', '1', '1-', 'a-b', '$', '1-1, 9-9', `${'9'.repeat(16)}-1`, `1-${'1'.repeat(64)}`, '\u00e9-1', '1-1\t'.padEnd(70, '1')].map(
    cursor => ({
      ...{ row: 38, input: `an invalid Last-Event-ID: ${JSON.stringify(cursor)}`, status: 400, code: 'bad_cursor' as const },
      send: ({ key, task }: BadInputWorld) => [
        `GET /v1/tasks/${task}/events HTTP/1.1\r\nhost: a\r\nconnection: close\r\nauthorization: Bearer ${key}\r\nlast-event-id: ${cursor}\r\n\r\n`,
      ],
    }),
  ),
  {
    ...{ row: 38, input: 'two of them in the URL', status: 400, code: 'bad_cursor' },
    send: ({ key, task }) => [
      `GET /v1/tasks/${task}/events?after=1-1&after=9-9 HTTP/1.1\r\nhost: a\r\nconnection: close\r\nauthorization: Bearer ${key}\r\n\r\n`,
    ],
  },
  {
    ...{ row: 38, input: 'two of them', status: 400, code: 'bad_cursor' },
    send: ({ key, task }) => [
      `GET /v1/tasks/${task}/events HTTP/1.1\r\nhost: a\r\nconnection: close\r\nauthorization: Bearer ${key}\r\nlast-event-id: 1-1\r\nlast-event-id: 9-9\r\n\r\n`,
    ],
  },
  {
    ...{ row: 40, input: 'a stream for a client that accepts none', status: 406, code: 'not_acceptable' },
    send: ({ key, task }) => [rawRequest(`GET /v1/tasks/${task}/events`, { headers: { ...bearer(key), accept: 'application/json' } })],
  },
  ...['limit=0', 'limit=-1', 'limit=1000000000', 'limit=101', 'limit=1e2', 'limit=', 'cursor=tampered', 'cursor='].map(query =>
    refused(46, `a page of ${query}`, `GET /v1/tasks?${query}`, 400, 'validation_failed'),
  ),
  ...[
    'by=color',
    'from=yesterday',
    'to=2026-13-01',
    'from=2026-01-02&to=2026-01-02',
    'from=2020-01-01&to=2026-01-01',
    'since=2026-01-01',
  ].map(query => refused(65, `a report of ${query}`, `GET /v1/usage?${query}`, 400, 'validation_failed')),
  ...['{"1A":"b"}', '{"A":1}', '{"A":""}', `{"A":"${'b'.repeat(8_193)}"}`, '["A"]'].map(secrets =>
    posted(70, `the secrets ${secrets.slice(0, 20)}`, `{"agent":"idle","secrets":${secrets}}`, 400, 'validation_failed'),
  ),
  posted(70, 'a secret for an API without a key for them', '{"agent":"idle","secrets":{"A":"b"}}', 400, 'bad_request'),
  ...['action=task.read', 'cursor=last', 'limit=101', 'since=2026-01-01'].map(query =>
    refused(69, `an audit log with ${query}`, `GET /v1/audit?${query}`, 400, 'validation_failed'),
  ),
  {
    ...{ row: 46, input: 'a page of messages after -1', status: 400, code: 'validation_failed' },
    send: ({ key, task }) => [rawRequest(`GET /v1/tasks/${task}/messages?after=-1`, { headers: bearer(key) })],
  },
  {
    ...{ row: 47, input: 'a cancel of what has ended', status: 200, code: null, says: /"status":"completed"/ },
    send: ({ key, task }) => [rawRequest(`POST /v1/tasks/${task}/cancel`, { headers: bearer(key), body: '{}' })],
  },
]

function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` }
}

function challenge(): Record<string, RegExp> {
  return { 'www-authenticate': /^Bearer$/ }
}

/** A request with the key that may do everything, unless it says otherwise. */
function asked(route: string, { headers = {}, body }: RawRequest = {}): BadInput['send'] {
  return ({ key }) => [rawRequest(route, { headers: { ...bearer(key), ...headers }, ...(body !== undefined && { body }) })]
}

function head(...headers: string[]): string {
  return ['POST /v1/tasks HTTP/1.1', 'host: 127.0.0.1', 'content-type: application/json', ...headers, '', ''].join('\r\n')
}

/** What Node's parser gives up on: nothing that follows on the connection can be believed. */
function broken(row: number, input: string, bytes: string | Buffer): BadInput[] {
  return [{ row, input, send: () => [bytes], status: 400, code: 'bad_request', closes: true }]
}

type More = Pick<BadInput, 'headers' | 'says'> & { request?: RawRequest; after?: (string | Buffer)[] }

function refused(row: number, input: string, route: string, status: number, code: ErrorCode | null, more: More = {}): BadInput {
  const { request, after = [], ...rest } = more
  return { row, input, status, code, send: world => [...asked(route, request)(world), ...after], ...rest }
}

function posted(row: number, input: string, body: string | Buffer, status: number, code: ErrorCode | null, more: More = {}): BadInput {
  return refused(row, input, 'POST /v1/tasks', status, code, { ...more, request: { ...more.request, body } })
}

/** The body lacks its agent, so a route that ignores the body returns another error. */
function ofType(row: number, input: string, type: string, status: number, code: ErrorCode): BadInput {
  return posted(row, input, '{"input":"a"}', status, code, { request: { headers: { 'content-type': type } } })
}

function encoded(encoding: string, body: Buffer): BadInput {
  return posted(12, `a body that is ${encoding}`, body, 415, 'unsupported_media_type', {
    request: { headers: { 'content-encoding': encoding } },
  })
}
