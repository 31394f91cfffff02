/** A worker of another make that sends output at a wrong index: viewers receive it, and no row can hold it, so its turn is not completed. */
import { randomUUID } from 'node:crypto'
import { createLogWriter } from '@rivulet/broker'
import type { Claim, ClaimResult } from '@rivulet/contract/internal'
import type { Message, Turn } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

let platform: Platform

beforeAll(async () => {
  // No lease expires while a test has a turn.
  platform = await startPlatform({ env: { LEASE_MS: '600000' }, workers: 0 })
  await ask('hello', { worker: 'foreign', agents: [{ name: 'played', description: '' }] })
})

afterAll(() => platform?.close())

describe.each([
  ['through Redis', appendToRedis],
  ['over HTTP', appendOverHttp],
] as const)('of a worker that appends %s', (_, append) => {
  test.each([
    ['a message whose index is too high', 6, [started(6), finished(6)]],
    ['a message that skips an index, behind one that is right', 3, [started(1), finished(1), started(3), finished(3)]],
    ['a delta of a message without a start', 1, [delta(1), finished(1)]],
    ['a message at the index of the input', 0, [started(0), delta(0), finished(0)]],
    ['a delta behind the end of its message', 1, [started(1), finished(1), delta(1)]],
  ])('a turn with %s fails, and its error names the message', async (_, index, events) => {
    const claim = await claimTurn()
    expect(await append(claim, events)).toBe('ok')
    expect(await finish(claim, events.length)).toEqual({ result: 'committed' })
    const { status, error } = await turnOf(claim)
    expect([status, error?.code]).toEqual(['failed', 'index_out_of_order'])
    expect(error?.message).toContain(`message ${index},`)
  })

  test('a turn with messages at their indexes is completed, and has them', async () => {
    const claim = await claimTurn()
    const events = [started(1), delta(1), finished(1), started(2), finished(2)]
    expect(await append(claim, events)).toBe('ok')
    expect(await finish(claim, events.length)).toEqual({ result: 'committed' })
    expect((await turnOf(claim)).status).toBe('completed')
    expect(await textsOf(claim)).toEqual(['go', 'words and more', 'words'])
  })

  test('a turn with a message whose index is too high cannot park', async () => {
    const claim = await claimTurn()
    const { holding } = claim
    const wait = { name: 'go', kind: 'approval', title: 'May I?', actions: ['accept'], metadata: {}, expires: { inMs: 60_000 } }
    expect(await ask('ask', { turnId: holding.turnId, claimId: holding.claimId, waits: [wait] })).toMatchObject({ result: 'asked' })
    const events = [started(6), finished(6)]
    expect(await append(claim, events)).toBe('ok')
    expect(await ask('park', { ...holding, n: events.length, digest: '' })).toEqual({ result: 'gap' })
    expect(await finish(claim, events.length)).toEqual({ result: 'committed' })
    expect((await turnOf(claim)).error?.code).toBe('index_out_of_order')
  })
})

type Held = Claim & { holding: { turnId: string; epoch: number; claimId: string } }
type Output = { type: string; index: number }

function started(index: number): Output {
  const content = { type: 'text', text: 'words', format: 'plain' }
  return { type: 'message.started', index, ...{ author: 'agent', content } }
}

function delta(index: number): Output {
  return { type: 'message.delta', index, ...{ delta: { type: 'text', text: ' and more' }, offset: 5 } }
}

function finished(index: number): Output {
  return { type: 'message.finished', index, ...{ status: 'complete' } }
}

async function claimTurn(): Promise<Held> {
  const { turn } = await platform.client.createTask({ agent: 'played', input: 'go' })
  const claimId = randomUUID()
  return until('the turn is claimed', async () => {
    const claim = await ask<ClaimResult>('claim', { worker: 'foreign', turnId: turn.id, claimId })
    return claim.result === 'claimed' && { ...claim, holding: { turnId: turn.id, epoch: claim.epoch, claimId } }
  })
}

function linesOf({ task, turn, attempt }: Held, events: readonly Output[]): string[] {
  return events.map(({ type, ...fields }) => JSON.stringify({ type, task: task.id, turn: turn.number, attempt, at: 1, ...fields }))
}

async function appendToRedis(claim: Held, events: readonly Output[]): Promise<unknown> {
  const writer = createLogWriter({ redis: platform.redis, keys: platform.keys })
  const entries = linesOf(claim, events).map((json, i) => ({ index: events[i]?.index ?? null, json }))
  return (await writer.append([{ task: claim.task.id, epoch: claim.epoch, first: 1, entries }]))[0]
}

async function appendOverHttp(claim: Held, events: readonly Output[]): Promise<unknown> {
  const append = { ...claim.holding, first: 1, entries: linesOf(claim, events).join('\n') }
  return (await ask<{ results: string[] }>('append', { appends: [append] })).results[0]
}

function finish({ holding }: Held, n: number): Promise<unknown> {
  return ask('finish', { ...holding, outcome: { status: 'completed' }, n, digest: '' })
}

async function turnOf({ task }: Held): Promise<Turn> {
  return (await platform.client.get<{ turn: Turn }>(`/v1/tasks/${task.id}/turns/1`)).body.turn
}

async function textsOf({ task }: Held): Promise<unknown[]> {
  const { body } = await platform.client.get<{ data: Message[] }>(`/v1/tasks/${task.id}/messages`)
  return body.data.map(({ content }) => content.type === 'text' && content.text)
}

async function ask<T = unknown>(call: string, body: object): Promise<T> {
  return (await platform.client.post<T>(`/internal/${call}`, body)).body
}
