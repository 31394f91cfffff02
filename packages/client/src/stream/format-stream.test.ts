import { expect, test } from 'vitest'
import { createFakeApi, openStream, rejection } from '../../test/fake-api.ts'
import { taskId } from '../../test/sample-task.ts'
import { createClient } from '../client.ts'
import type { FormatChunk } from './format-stream.ts'

const path = `/v1/tasks/${taskId}/events`

function handleOf(api: ReturnType<typeof createFakeApi>) {
  const wakeUps = (wake: () => void) => {
    queueMicrotask(wake)
    return () => {}
  }
  return createClient({ url: 'http://api.test', fetch: api.fetch as typeof fetch, wakeUps }).tasks.get(taskId)
}

async function allOf(chunks: AsyncIterable<FormatChunk>, into: FormatChunk[] = []): Promise<FormatChunk[]> {
  for await (const chunk of chunks) into.push(chunk)
  return into
}

test('chunks come over any number of connections, each from the last id, until the end', async () => {
  const api = createFakeApi(() => openStream())
  const soFar: FormatChunk[] = []
  const received = allOf(handleOf(api).chunks('agentex', { follow: true }), soFar)
  const first = await api.stream(0)
  first.raw('retry: 1\n\n: hb\n\nid: 1-2+\nevent: turn\ndata: {"turn":1}\n\n')
  await expect.poll(() => soFar.length).toBe(1)
  first.cut()
  const second = await api.stream(1)
  second.raw('id: 1-3\ndata: {"type":"done"}\n\n')
  await expect.poll(() => soFar.length).toBe(2)
  second.end()
  const third = await api.stream(2)
  third.raw('id: 1-3\nevent: end\ndata: {"type":"end"}\n\n')
  expect(await received).toEqual([
    { id: '1-2+', event: 'turn', data: { turn: 1 } },
    { id: '1-3', event: null, data: { type: 'done' } },
    { id: '1-3', event: 'end', data: { type: 'end' } },
  ])
  expect(api.pathsOf('GET')).toEqual([
    `${path}?format=agentex&follow=true`,
    `${path}?format=agentex&follow=true&after=1-2%2B`,
    `${path}?format=agentex&follow=true&after=1-3`,
  ])
})

test('a format of one turn ends with its own ending', async () => {
  const api = createFakeApi(() => openStream())
  const received = allOf(handleOf(api).chunks('ai-sdk', { turn: 2, after: '1-1' }))
  const stream = await api.stream(0)
  stream.raw('data: {"type":"text-end"}\n\nid: 1-9\ndata: {"type":"finish"}\n\ndata: [DONE]\n\n')
  expect((await received).map(({ id }) => id)).toEqual([null, '1-9'])
  expect(api.pathsOf('GET')).toEqual([`${path}?format=ai-sdk&turn=2&after=1-1`])
})

test('nothing comes where nothing is left, and a refusal is thrown', async () => {
  const over = createFakeApi(() => new Response(null, { status: 204 }))
  expect(await allOf(handleOf(over).chunks('agentkit', { after: '1-9' }))).toEqual([])
  const refused = createFakeApi(() => rejection(400, 'validation_failed'))
  await expect(allOf(handleOf(refused).chunks('agentkit', { turn: 1 }))).rejects.toMatchObject({ code: 'validation_failed' })
})
