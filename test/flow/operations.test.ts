/** What an operator asks of an API process: is it alive, is it ready, what has it done, and what does it offer. */
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform.ts'
import type { ErrorAnswer } from '../support/platform-client.ts'
import { startProxy } from '../support/proxy.ts'
import { until } from '../support/until.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

describe('readiness', () => {
  test('an API that waits for its database is alive but not ready, and needs no restart when it comes', async () => {
    const proxy = await startProxy(platform.databaseUrl)
    onTestFinished(() => proxy.close())
    proxy.down()
    const api = await platform.startApi({ env: { DATABASE_URL: proxy.url }, untilReady: false })
    const client = platform.clientOf(api)
    expect(await client.get('/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } })
    for (const path of ['/readyz', '/v1/tasks', '/v1/agents']) {
      const { status, body, headers } = await client.get<ErrorAnswer>(path)
      expect([path, status, body.error.code]).toEqual([path, 503, 'dependency_unavailable'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect((await client.post('/internal/hello', { worker: 'w', agents: [] })).status).toBe(503)
    proxy.up()
    await until('it is ready', async () => (await client.get('/readyz')).status === 200)
    expect((await client.get('/v1/tasks')).status).toBe(200)
    await api.kill('SIGTERM')
  })

  test('an API whose Redis or Postgres goes away says which, and comes back', async () => {
    const redis = await startProxy(inject('redisUrl'))
    const postgres = await startProxy(platform.databaseUrl)
    onTestFinished(() => Promise.all([redis.close(), postgres.close()]).then(() => {}))
    const api = await platform.startApi({ env: { REDIS_URL: redis.url, DATABASE_URL: postgres.url } })
    const client = platform.clientOf(api)
    for (const [name, proxy] of [
      ['Redis', redis],
      ['Postgres', postgres],
    ] as const) {
      proxy.down()
      const { body } = await until(`${name} is missed`, async () => {
        const answer = await client.get<ErrorAnswer>('/readyz')
        return answer.status === 503 && answer
      })
      expect(body.error.message).toContain(name)
      expect((await client.get('/healthz')).status).toBe(200)
      proxy.up()
      await until(`${name} is back`, async () => (await client.get('/readyz')).status === 200)
    }
    await api.kill('SIGTERM')
  })

  test('without Postgres a task is refused for now, and nothing of it is kept', async () => {
    const postgres = await startProxy(platform.databaseUrl)
    onTestFinished(() => postgres.close())
    const api = await platform.startApi({ env: { DATABASE_URL: postgres.url } })
    const client = platform.clientOf(api)
    postgres.down()
    const refused = await client.post<ErrorAnswer>('/v1/tasks', { agent: 'echo', input: 'a', metadata: { refused: true } })
    expect([refused.status, refused.body.error.code]).toEqual([503, 'dependency_unavailable'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    postgres.up()
    await until('it answers again', async () => (await client.get('/v1/tasks')).status === 200)
    expect((await client.get<{ data: unknown[] }>('/v1/tasks?metadata.refused=true')).body.data).toEqual([])
    await api.kill('SIGTERM')
  })
})

test('metrics tell what was done', async () => {
  const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'count me' })
  await platform.client.cancel(task.id)
  const { status, headers, body } = await platform.client.get<string>('/metrics')
  expect(status).toBe(200)
  expect(headers.get('content-type')).toMatch(/^text\/plain/)
  expect(body).toMatch(/^rivulet_tasks_created_total 1$/m)
  expect(body).toMatch(/^rivulet_turns_finished_total\{status="completed"\} 1$/m)
  expect(body).toMatch(/^process_cpu_seconds_total /m)
})

describe('the description of the API', () => {
  type Operation = { responses?: object; parameters?: { name: string; in: string }[]; requestBody?: object }
  type Document = { openapi: string; info: { title: string; version: string }; paths: Record<string, Record<string, Operation>> }

  test('names every route', async () => {
    const { paths } = await description()
    const offered = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`),
    )
    expect(offered).toEqual(
      expect.arrayContaining([
        'POST /v1/tasks',
        'GET /v1/tasks',
        'GET /v1/tasks/{id}',
        'DELETE /v1/tasks/{id}',
        'POST /v1/tasks/{id}/turns',
        'POST /v1/tasks/{id}/cancel',
        'GET /v1/tasks/{id}/messages',
        'GET /v1/tasks/{id}/events',
        'GET /v1/agents',
        'GET /healthz',
        'GET /readyz',
        'GET /metrics',
      ]),
    )
  })

  test('is OpenAPI 3.1 that can be followed: every reference leads somewhere, every path parameter is declared', async () => {
    const document = await description()
    expect(document.openapi).toMatch(/^3\.1\./)
    expect(document.info).toMatchObject({ title: 'Rivulet', version: expect.any(String) })
    for (const [path, methods] of Object.entries(document.paths)) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      for (const operation of Object.values(methods)) {
        expect(Object.keys(operation.responses ?? {})).not.toEqual([])
        const declared = (operation.parameters ?? []).filter(parameter => parameter.in === 'path').map(({ name }) => name)
        expect([path, ...declared]).toEqual([path, ...named])
      }
    }
    for (const reference of referencesIn(document)) expect([reference, lookUp(document, reference)]).toEqual([reference, expect.anything()])
  })

  test('says what a task may be made of', async () => {
    const { paths } = await description()
    const body = JSON.stringify(paths['/v1/tasks']?.post?.requestBody)
    for (const field of ['agent', 'input', 'params', 'metadata', 'name', 'priority', 'delayMs', 'timeoutMs', 'maxAttempts'])
      expect(body).toContain(`"${field}"`)
  })

  test('has a page', async () => {
    const { status, headers, body } = await platform.client.get<string>('/docs/')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toMatch(/^text\/html/)
    expect(body).toMatch(/swagger/i)
  })

  async function description(): Promise<Document> {
    const { status, body } = await platform.client.get<Document>('/openapi.json')
    expect(status).toBe(200)
    return body
  }
})

function referencesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  const own = '$ref' in value && typeof value.$ref === 'string' ? [value.$ref] : []
  return [...own, ...Object.values(value).flatMap(referencesIn)]
}

function lookUp(document: object, reference: string): unknown {
  const steps = reference.replace(/^#\//, '').split('/')
  return steps.reduce<unknown>((value, step) => {
    const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
  }, document)
}
