/** The calls made from the contract's rows, where a generic one could do harm that a hand-written one did not. */
import { expect, test } from 'vitest'
import { createClient } from '../client.ts'

const requests: { url: string; body: unknown }[] = []
const task = { id: '01890000-0000-7000-8000-000000000000', agent: 'a', status: 'queued', params: null, metadata: {} }
const times = { createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-01T00:00:00.000Z' }

const client = createClient({
  url: 'http://127.0.0.1:4000',
  maxRetries: 0,
  fetch: async (url, init) => {
    requests.push({ url: String(url), body: init?.body })
    return Response.json({ task: { ...task, ...times }, messages: [], cancel: 'of a newer server' }, { status: 201 })
  },
})

test('a change without its terms sends no body, which the API refuses, instead of an empty one that removes every limit', async () => {
  const unset = undefined as unknown as { concurrency: number }
  await client.limits.set('a', unset).catch(() => {})
  expect(requests.at(-1)).toEqual({ url: 'http://127.0.0.1:4000/v1/limits/a', body: undefined })
})

test('a name that no path has rejects, and does not throw', async () => {
  const before = requests.length
  await expect(client.files.delete('..')).rejects.toMatchObject({ code: 'bad_call' })
  expect(requests).toHaveLength(before)
})

test('a handle keeps its methods when a newer server returns fields of the same names', async () => {
  const handle = await client.tasks.create({ agent: 'a', input: 'go', start: false })
  expect([typeof handle.messages, typeof handle.cancel]).toEqual(['function', 'function'])
})
