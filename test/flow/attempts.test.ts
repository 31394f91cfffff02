/** The attempts of a turn: each is kept with its error, its worker, its times and what it said, and counts for the bill. */
import type { Attempt } from '@rivulet/contract/turns'
import type { Message } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { billedModel } from '../support/agents/billed-agent.ts'
import { openBill, playBilledTurns, reportOf, startBilledWorker } from '../support/agents/billed-turns.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

let platform: Platform
const say = (text: string) => ({ delta: { index: 0, delta: { type: 'text', text } } })
const used = (inputTokens: number, model = 'gpt-4o') => ({ done: { index: 0, usage: { inputTokens, outputTokens: 1 }, model } })

beforeAll(async () => {
  // The scripted agent ends the process that runs it only where that is allowed; a second worker goes on.
  platform = await startPlatform({ workers: 2, env: { ...shortLease, RIVULET_ALLOW_EXIT: '1' } })
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

test('an attempt whose worker died is kept with what it had said and used', async () => {
  const { task } = await platform.client.createTask({
    agent: 'scripted',
    params: { attempts: { 1: [say('last words'), used(10), { sleep: 500 }, { exit: 1 }], 2: [say('a new life'), used(20)] } },
  })
  const { turns } = await platform.client.waitForEnd(task.id)
  expect(turns).toMatchObject([{ usageTotal: { inputTokens: 30, outputTokens: 2 } }])
  const [first, second] = await attemptsOf(task.id)
  expect(first).toMatchObject({
    attempt: 1,
    usage: { inputTokens: 10, outputTokens: 1 },
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

describe('usage', () => {
  const play = (attempts: object, more: object = {}) =>
    platform.client.createTask({ agent: 'scripted', params: { attempts }, concurrencyKey: 'usage', ...more })

  test('of an attempt that failed is part of the total and of the cost of its turn', async () => {
    const { task } = await play({ 1: [say('a'), used(1_000), { throw: 'no luck' }], 2: [say('b'), used(2_000)] })
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns).toMatchObject([
      { usage: { inputTokens: 2_000, outputTokens: 1 }, usageTotal: { inputTokens: 3_000, outputTokens: 2 }, cost: 0.00752 },
    ])
    expect(await attemptsOf(task.id)).toMatchObject([{ usage: { inputTokens: 1_000 } }, { usage: { inputTokens: 2_000 } }])
    const finished = (await platform.log(task.id)).find(({ event }) => event.type === 'turn.finished')
    expect(finished?.event).toMatchObject({ usageTotal: { inputTokens: 3_000, outputTokens: 2 }, cost: 0.00752 })
    const { body } = await platform.client.get<{ data: { id: string; tokens: number; cost: number }[] }>('/v1/tasks?view=summary')
    expect(body.data.find(({ id }) => id === task.id)).toMatchObject({ tokens: 3_002, cost: 0.00752 })
    const [, message] = [null, ...(await platform.client.messages(task.id))] as (Message | null)[]
    expect(message?.response).toEqual({ id: expect.any(String), model: 'gpt-4o' })
  })

  test('of a canceled turn counts, and stays when the task is deleted', async () => {
    const before = (await reportOf(platform)).total
    const { task } = await play({ 1: [say('a'), used(40), { sleep: 60_000 }] })
    await until('it has used something', async () => (await platform.client.messages(task.id)).some(({ usage }) => usage))
    await platform.client.post(`/v1/tasks/${task.id}/cancel`, {})
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns).toMatchObject([{ status: 'canceled', usageTotal: { inputTokens: 40 } }])
    const spent = async () => ((await reportOf(platform)).total.usage.inputTokens ?? 0) - (before.usage.inputTokens ?? 0)
    expect(await spent()).toBe(40)
    expect((await platform.client.remove(task.id)).status).toBe(204)
    expect(await spent()).toBe(40)
  })

  test('of a model without a price has no cost, and the report tells how many responses have none', async () => {
    const { task } = await play({ 1: [say('a'), used(5, 'homegrown')] })
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns[0]).toMatchObject({ usageTotal: { inputTokens: 5 } })
    expect(turns[0]).not.toHaveProperty('cost')
    const { data } = await reportOf(platform)
    expect(data.find(({ group }) => group === 'homegrown')).toMatchObject({ cost: null, unpriced: 1, responses: 1, turns: 1, tokens: 6 })
  })

  test('fails the next turn of a task that has used its budget, without a retry', async () => {
    const { task } = await play({ 1: [say('a'), used(100)] }, { budget: { tokens: 50 } })
    expect((await platform.client.waitForEnd(task.id)).turns).toMatchObject([{ status: 'completed' }])
    await platform.client.addTurn(task.id, { input: 'more' })
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns[1]).toMatchObject({ status: 'failed', attempt: 1, error: { code: 'budget_exceeded' } })
    expect(task).toMatchObject({ budget: { tokens: 50 } })
    expect(await (await fetch(`${platform.url}/metrics`)).text()).toMatch(/^rivulet_tokens_total\{agent="\w+",model="[^"]+"\} [1-9]/m)
  })

  test('ends a run before the call of a model that its budget has no room for', async () => {
    const bill = openBill()
    await Promise.all([startBilledWorker(platform), startBilledWorker(platform)])
    const params = { bill: bill.path, rounds: 3, ends: [] }
    const { task } = await platform.client.createTask({ agent: 'billed', input: 'go', params, budget: { usd: 0.000001 } })
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns).toMatchObject([{ status: 'failed', attempt: 1, error: { code: 'budget_exceeded' }, usageTotal: bill.total() }])
  })

  test.each([
    ['tokens', { tokens: 1_000 }],
    ['US dollars', { usd: 0.005 }],
  ])('that a handler adds counts at once for a budget in %s', async (unit, budget) => {
    const calls: number[] = []
    const name = `spender-${unit.slice(0, 2).toLowerCase()}`
    const spender = defineAgent(name, async turn => {
      for (const call of [1, 2]) {
        turn.usage.checkBudget()
        calls.push(call)
        turn.usage.add({ inputTokens: 2_000, outputTokens: 220 }, { model: 'gpt-4o' })
      }
    })
    await startOwnWorker(platform, [spender])
    const { task } = await platform.client.createTask({ agent: name, input: 'go', budget })
    expect((await platform.client.waitForEnd(task.id)).turns).toMatchObject([{ status: 'failed', error: { code: 'budget_exceeded' } }])
    expect(calls).toEqual([1])
  })

  test('is what the provider has billed, through crashes, failures, refusals and cancels', async () => {
    const bill = openBill()
    const from = new Date().toISOString()
    const kept = ['ok', 'throw', 'refused', 'ok'] as const
    await playBilledTurns(platform, [['crash'], ['slow'], ['hang'], ...kept.map(end => [end]), ['throw', 'refused', 'throw']], bill.path)
    // An aborted response is reported once its worker has heard of the cancel.
    const { inputTokens = 0, outputTokens = 0 } = bill.total()
    await until('all is reported', async () => (await reportOf(platform, `from=${from}`)).total.tokens >= inputTokens + outputTokens)
    const { data, total } = await reportOf(platform, `by=model&from=${from}`)
    expect(total).toMatchObject({ usage: { inputTokens, outputTokens }, turns: 8, unpriced: 0 })
    expect(data.map(({ group }) => group)).toEqual([billedModel])
    const { data: keys } = await reportOf(platform, `by=key&from=${from}`)
    expect(keys.map(({ group }) => group).sort()).toEqual(['customer 0', 'customer 1', 'customer 2', 'customer 3'])
    expect(keys.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(total.tokens)
  })
})

async function attemptsOf(task: string): Promise<Attempt[]> {
  return (await platform.client.get<{ data: Attempt[] }>(`/v1/tasks/${task}/turns/1/attempts`)).body.data
}
