/** Finding tasks and paging through them. No worker is needed: the agent is registered, and no worker runs it. */
import type { Agent } from '@rivulet/contract/agents'
import type { Message, Task } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply, Page } from '../support/platform/platform-client.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
  const agents = ['idle', 'other'].map(name => ({ name, description: `The ${name} one` }))
  await platform.client.post('/internal/hello', { worker: 'none', agents })
})
afterAll(() => platform.close())

describe('paging through tasks', () => {
  test('newest first, each once, also while tasks are added', async () => {
    const before: string[] = []
    for (let i = 0; i < 25; i += 1) before.push((await platform.client.createTask({ agent: 'idle', metadata: { paged: 'yes' } })).task.id)
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const page: Page<Task> = await list(`metadata.paged=yes&limit=10${cursor ? `&cursor=${cursor}` : ''}`)
      expect(page.data.length).toBeLessThanOrEqual(10)
      seen.push(...page.data.map(({ id }) => id))
      cursor = page.nextCursor
      await platform.client.createTask({ agent: 'idle', metadata: { paged: 'yes' } })
    } while (cursor !== null)
    expect(seen).toEqual(before.toReversed())
    expect((await list('metadata.paged=yes')).data).toHaveLength(28)
  })

  test('a page that is exactly full is the last one when nothing follows', async () => {
    for (let i = 0; i < 3; i += 1) await platform.client.createTask({ agent: 'idle', metadata: { exact: true } })
    expect(await list('metadata.exact=true&limit=3')).toMatchObject({ nextCursor: null })
    expect((await list('metadata.exact=true&limit=2')).nextCursor).toMatch(/-/)
  })

  test.each([
    'limit=0',
    'limit=101',
    'limit=-1',
    'limit=1e2',
    'limit=',
    'cursor=garbage',
    'status=asleep',
    'agent=NO',
    'surprise=1',
    'metadata.=1',
  ])('a query that makes no sense (%s) is refused', async query => {
    const { status, body } = await platform.client.get<ErrorReply>(`/v1/tasks?${query}`)
    expect([status, body.error.code]).toEqual([400, 'validation_failed'])
  })
})

describe('finding tasks', () => {
  test('by metadata: text, numbers and truth alike, and by several at once', async () => {
    const make = (metadata: object) => platform.client.createTask({ agent: 'idle', metadata: { find: 'me', ...metadata } })
    const [text, number, truth] = [
      await make({ size: '5', shape: 'round' }),
      await make({ size: 5 }),
      await make({ size: true, 'odd key/~': 'x' }),
    ]
    const found = async (query: string) => (await list(query)).data.map(({ id }) => id)
    expect(await found('metadata.find=me')).toEqual([truth.task.id, number.task.id, text.task.id])
    expect(await found('metadata.find=me&metadata.size=5')).toEqual([number.task.id, text.task.id])
    expect(await found('metadata.find=me&metadata.size=true')).toEqual([truth.task.id])
    expect(await found('metadata.find=me&metadata.size=5&metadata.shape=round')).toEqual([text.task.id])
    expect(await found(`metadata.${encodeURIComponent('odd key/~')}=x`)).toEqual([truth.task.id])
    expect(await found('metadata.find=you')).toEqual([])
  })

  test('by agent, name and status', async () => {
    const { task } = await platform.client.createTask({ agent: 'other', name: 'the only one' })
    await platform.client.cancel((await platform.client.createTask({ agent: 'other' })).task.id)
    expect((await list('agent=other')).data).toHaveLength(2)
    expect((await list('agent=other&status=queued')).data).toMatchObject([{ id: task.id, name: 'the only one' }])
    expect((await list('agent=other&status=canceled')).data).toHaveLength(1)
    expect((await list('name=the%20only%20one')).data).toMatchObject([{ id: task.id }])
    expect((await list('agent=idle&name=the%20only%20one')).data).toEqual([])
  })
})

test('paging through messages, by index and by turn', async () => {
  const { task } = await platform.client.createTask({ agent: 'idle' })
  await platform.client.cancel(task.id)
  for (let number = 2; number <= 3; number += 1) {
    await platform.client.addTurn(task.id, {})
    await platform.client.cancel(task.id)
  }
  await platform.pg.query(
    `insert into messages (task, index, turn, attempt, author, content, metadata, status, created_at)
     select $1, i, i / 5 + 1, 1, 'agent', json_build_object('type', 'text', 'text', i::text, 'format', 'plain'), '{}', 'complete', now()
     from generate_series(0, 14) i`,
    [task.id],
  )
  const page = async (query: string) => (await platform.client.get<Page<Message, number>>(`/v1/tasks/${task.id}/messages?${query}`)).body
  const indexes = ({ data, nextCursor }: Page<Message, number>) => [data.map(({ index }) => index), nextCursor]
  expect(indexes(await page('limit=6'))).toEqual([[0, 1, 2, 3, 4, 5], 5])
  expect(indexes(await page('limit=6&after=5'))).toEqual([[6, 7, 8, 9, 10, 11], 11])
  expect(indexes(await page('limit=6&after=11'))).toEqual([[12, 13, 14], null])
  expect(indexes(await page('turn=2'))).toEqual([[5, 6, 7, 8, 9], null])
  expect(indexes(await page('after=99'))).toEqual([[], null])
  expect((await platform.client.get(`/v1/tasks/${task.id}/messages?limit=101`)).status).toBe(400)
})

test('a task shows its latest hundred turns, in order', async () => {
  const { task } = await platform.client.createTask({ agent: 'idle' })
  await platform.client.cancel(task.id)
  await platform.pg.query(
    `insert into turns (id, task, number, status, attempt, queued_at, run_at, deadline, announced)
     select gen_random_uuid(), $1, n, 'canceled', 0, now(), now(), now(), true from generate_series(2, 120) n`,
    [task.id],
  )
  const { turns } = await platform.client.detail(task.id)
  expect(turns.map(({ number }) => number)).toEqual(Array.from({ length: 100 }, (_, i) => i + 21))
})

test('agents are shown with their workers and their work', async () => {
  await platform.client.post('/internal/hello', { worker: 'w1', agents: [{ name: 'counted', description: 'Counts' }] })
  await platform.client.post('/internal/hello', { worker: 'w2', agents: [{ name: 'counted', description: 'Counts more' }] })
  await platform.client.createTask({ agent: 'counted' })
  const { body } = await platform.client.get<{ data: Agent[] }>('/v1/agents')
  expect(body.data.find(({ name }) => name === 'counted')).toEqual({
    name: 'counted',
    description: 'Counts more',
    paused: false,
    workers: 2,
    queued: 1,
    running: 0,
  })
})

async function list(query: string): Promise<Page<Task>> {
  const { status, body } = await platform.client.get<Page<Task>>(`/v1/tasks?${query}`)
  expect(status).toBe(200)
  return body
}
