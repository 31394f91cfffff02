/** A task that has one mark in all that it can have, and where the mark is stored: to show that nothing of a removed task stays. */
import { createHash } from 'node:crypto'
import type { Wait } from '@rivulet/protocol'
import { expect } from 'vitest'
import { until } from '../until.ts'
import type { Platform } from './platform.ts'
import { type Accepted, createClient, type Reply } from './platform-client.ts'
import { storedTexts } from './stored-texts.ts'

export const mark = 'mark-of-a-removed-task'
/** As Postgres shows bytes. */
const markInHex = Buffer.from(mark).toString('hex')

/** A task with the mark in all that it can have, and in the stored response of each call that keeps one under an Idempotency-Key. */
export async function markedTask({ url, pg }: Platform): Promise<string> {
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
  const asks = async () => (await client.get<{ data: Wait[] }>(`/v1/waits?task=${id}`)).body.data[0]
  const wait = await until('the turn asks', asks)
  const call = async (path: string, given: object) => {
    const reply = await client.insist<Accepted>(`/v1/tasks/${id}${path}`, given)
    expect([path, reply.status < 300]).toEqual([path, true])
  }
  await call('/signals', { name: mark, data: { mark } })
  await call(`/waits/${wait.id}/answer`, { action: 'accept', content: { mark }, comment: mark })
  await client.waitForEnd(id)
  await client.insist('/v1/tasks', { agent: 'scripted', name })
  await call('/retry', {})
  // Canceled before, it would have no large value, and that of the turn before is discarded.
  await until('the next turn asks', asks)
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

/** The tables, and the keys of Redis. */
export async function placesWithMark(searched: Platform): Promise<string[]> {
  const texts = [mark, markInHex]
  return [...(await storedTexts(searched))].flatMap(([name, text]) =>
    texts.some(one => text.includes(one) || name.includes(one)) ? name : [],
  )
}
