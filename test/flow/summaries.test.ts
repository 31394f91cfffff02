/** Tasks as the lines of a list, the search for them, and the caller's own name. */
import type { Caller } from '@rivulet/contract/keys'
import type { TaskSummary } from '@rivulet/contract/tasks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply, Page } from '../support/platform/platform-client.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

describe('a summary', () => {
  test('has a title, times, tokens and the error, and no params', async () => {
    const { task } = await create({
      input: 'Count the ships',
      params: { steps: [{ sleep: 30 }, { custom: { name: 'large', data: 'x'.repeat(50_000) } }] },
    })
    await platform.client.waitForEnd(task.id)
    const failing = await create({ params: { steps: [{ throw: `no luck ${'!'.repeat(500)}` }] }, maxAttempts: 1 })
    await platform.client.waitForEnd(failing.task.id)
    const [failed, done] = await summaries()
    expect(done).toMatchObject({
      id: task.id,
      agent: 'scripted',
      status: 'completed',
      title: 'Count the ships',
      turns: 1,
      metadata: {},
      tokens: 0,
    })
    expect(done?.ranMs).toBeGreaterThanOrEqual(30)
    expect(Object.keys(done ?? {})).not.toContain('params')
    expect(failed?.error).toEqual({ code: 'agent_error', message: expect.stringMatching(/^no luck !+$/) })
    expect(failed?.error?.message).toHaveLength(300)
  })

  test('tells when a delayed task is due, and since when one runs', async () => {
    const { task: delayed } = await create({ delayMs: 60_000 })
    const { task: running } = await create({
      params: { steps: [{ delta: { index: 0, delta: { type: 'text', text: 'x' } } }, { sleep: 60_000 }] },
    })
    await platform.client.waitForTask(running.id, ({ task }) => task.status === 'running')
    const [second, first] = await summaries()
    expect(first?.id).toBe(delayed.id)
    expect(Date.parse(first?.dueAt ?? '') - Date.parse(first?.createdAt ?? '')).toBe(60_000)
    expect(second).toMatchObject({ id: running.id, status: 'running', runningSince: expect.stringMatching(/Z$/) })
    expect(second?.dueAt).toBeUndefined()
  })

  test('is found by a part of its input, its name, its metadata and by the beginning of its id, and by nothing else', async () => {
    const { task } = await create({
      input: 'A 100% sure_thing',
      name: 'Weekly Report',
      metadata: { customer: 'Nordwind' },
      delayMs: 60_000,
    })
    for (const q of ['100% SURE', 'kly rep', 'nordwind', task.id.slice(0, 20)]) expect([q, await found(q)]).toEqual([q, [task.id]])
    for (const q of ['100_', 'sureXthing', task.id.slice(-8), 'absent']) expect([q, await found(q)]).toEqual([q, []])
  })

  test('is found by the error that it ended with, and by how long it ran', async () => {
    const [failing, slow] = await Promise.all([
      create({ params: { steps: [{ throw: 'no luck' }] }, maxAttempts: 1, metadata: { set: 'ends' } }),
      create({ params: { steps: [{ sleep: 700 }] }, metadata: { set: 'ends' } }),
    ])
    await Promise.all([failing, slow].map(({ task }) => platform.client.waitForEnd(task.id)))
    const ids = async (query: string) => (await summaries(`&metadata.set=ends&${query}`)).map(({ id }) => id)
    expect(await ids('errorCode=agent_error')).toEqual([failing.task.id])
    expect(await ids('errorCode=timeout')).toEqual([])
    // On a busy machine, the one that fails may run longer than the one that rests.
    const ran = new Map((await summaries('&metadata.set=ends')).map(({ id, ranMs = 0 }) => [id, ranMs]))
    const longest = Math.max(...ran.values())
    expect(ran.get(slow.task.id)).toBeGreaterThanOrEqual(700)
    expect(await ids(`minDurationMs=${longest}`)).toEqual([...ran.keys()].filter(id => ran.get(id) === longest))
    expect(await ids(`maxDurationMs=${longest - 1}`)).toEqual([...ran.keys()].filter(id => ran.get(id) !== longest))
  })

  test.each(['view=all', 'q=', `q=${'x'.repeat(201)}`, 'errorCode=', 'minDurationMs=-1', 'maxDurationMs=long'])(
    '%s is refused',
    async query => {
      const { status, body } = await platform.client.get<ErrorReply>(`/v1/tasks?${query}`)
      expect([status, body.error.code]).toEqual([400, 'validation_failed'])
    },
  )
})

test('the API names its caller', async () => {
  const { body } = await platform.client.get<{ caller: Caller }>('/v1/whoami')
  expect(body.caller).toEqual({ tenant: 'default', scopes: ['tasks:read', 'tasks:write', 'admin', 'metrics', 'worker'] })
})

function create(body: object) {
  return platform.client.createTask({ agent: 'scripted', ...body })
}

async function summaries(query = ''): Promise<TaskSummary[]> {
  return (await platform.client.get<Page<TaskSummary>>(`/v1/tasks?view=summary${query}`)).body.data
}

async function found(q: string): Promise<string[]> {
  return (await summaries(`&q=${encodeURIComponent(q)}`)).map(({ id }) => id)
}
