/**
 * Nothing that a task contains stays after it was removed, whichever way: every table, and every key and value of Redis, is searched for a mark.
 * `test/sdks/s3.test.ts` does the same with a bucket.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mark, markedTask, placesWithMark } from '../support/platform/marked-task.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { createClient } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

const env = { SECRETS_KEY: 'a key for the secrets of this test' }

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform({ env })
})
afterAll(() => platform.close())

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
