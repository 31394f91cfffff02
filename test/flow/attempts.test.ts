/** The attempts of a turn: each is kept with its error, its worker, its times and what it said. */
import type { Attempt } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

let platform: Platform
const say = (text: string) => ({ delta: { index: 0, delta: { type: 'text', text } } })

beforeAll(async () => {
  // The scripted agent ends the process that runs it only where that is allowed; a second worker goes on.
  platform = await startPlatform({ workers: 2, env: { RIVULET_ALLOW_EXIT: '1' } })
})
afterAll(() => platform.close())

test('an attempt that failed is kept beside the one that counts', async () => {
  const { task } = await platform.client.createTask({
    agent: 'scripted',
    params: { attempts: { 1: [say('half an ans'), { throw: 'no luck' }], 2: [say('the answer')] } },
  })
  await platform.client.waitForEnd(task.id)
  const [first, second, ...others] = await attemptsOf(task.id)
  expect(others).toEqual([])
  expect(first).toMatchObject({ attempt: 1, status: 'failed', error: { code: 'agent_error' }, worker: expect.any(String) })
  expect(first?.messages).toMatchObject([{ content: { type: 'text', text: 'half an ans' }, attempt: 1, status: 'failed' }])
  expect(second).toMatchObject({ attempt: 2, status: 'completed' })
  expect(second?.messages).toBeUndefined()
  expect(Date.parse(first?.startedAt ?? '')).toBeLessThanOrEqual(Date.parse(first?.finishedAt ?? ''))
  expect(Date.parse(second?.startedAt ?? '')).toBeGreaterThanOrEqual(Date.parse(first?.finishedAt ?? ''))
})

test('an attempt whose worker died is kept with what it had said', async () => {
  const { task } = await platform.client.createTask({
    agent: 'scripted',
    params: { attempts: { 1: [say('last words'), { sleep: 500 }, { exit: 1 }], 2: [say('a new life')] } },
  })
  await platform.client.waitForEnd(task.id)
  const [first, second] = await attemptsOf(task.id)
  expect(first).toMatchObject({
    attempt: 1,
    status: 'lost',
    error: { code: 'worker_lost' },
    messages: [{ content: { text: 'last words' } }],
  })
  expect(second).toMatchObject({ attempt: 2, status: 'completed' })
})

test('a long text is kept as far as it fits, and the attempt says so', async () => {
  const { task } = await platform.client.createTask({
    agent: 'scripted',
    params: { attempts: { 1: [{ repeat: { times: 20, steps: [say('é'.repeat(5_000))] } }, { throw: 'no luck' }], 2: [] } },
  })
  await platform.client.waitForEnd(task.id)
  const [first] = await attemptsOf(task.id)
  const [message] = first?.messages ?? []
  const kept = message?.content.type === 'text' ? message.content.text : ''
  expect(kept).toMatch(/^é{4000,}$/)
  expect(Buffer.byteLength(JSON.stringify(first?.messages))).toBeLessThanOrEqual(32_768)
})

test('a delayed turn tells when it is due; a turn that has not begun has no attempt; one that does not exist is 404', async () => {
  const { task } = await platform.client.createTask({ agent: 'scripted', delayMs: 60_000 })
  const turn = (await platform.client.detail(task.id)).turns[0]
  expect(await attemptsOf(task.id)).toEqual([])
  expect(Date.parse(turn?.dueAt ?? '') - Date.parse(turn?.queuedAt ?? '')).toBe(60_000)
  const { status, body } = await platform.client.get<ErrorReply>(`/v1/tasks/${task.id}/turns/2/attempts`)
  expect([status, body.error.code]).toEqual([404, 'not_found'])
})

test('a turn tells its worker while it runs', async () => {
  const { task } = await platform.client.createTask({ agent: 'scripted', params: { steps: [say('x'), { sleep: 60_000 }] } })
  await until('it runs', async () => (await platform.client.detail(task.id)).turns[0]?.worker !== undefined)
  expect((await attemptsOf(task.id))[0]).toMatchObject({ attempt: 1, status: 'running', startedAt: expect.any(String) })
  await platform.client.post(`/v1/tasks/${task.id}/cancel`, {})
})

async function attemptsOf(task: string): Promise<Attempt[]> {
  return (await platform.client.get<{ data: Attempt[] }>(`/v1/tasks/${task}/turns/1/attempts`)).body.data
}
