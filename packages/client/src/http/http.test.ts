import { createServer, type Server } from 'node:http'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createFakeApi, type FakeRequest, json, rejection } from '../../test/fake-api.ts'
import { task, taskId, turn } from '../../test/sample-task.ts'
import { type ClientOptions, createClient } from '../client.ts'
import type { WakeUps } from './backoff.ts'
import { rejectionOf } from './rejection.ts'

const accepted = () => json(201, { task, turn: turn(1) })

/** A client whose requests are answered by these, one after the other; the last one stays. Its retries do not wait. */
function clientOf(responses: ((request: FakeRequest) => Response | Promise<Response>)[], options: Partial<ClientOptions> = {}) {
  let asked = 0
  const api = createFakeApi(request => {
    asked += 1
    return (responses[Math.min(asked, responses.length) - 1] ?? accepted)(request)
  })
  const client = createClient({ url: 'http://api.test/', fetch: api.fetch as typeof fetch, wakeUps: at, ...options })
  return { client, api }
}

/** Wakes up at once. */
const at: WakeUps = wake => {
  queueMicrotask(wake)
  return () => {}
}

const broken = () => Promise.reject(new TypeError('fetch failed'))
const body = { agent: 'scripted', input: 'hello' }

describe('a call', () => {
  test('carries the key and a JSON body, and its answer is parsed', async () => {
    const { client, api } = clientOf([accepted], { key: 'k' })
    const created = await client.tasks.create(body)
    expect(created).toMatchObject({ id: taskId, task, turn: turn(1) })
    const [request] = api.requests
    expect(request).toMatchObject({ method: 'POST', path: '/v1/tasks', body })
    expect(request?.headers.get('authorization')).toBe('Bearer k')
    expect(request?.headers.get('content-type')).toBe('application/json')
  })

  test('filters go into the query, metadata by name', async () => {
    const { client, api } = clientOf([() => json(200, { data: [task], nextCursor: 'c' })])
    const page = await client.tasks.list({ agent: 'a', limit: 2, metadata: { team: 'x y' } })
    expect(page).toEqual({ data: [task], nextCursor: 'c' })
    expect(api.requests[0]?.path).toBe('/v1/tasks?agent=a&limit=2&metadata.team=x+y')
  })

  test('every public route has its call', async () => {
    const responses: Record<string, () => Response> = {
      'GET /v1/agents': () => json(200, { data: [{ name: 'a', description: '', workers: 1, queued: 0, running: 0 }] }),
      [`GET /v1/tasks/${taskId}`]: () => json(200, { task, turns: [turn(1)] }),
      [`DELETE /v1/tasks/${taskId}`]: () => new Response(null, { status: 204 }),
      [`POST /v1/tasks/${taskId}/turns`]: () => json(202, { turn: turn(2) }),
      [`POST /v1/tasks/${taskId}/cancel`]: () => json(200, { task }),
      [`GET /v1/tasks/${taskId}/messages?after=3&turn=1`]: () => json(200, { data: [], nextCursor: null }),
      'GET /healthz': () => json(200, { status: 'ok' }),
      'GET /readyz': () => json(200, { status: 'ready' }),
      'GET /metrics': () => new Response('up 1\n'),
      'GET /openapi.json': () => json(200, { openapi: '3.1.0' }),
    }
    const { client } = clientOf([({ method, path }) => responses[`${method} ${path}`]?.() ?? rejection(404, 'not_found')])
    const handle = client.tasks.get(taskId)
    expect(await client.agents.list()).toHaveLength(1)
    expect(await handle.detail()).toEqual({ task, turns: [turn(1)] })
    expect(await handle.remove()).toBeUndefined()
    expect(await handle.send('more', { ifBusy: 'reject' })).toEqual(turn(2))
    expect(await handle.cancel('enough')).toEqual(task)
    expect(await handle.messages({ after: 3, turn: 1 })).toEqual({ data: [], nextCursor: null })
    expect([await client.health(), await client.ready()]).toEqual([{ status: 'ok' }, { status: 'ready' }])
    expect(await client.metrics()).toBe('up 1\n')
    expect(await client.openapi()).toEqual({ openapi: '3.1.0' })
  })
})

describe('what goes wrong', () => {
  test.each([
    ['there is no response', broken],
    ['503', () => rejection(503, 'draining')],
    ['429', () => rejection(429, 'too_many_turns')],
    ['the first try is still in flight', () => rejection(409, 'in_flight', { 'retry-after': '1' })],
    ['a page of a proxy', () => new Response('<h1>Bad gateway</h1>', { status: 502 })],
    ['half an answer', () => new Response('{"task": {"id"', { headers: { 'content-type': 'application/json' } })],
  ])('%s: is asked again under the same key', async (_, respond) => {
    const { client, api } = clientOf([respond, respond, accepted])
    await client.tasks.create(body)
    const keys = api.requests.map(({ headers }) => headers.get('idempotency-key'))
    expect(keys).toHaveLength(3)
    expect(new Set(keys).size).toBe(1)
    await client.tasks.create(body)
    expect(api.requests.at(-1)?.headers.get('idempotency-key')).not.toBe(keys[0])
  })

  test('a key of the caller is kept', async () => {
    const { client, api } = clientOf([broken, accepted])
    await client.tasks.create(body, { idempotencyKey: 'mine' })
    expect(api.requests.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['mine', 'mine'])
  })

  test.each([
    [400, 'validation_failed'],
    [401, 'unauthorized'],
    [403, 'forbidden'],
    [404, 'task_not_found'],
    [409, 'task_busy'],
    [422, 'unknown_agent'],
  ])('%i %s is final, and one error', async (status, code) => {
    const { client, api } = clientOf([() => rejection(status, code)])
    const error = await client.tasks.create(body).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ name: 'RivuletError', code, message: `It is ${code}` })
    expect(rejectionOf(error)).toEqual({ status, code, requestId: 'r-1' })
    expect(api.requests).toHaveLength(1)
  })

  test('an unknown code is mapped by its status', async () => {
    const { client } = clientOf([() => rejection(422, 'moon_phase')])
    await expect(client.tasks.create(body)).rejects.toMatchObject({ code: 'unknown_agent', cause: { code: 'moon_phase', status: 422 } })
  })

  test('an error with a malformed body is mapped by its status', async () => {
    const nonsense = { code: 5, message: { a: 1 }, requestId: [], details: ['x', { path: 'input', reason: 'is long' }] }
    const { client } = clientOf([() => json(404, { error: nonsense })])
    const error = await client.tasks.create(body).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'not_found', message: 'The server returned 404', cause: { status: 404 } })
    expect(error).toHaveProperty('details', [{ path: 'input', reason: 'is long' }])
  })

  test('tries are limited', async () => {
    const { client, api } = clientOf([broken], { maxRetries: 3 })
    await expect(client.tasks.create(body)).rejects.toMatchObject({ code: 'unreachable', row: { retry: true } })
    expect(api.requests).toHaveLength(4)
  })

  test('Retry-After is kept', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout')
    onTestFinished(() => timers.mockRestore())
    const { client } = clientOf([() => rejection(503, 'draining', { 'retry-after': '7' }), accepted])
    await client.tasks.create(body)
    expect(timers.mock.calls.map(([, ms]) => ms)).toContain(7_000)
  })

  test('a caller that aborts does not wait', async () => {
    const controller = new AbortController()
    const reason = new Error('left')
    const { client, api } = clientOf([broken], { wakeUps: () => () => {} })
    const created = client.tasks.create(body, { signal: controller.signal })
    await expect.poll(() => api.requests.length).toBeGreaterThan(0)
    controller.abort(reason)
    await expect(created).rejects.toBe(reason)
  })

  test('an answer that never comes is given up, and asked for again', async () => {
    const hang = ({ signal }: FakeRequest) =>
      new Promise<Response>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    const { client, api } = clientOf([hang, accepted], { timeoutMs: 20 })
    expect((await client.tasks.create(body)).id).toBe(taskId)
    expect(api.requests).toHaveLength(2)
  })

  test('a task that is gone after a try to remove it is removed; one that never was is an error', async () => {
    const gone = () => rejection(404, 'task_not_found')
    await clientOf([broken, gone]).client.tasks.get(taskId).remove()
    await expect(clientOf([gone]).client.tasks.get(taskId).remove()).rejects.toMatchObject({ code: 'task_not_found' })
  })
})

describe('a token', () => {
  const guarded = (valid: () => string) => (request: FakeRequest) =>
    request.headers.get('authorization') === `Bearer ${valid()}` ? accepted() : rejection(401, 'unauthorized')

  test('is asked for once, and again when it is refused', async () => {
    let valid = 'one'
    let asked = 0
    const { client } = clientOf([guarded(() => valid)], {
      token: async () => {
        asked += 1
        return valid
      },
    })
    await client.tasks.create(body)
    await client.tasks.create(body)
    expect(asked).toBe(1)
    valid = 'two'
    await Promise.all([client.tasks.create(body), client.tasks.create(body), client.tasks.create(body)])
    expect(asked).toBe(2)
  })

  test('that is refused twice is final', async () => {
    const { client, api } = clientOf([guarded(() => 'other')], { token: () => 'stale' })
    await expect(client.tasks.create(body)).rejects.toMatchObject({ code: 'unauthorized' })
    expect(api.requests).toHaveLength(2)
  })

  test('that cannot be had now is asked for again', async () => {
    let asked = 0
    const token = () => {
      asked += 1
      if (asked === 1) throw new TypeError('offline')
      return 'one'
    }
    const { client } = clientOf([guarded(() => 'one')], { token })
    expect((await client.tasks.create(body)).id).toBe(taskId)
  })

  test('that never resolves blocks neither a call nor a reader that stops', async () => {
    const { client, api } = clientOf([accepted], { token: () => new Promise(() => {}), timeoutMs: 20, maxRetries: 1 })
    await expect(client.tasks.create(body)).rejects.toMatchObject({ code: 'unreachable', message: 'No answer within 20 ms' })
    const events = client.tasks.get(taskId).events()
    const next = events.next()
    await events.return?.()
    expect(await next).toEqual({ done: true, value: undefined })
    expect(api.requests).toHaveLength(0)
  })
})

test('a redirect to another host is followed without the key', async () => {
  const heard: (string | undefined)[] = []
  const elsewhere = createServer((request, response) => {
    heard.push(request.headers.authorization)
    response.end('{"status":"ok"}')
  })
  const moved = createServer((request, response) => {
    heard.push(request.headers.authorization)
    response.writeHead(307, { location: `${urlOf(elsewhere)}/healthz` }).end()
  })
  for (const server of [elsewhere, moved]) await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const server of [elsewhere, moved]) server.close().closeAllConnections()
  })
  expect(await createClient({ url: urlOf(moved), key: 'secret' }).health()).toEqual({ status: 'ok' })
  expect(heard).toEqual(['Bearer secret', undefined])
})

function urlOf(server: Server): string {
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
}
