/** Nothing that a task contains stays after it was removed, whichever way: every table, and every key and value of Redis, is searched for a mark. */
import { createHash } from 'node:crypto'
import type { Wait } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { type Accepted, createClient, type Reply } from '../support/platform/platform-client.ts'
import { storedTexts } from '../support/platform/stored-texts.ts'
import { until } from '../support/until.ts'

const mark = 'mark-of-a-removed-task'
/** As Postgres shows bytes. */
const markInHex = Buffer.from(mark).toString('hex')
const env = { SECRETS_KEY: 'a key for the secrets of this test' }

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform({ env })
})
afterAll(() => platform.close())

/** A task with the mark in all that it can have, and in the stored response of each call that keeps one under an Idempotency-Key. */
async function markedTask({ url, pg }: Platform): Promise<string> {
  const client = createClient(() => url)
  const uploaded = await upload(url)
  const name = `${mark} ${crypto.randomUUID()}`
  const steps = [
    { full: { index: 0, content: { type: 'text', text: mark } } },
    // Beyond what a row keeps, so it is a file.
    { full: { index: 1, content: { type: 'data', data: { mark, padding: 'x'.repeat(300_000) } } } },
    { custom: { name: mark, data: { mark } } },
    { state: { value: mark } },
    { ask: { name: mark, title: mark, holdMs: 0 } },
  ]
  const input = [
    { type: 'text', text: mark },
    { type: 'media', mimeType: 'text/plain', file: uploaded },
  ]
  const params = { steps }
  const body = { agent: 'scripted', input, params, metadata: { mark }, name, secrets: { MARK: mark } }
  const { task } = await client.createTask(body)
  const { id } = task
  const wait = await until('the turn asks', async () => {
    const { data } = (await client.get<{ data: Wait[] }>(`/v1/waits?task=${id}`)).body
    return data[0]
  })
  const call = async (path: string, given: object) => {
    const reply = await client.insist<Accepted>(`/v1/tasks/${id}${path}`, given)
    expect([path, reply.status < 300]).toEqual([path, true])
  }
  await call('/signals', { name: mark, data: { mark } })
  await call(`/waits/${wait.id}/answer`, { action: 'accept', content: { mark }, comment: mark })
  await client.waitForEnd(id)
  await client.insist('/v1/tasks', { agent: 'scripted', name })
  await call('/retry', {})
  await call('/cancel', { reason: mark })
  await client.waitForEnd(id)
  // As a token of the task uploads one that no input refers to; an API without keys reads no token.
  await pg.query('update files set uploaded_for = $1 where id = $2', [id, await upload(url)])
  return id
}

/** With the mark in its name, its bytes, and the response that is kept under its key. */
async function upload(url: string): Promise<string> {
  const headers = {
    ...{ 'content-type': 'text/plain', 'idempotency-key': crypto.randomUUID() },
    'x-filename': mark,
  }
  const reply: Reply<{ file: { id: string; sha256: string } }> = await createClient(() => url).send('POST', '/v1/files', {
    body: mark,
    headers,
  })
  expect([reply.status, reply.body.file?.sha256]).toEqual([201, createHash('sha256').update(mark).digest('hex')])
  return reply.body.file.id
}

async function placesWithMark(searched: Platform): Promise<string[]> {
  const texts = [mark, markInHex]
  return [...(await storedTexts(searched))].flatMap(([name, text]) =>
    texts.some(one => text.includes(one) || name.includes(one)) ? name : [],
  )
}

const everywhere = ['table idempotency_keys', 'table tasks', 'table turns', 'table messages', 'table files', 'table file_chunks']

test.each([
  ['DELETE /v1/tasks/:id', (id: string) => `/v1/tasks/${id}`],
  ['DELETE /openai/v1/responses/:id', (id: string) => `/openai/v1/responses/${id}.1.1`],
])('after %s, neither Postgres nor Redis has anything of the task', async (_, pathOf) => {
  const client = createClient(() => platform.url)
  const isResponse = pathOf('').startsWith('/openai')
  const id = isResponse ? await markedResponse() : await markedTask(platform)
  expect(await placesWithMark(platform)).toEqual(expect.arrayContaining(isResponse ? everywhere.slice(0, 4) : everywhere))
  expect(JSON.stringify(await platform.log(id))).toContain(mark)
  expect((await client.send('DELETE', pathOf(id))).status).toBeLessThan(300)
  await expect.poll(() => placesWithMark(platform), { interval: 250 }).toEqual([])
  await until('Redis has no key of it', async () => (await platform.redis.keys(`*${id}*`)).length === 0)
})

async function markedResponse(): Promise<string> {
  const client = createClient(() => platform.url)
  const { body } = await client.insist<{ id: string }>('/openai/v1/responses', {
    ...{ model: 'echo', input: mark, metadata: { mark }, conversation: `${mark} ${crypto.randomUUID()}`, background: true },
  })
  const [id = ''] = body.id.split('.')
  await client.waitForEnd(id)
  return id
}

test('after the retention of a task, neither Postgres nor Redis has anything of what it said', async () => {
  const retaining = await startPlatform({ env })
  try {
    await markedTask(retaining)
    expect(await placesWithMark(retaining)).toEqual(expect.arrayContaining(everywhere))
    await retaining.startApi({ env: { TASK_RETENTION_DAYS: String(1 / 86_400_000) } })
    await expect.poll(() => placesWithMark(retaining), { interval: 250 }).toEqual([])
  } finally {
    await retaining.close()
  }
})
