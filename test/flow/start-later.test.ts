/** `start: false`: a task without a turn, which can be watched, named, sent to and removed like any other. */
import type { Message, Task } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { Accepted, ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { watch } from '../support/viewers/viewer.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

async function create(body: object = {}): Promise<Task> {
  const { status, body: answer } = await platform.client.post<Accepted>('/v1/tasks', { agent: 'echo', start: false, ...body })
  expect([status, Object.keys(answer)]).toEqual([201, ['task']])
  return answer.task
}

describe('a task that has not started', () => {
  test('is queued, has no turns, and starts with its first input', async () => {
    const { id } = await create({ metadata: { mark: 'later' } })
    expect(await platform.client.detail(id)).toMatchObject({ task: { status: 'queued', metadata: { mark: 'later' } }, turns: [] })
    expect(await platform.client.messages(id)).toEqual([])
    expect(await platform.client.cancel(id)).toMatchObject({ status: 'queued' })
    expect(await platform.client.addTurn(id, { input: 'now' })).toMatchObject({ number: 1 })
    await platform.client.waitForEnd(id)
    expect(await platform.client.messages(id)).toMatchObject([{ author: 'user' }, { author: 'agent', content: { text: 'now' } }])
    expect(await faultsOf(platform, id)).toEqual([])
  })

  test('has a stream that waits for the first turn, and misses nothing of it', async () => {
    const { id } = await create()
    const viewer = watch(id, { urls: [platform.url] })
    await viewer.until('it has caught up', () => viewer.frames().some(({ data }) => data.type === 'caught_up'))
    await platform.client.addTurn(id, { input: 'now' })
    await viewer.ended
    const types = viewer.frames().map(({ data }) => data.type)
    expect(types).toEqual([
      ...['snapshot', 'caught_up', 'turn.queued', 'turn.started'],
      ...['message.started', 'message.delta', 'message.finished', 'turn.finished', 'end'],
    ])
    expect(viewer.frames()[0]?.data).toMatchObject({ task: { status: 'queued' }, turns: [], messages: [] })
  })

  test('streams its first turn in other formats, too', async () => {
    const { id } = await create()
    const response = await fetch(`${platform.url}/v1/tasks/${id}/events?format=ai-sdk`)
    await platform.client.addTurn(id, { input: 'now' })
    const text = await response.text()
    expect(text).toContain('"delta":"now"')
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true)
  })

  test('can be had by its name, before and after it starts', async () => {
    const { id } = await create({ name: 'later' })
    const again = await platform.client.post<Accepted>('/v1/tasks', { agent: 'echo', name: 'later', start: false })
    expect([again.status, again.body.task.id, again.body.turn]).toEqual([200, id, undefined])
    // Without an input, a request that starts the task gives it its first turn, and the next one returns that turn.
    const started = await platform.client.post<Accepted>('/v1/tasks', { agent: 'echo', name: 'later' })
    expect([started.status, started.body.turn.number]).toEqual([200, 1])
    await platform.client.waitForEnd(id)
    const latest = await platform.client.post<Accepted>('/v1/tasks', { agent: 'echo', name: 'later', start: false })
    expect([latest.status, latest.body.turn.status]).toEqual([200, 'completed'])
  })

  test('does not wait for an end that cannot come', async () => {
    const { status, body } = await platform.client.post<Accepted>('/v1/tasks?wait=60s', { agent: 'echo', start: false })
    expect([status, body.task.status]).toEqual([201, 'queued'])
  })

  test('can be deleted', async () => {
    const { id } = await create()
    expect((await platform.client.remove(id)).status).toBe(204)
  })

  test.each([
    ['input', { input: 'a' }],
    ['delayMs', { delayMs: 5 }],
  ])('takes no %s', async (field, body) => {
    const refused = await platform.client.post<ErrorReply>('/v1/tasks', { agent: 'echo', start: false, ...body })
    expect([refused.status, refused.body.error.details?.[0]?.path]).toEqual([400, `/${field}`])
  })
})

test('one message is there by its index, of a turn that has ended and of one that runs', async () => {
  const steps = [{ delta: { index: 0, delta: { type: 'text', text: 'so far' } } }, { sleep: 60_000 }]
  const { task } = await platform.client.createTask({ agent: 'scripted', input: 'go', params: { steps } })
  const read = (index: string | number) => platform.client.get<{ message: Message }>(`/v1/tasks/${task.id}/messages/${index}`)
  await until('it speaks', async () => {
    const content = (await read(1)).body.message?.content
    return content?.type === 'text' && content.text === 'so far'
  })
  await platform.client.cancel(task.id)
  expect(await read(0)).toMatchObject({ status: 200, body: { message: { index: 0, author: 'user' } } })
  expect(await read(1)).toMatchObject({ status: 200, body: { message: { index: 1, status: 'aborted', content: { text: 'so far' } } } })
  expect(await read(2)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
  for (const odd of ['-1', '1e1', '01x', '9999999999']) expect((await read(odd)).status).toBe(400)
})
