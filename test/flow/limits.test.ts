/** Every row of the table of limits, over the wire: the status, the code, and the one shape of an error. */
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { modes, repeat, say, scripted, start } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { Accepted, ErrorReply, Reply } from '../support/platform/platform-client.ts'

const KiB = 1024
const MiB = 1024 * KiB
const json = { 'content-type': 'application/json' }

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
  // A registered agent that no worker runs.
  await platform.client.post('/internal/hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] })
})
afterAll(() => platform.close())

describe('a request', () => {
  test('of 2 MiB is taken, and a byte more is not', async () => {
    const wrap = (input: string) => JSON.stringify({ agent: 'idle', input })
    const room = 2 * MiB - wrap('').length
    expect((await post(wrap('a'.repeat(room)))).status).toBe(201)
    expectError(await post(wrap('a'.repeat(room + 1))), 413, 'body_too_large')
    const chunked = await platform.client.send('POST', '/v1/tasks', {
      headers: json,
      body: new Blob([wrap('a'.repeat(room + 1))]).stream(),
      duplex: 'half',
    } as RequestInit)
    expectError(chunked, 413, 'body_too_large')
  })

  test('nested 64 deep is taken, and a level more is not', async () => {
    const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
    expect((await post(`{"agent":"idle","params":${nested(63)}}`)).status).toBe(201)
    expectError(await post(`{"agent":"idle","params":${nested(64)}}`), 400, 'json_too_deep')
    expectError(await post(`{"agent":"idle","params":${nested(500_000)}}`), 400, 'json_too_deep')
  })

  test('with 10,000 keys and items is taken, and with one more it is not', async () => {
    const params = (count: number) => `{"agent":"idle","params":[${Array(count).fill(0).join()}]}`
    expect((await post(params(9_998))).status).toBe(201)
    expectError(await post(params(9_999)), 400, 'json_too_complex')
  })

  test.each([
    ['NUL', 'a\\u0000b'],
    ['half a surrogate pair', 'a\\ud800b'],
    ['the other half', 'a\\udc00'],
  ])('with %s in a string is refused, wherever the string stands', async (_, text) => {
    for (const body of [
      `{"agent":"idle","input":"${text}"}`,
      `{"agent":"idle","metadata":{"${text}":1}}`,
      `{"agent":"idle","params":[["${text}"]]}`,
    ])
      expectError(await post(body), 400, 'invalid_characters')
  })

  test('with a whole surrogate pair is taken', async () => {
    expect((await post('{"agent":"idle","input":"\\ud83d\\ude00"}')).status).toBe(201)
  })

  test('with an unknown field is refused, with the path of each', async () => {
    const { details } = expectError(
      await post({ agent: 'idle', surprise: 1, input: { type: 'text', text: 'a', font: 'x' } }),
      400,
      'validation_failed',
    )
    expect(details?.map(({ path }) => path).sort()).toEqual(['/input/font', '/surprise'])
  })

  test.each([
    ['a wrong type', { agent: 'idle', priority: '5' }, '/priority'],
    ['a number that is out of range', { agent: 'idle', priority: 101 }, '/priority'],
    ['a number that is no integer', { agent: 'idle', delayMs: 1.5 }, '/delayMs'],
    ['a missing field', { input: 'a' }, '/agent'],
    ['a name that no agent can have', { agent: 'No Such Name' }, '/agent'],
    ['metadata that is no object', { agent: 'idle', metadata: [] }, '/metadata'],
    ['an unknown content type', { agent: 'idle', input: { type: 'smell' } }, '/input/type'],
    ['content without its text', { agent: 'idle', input: { type: 'text' } }, '/input/text'],
    ['two sources of one medium', { agent: 'idle', input: { type: 'media', mimeType: 'a/b', data: '', url: 'x:' } }, '/input'],
  ])('with %s is refused, with its path', async (_, body, path) => {
    const { details } = expectError(await post(body), 400, 'validation_failed')
    expect(details).toMatchObject([{ path }])
  })

  test.each(['[]', 'null', '"text"', '5'])('that is %s and no object is refused', async body => {
    expectError(await post(body), 400, 'validation_failed')
  })

  test.each(['{', '{"agent":"idle",}', 'NaN', ''])('that is not JSON (%s) is refused', async body => {
    expectError(await platform.client.send('POST', '/v1/tasks', { body, headers: json }), 400, 'invalid_json')
  })

  test('that is not UTF-8 is refused', async () => {
    const body = new Uint8Array([...Buffer.from('{"agent":"idle","input":"'), 0xff, ...Buffer.from('"}')])
    expectError(await platform.client.send('POST', '/v1/tasks', { body, headers: json }), 400, 'invalid_utf8')
  })

  test.each(['__proto__', 'constructor'])('with a key named %s is refused', async key => {
    expectError(await post(`{"agent":"idle","params":{"${key}":{"prototype":{}}}}`), 400, 'forbidden_key')
  })

  test.each(['text/plain', 'application/xml', 'application/json\ta'])('of type %s is refused', async type => {
    const reply = await platform.client.send('POST', '/v1/tasks', { body: '{"agent":"idle"}', headers: { 'content-type': type } })
    expectError(reply, 415, 'unsupported_media_type')
  })

  test('without a type is refused', async () => {
    const body = new Uint8Array(Buffer.from('{"agent":"idle"}'))
    expectError(await platform.client.send('POST', '/v1/tasks', { body }), 415, 'unsupported_media_type')
  })

  test('with parameters of the JSON type is taken', async () => {
    const headers = { 'content-type': 'application/json; charset=utf-8' }
    expect((await platform.client.send('POST', '/v1/tasks', { body: '{"agent":"idle"}', headers })).status).toBe(201)
  })

  test('that is encoded is refused', async () => {
    const body = new Uint8Array(gzipSync('{"agent":"idle"}'))
    const headers = { ...json, 'content-encoding': 'gzip' }
    expectError(await platform.client.send('POST', '/v1/tasks', { body, headers }), 415, 'unsupported_media_type')
  })

  test.each(['', ' ', 'ä', 'x'.repeat(256)])('under an invalid key (%j) is refused', async key => {
    const reply = await platform.client.send('POST', '/v1/tasks', {
      body: '{"agent":"idle"}',
      headers: rawHeaders({ ...json, 'idempotency-key': key }),
    })
    expectError(reply, 400, 'idempotency_key_invalid')
  })
})

describe('an address', () => {
  test('of an agent that never registered, or of a task that is not there', async () => {
    expectError(await post({ agent: 'never-seen' }), 422, 'unknown_agent')
    const id = '01890000-0000-7000-8000-000000000000'
    for (const path of [`/v1/tasks/${id}`, `/v1/tasks/${id}/messages`]) expectError(await platform.client.get(path), 404, 'task_not_found')
    expectError(await platform.client.post(`/v1/tasks/${id}/turns`, {}), 404, 'task_not_found')
    expectError(await platform.client.remove(id), 404, 'task_not_found')
  })

  test('that is no id, no route, or takes another method', async () => {
    expectError(await platform.client.get('/v1/tasks/not-an-id'), 400, 'validation_failed')
    expectError(await platform.client.get('/v1/nothing'), 404, 'not_found')
    expectError(await platform.client.get('/v1/tasks/%zz'), 400, 'bad_url')
    for (const path of ['/v1/tasks', '/v1/tasks/01890000-0000-7000-8000-000000000000']) {
      const reply = await platform.client.send('PUT', path)
      expectError(reply, 405, 'method_not_allowed')
      expect(reply.headers.get('allow')).toMatch(path === '/v1/tasks' ? /GET.*POST/ : /GET.*DELETE/)
    }
  })
})

test('a hundred turns of a task may wait, and one more may not', async () => {
  const { body } = await post<Accepted>({ agent: 'idle', input: 'first' })
  for (let number = 2; number <= 100; number += 1) {
    const { status } = await platform.client.post(`/v1/tasks/${body.task.id}/turns`, { input: 'more' })
    expect(status).toBe(202)
  }
  const refused = await platform.client.post(`/v1/tasks/${body.task.id}/turns`, { input: 'too much' })
  expectError(refused, 429, 'too_many_turns')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expectError(await platform.client.post(`/v1/tasks/${body.task.id}/turns`, { ifBusy: 'reject' }), 409, 'task_busy')
  await platform.client.cancel(body.task.id)
})

test('every limit has its configured value, its error names it, and workers receive theirs', async () => {
  const env = {
    ...{ MAX_BODY_BYTES: '65536', MAX_JSON_DEPTH: '8', MAX_JSON_ITEMS: '1000', MAX_QUEUED_TURNS_PER_TASK: '1' },
    ...{ MAX_DELTA_BYTES: '2048', MAX_TURN_BYTES: '4096', MAX_STEPS_BYTES: '8192' },
  }
  const client = platform.clientOf(await platform.startApi({ env }))
  for (const [body, status, code, name] of [
    [{ agent: 'idle', input: 'x'.repeat(65_536) }, 413, 'body_too_large', 'at most 65536 bytes \\(MAX_BODY_BYTES'],
    [`{"agent":"idle","params":${'['.repeat(8)}${']'.repeat(8)}}`, 400, 'json_too_deep', 'at most 8 .*MAX_JSON_DEPTH'],
    [{ agent: 'idle', params: Array(1_000).fill(0) }, 400, 'json_too_complex', 'at most 1000 .*MAX_JSON_ITEMS'],
  ] as const)
    expect(expectError(await client.post('/v1/tasks', body), status, code).message).toMatch(new RegExp(name))
  const { body } = await client.post<Accepted>('/v1/tasks', { agent: 'idle', input: 'first' })
  const refused = expectError(await client.post(`/v1/tasks/${body.task.id}/turns`, {}), 429, 'too_many_turns')
  expect(refused.message).toMatch(/at most 1 waiting turns \(MAX_QUEUED_TURNS_PER_TASK\)/)
  const claim = await client.post('/internal/claim', { worker: 'none', turnId: body.turn?.id, claimId: 'one' })
  expect(claim.body).toMatchObject({ result: 'claimed', limits: { deltaBytes: 2_048, turnBytes: 4_096, stepsBytes: 8_192 } })
  await client.cancel(body.task.id)
})

describe.each(modes)('what an agent says (%s)', mode => {
  test('is split where one delta is longer than 64 KiB, and adds up to the same text', async () => {
    const text = 'äß€😀'.repeat(20_000)
    const { task, messages } = await platform.client.finishedTask(scripted([start(0, { type: 'text', text: '' }), say(0, text)], {}, mode))
    expect(messages).toMatchObject([{ status: 'complete', content: { text } }])
    const deltas = (await platform.log(task.id)).flatMap(({ event }) =>
      event.type === 'message.delta' && event.delta.type === 'text' ? [event.delta.text] : [],
    )
    expect(deltas.length).toBeGreaterThanOrEqual(Math.ceil(Buffer.byteLength(text) / (64 * KiB)))
    for (const delta of deltas) expect(Buffer.byteLength(delta)).toBeLessThanOrEqual(64 * KiB)
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('is at most 16 MiB in a turn: one that says more fails, with what it said before', async () => {
    const chunk = 'x'.repeat(256 * KiB)
    const steps = [start(0, { type: 'text', text: '' }), repeat(65, say(0, chunk))]
    const { task, turns, messages } = await platform.client.finishedTask(scripted(steps, {}, mode))
    expect(turns).toMatchObject([{ status: 'failed', attempt: 1, error: { code: 'output_too_large' } }])
    expect(messages).toMatchObject([{ status: 'failed', error: { code: 'output_too_large' } }])
    const content = messages[0]?.content
    expect(content?.type === 'text' && content.text.length).toBe(63 * 256 * KiB)
    expect(await platform.client.remove(task.id)).toMatchObject({ status: 204 })
  })
})

function post<T = unknown>(body: unknown): Promise<Reply<T>> {
  return platform.client.post<T>('/v1/tasks', body)
}

/** Header values as bytes: fetch itself refuses some that another client would send. */
function rawHeaders(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Buffer.from(value).toString('latin1')]))
}

function expectError({ status, headers, body }: Reply, expected: number, code: string): ErrorReply['error'] {
  expect({ status, body }).toMatchObject({ status: expected, body: { error: { code } } })
  const { error } = body as ErrorReply
  expect(Object.keys(body as object)).toEqual(['error'])
  expect(error.message).toMatch(/\S/)
  expect(error.requestId).toMatch(/\S/)
  expect(headers.get('content-type')).toContain('application/json')
  return error
}
