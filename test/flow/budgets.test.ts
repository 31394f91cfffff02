/**
 * Byte budgets: what one request or one snapshot may carry, however large the values are that a caller has stored. No worker is needed: the agent
 * is registered, and no worker runs it.
 */
import { randomBytes } from 'node:crypto'
import { defaultLimits, type Message, type Snapshot, type Task, type Turn } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply, Page } from '../support/platform/platform-client.ts'
import { collectingOptions, heldMemory } from '../support/process/collect-garbage.ts'
import { until } from '../support/until.ts'
import { type Viewer, watch } from '../support/viewers/viewer.ts'

const MiB = 1024 * 1024
const { pageBytes, snapshotBytes } = defaultLimits
/** For ids, times and punctuation of everything that is not counted one by one. */
const slack = 64 * 1024
/** Base64 of random bytes: Postgres cannot store it in less. */
const large = randomBytes(1.4 * MiB).toString('base64')

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, env: collectingOptions })
  await platform.client.post('/internal/hello', { worker: 'w', agents: [{ name: 'idle', description: '' }] })
})
afterAll(() => platform.close())

describe('a task with twelve turns of 1.9 MB each', () => {
  let task: string
  const count = 12

  beforeAll(async () => {
    const first = await platform.client.createTask({ agent: 'idle', input: `1 ${large}`, metadata: { small: 1 } })
    task = first.task.id
    for (let number = 2; number <= count; number += 1)
      await platform.client.addTurn(task, { input: `${number} ${large}`, params: { number } })
  })

  test('is shown within the budget: values of older turns are left out, named, and found one by one', async () => {
    const { bytes, body } = await read<{ task: Task; turns: Turn[] }>(`/v1/tasks/${task}`)
    expect(bytes).toBeLessThan(pageBytes + slack)
    expect(body.turns.map(({ number }) => number)).toEqual(Array.from({ length: count }, (_, i) => i + 1))
    const whole = body.turns.filter(turn => turn.omitted === undefined)
    expect(whole.map(({ number }) => number)).toEqual([count - 1, count])
    expect(body.turns[0]).toMatchObject({ number: 1, status: 'queued', omitted: ['input'] })
    expect(body.turns[1]).toMatchObject({ number: 2, status: 'queued', omitted: ['input', 'params'] })
    expect(body.turns[1]).not.toHaveProperty('input')
    for (const turn of body.turns) {
      const { turn: found } = (await read<{ turn: Turn }>(`/v1/tasks/${task}/turns/${turn.number}`)).body
      const { omitted: _, ...shown } = turn
      expect(found).toMatchObject(shown)
      expect(found).not.toHaveProperty('omitted')
      expect(found.input?.type === 'text' && found.input.text === `${turn.number} ${large}`).toBe(true)
      expect(found.params).toEqual(turn.number === 1 ? undefined : { number: turn.number })
    }
  })

  test('has a snapshot within the budget', async () => {
    const { snapshot } = await join(task)
    expect(byteLength(snapshot)).toBeLessThan(snapshotBytes + slack)
    expect(snapshot.turns.map(({ number }) => number)).toEqual(Array.from({ length: count }, (_, i) => i + 1))
    expect(snapshot.turns.map(({ omitted }) => omitted)).toEqual([['input'], ...Array(count - 1).fill(['input', 'params'])])
    expect(snapshot.task.metadata).toEqual({ small: 1 })
  })

  test('makes the API hold no more than that while it is watched', async () => {
    const api = await platform.startApi()
    const before = await heldMemory(api)
    const { snapshot } = await join(task, api.url)
    expect(snapshot.turns).toHaveLength(count)
    expect((await heldMemory(api)) - before).toBeLessThan(8 * MiB)
  })
})

describe('params and metadata of 1.9 MB', () => {
  test('end a page of tasks earlier: every task is on one page, whole', async () => {
    const tasks: string[] = []
    for (let number = 1; number <= 7; number += 1) {
      const values = number % 2 ? { params: { large, number } } : { metadata: { large, number } }
      tasks.push((await platform.client.createTask({ agent: 'idle', name: `large ${number}`, ...values })).task.id)
    }
    const seen: Task[] = []
    const sizes: number[] = []
    for (let cursor: string | null = null; seen.length < tasks.length; ) {
      const { bytes, body }: { bytes: number; body: Page<Task> } = await read(`/v1/tasks?agent=idle${cursor ? `&cursor=${cursor}` : ''}`)
      seen.push(...body.data)
      sizes.push(body.data.length)
      cursor = body.nextCursor
      expect(bytes).toBeLessThan(pageBytes + slack)
    }
    expect(sizes.slice(0, 3)).toEqual([2, 2, 2])
    expect(seen.slice(0, 7).map(({ id }) => id)).toEqual(tasks.toReversed())
    for (const { params, metadata } of seen.slice(0, 7)) expect(params ?? metadata).toMatchObject({ large })
  })

  test('are left out of a snapshot, and named; the task itself has them', async () => {
    const { task } = await platform.client.createTask({ agent: 'idle', params: { large }, metadata: { small: 1 }, input: 'hello' })
    const { snapshot } = await join(task.id)
    expect(snapshot.task).toMatchObject({ id: task.id, params: null, metadata: { small: 1 }, omitted: ['params'] })
    expect(snapshot.turns[0]).toMatchObject({ input: { text: 'hello' } })
    const { body } = await read<{ task: Task }>(`/v1/tasks/${task.id}`)
    expect(body.task).toMatchObject({ params: { large }, metadata: { small: 1 } })
    expect(body.task).not.toHaveProperty('omitted')
  })
})

describe('messages of 1.9 MB', () => {
  test.each([
    [
      'a caller',
      (task: string, after?: number) =>
        read<Page<Message, number>>(`/v1/tasks/${task}/messages${after === undefined ? '' : `?after=${after}`}`),
    ],
    [
      'a worker',
      async (task: string, after?: number) =>
        post<Page<Message, number>>('/internal/messages', {
          turnId: await heldTurn(task),
          claimId: 'c',
          ...(after !== undefined && { after }),
        }),
    ],
  ])('come to %s on pages within the budget, in order, each once', async (_, page) => {
    const task = await conversation([large, 'small', large, large, 'x'.repeat(9 * MiB), 'small', large])
    const pages: number[][] = []
    for (let after: number | null | undefined; after !== null; ) {
      const { bytes, body }: { bytes: number; body: Page<Message, number> } = await page(task, after)
      if (body.data.length > 1) expect(bytes).toBeLessThan(pageBytes + slack)
      pages.push(body.data.map(({ index }) => index))
      after = body.nextCursor
    }
    expect(pages).toEqual([[0, 1, 2], [3], [4], [5, 6]])
  })
})

describe('a turn by its number', () => {
  test.each(['0', '-1', '1.5', 'one', '01', '1e1', '%20', '1000000000'])('that is not a turn number (%s) is refused', async number => {
    const { task } = await platform.client.createTask({ agent: 'idle' })
    const { status, body } = await platform.client.get<ErrorReply>(`/v1/tasks/${task.id}/turns/${number}`)
    expect([status, body.error.code, body.error.details?.[0]?.path]).toEqual([400, 'validation_failed', '/number'])
  })

  test('that the task does not have is not found', async () => {
    const { task } = await platform.client.createTask({ agent: 'idle' })
    const { status, body } = await platform.client.get<ErrorReply>(`/v1/tasks/${task.id}/turns/2`)
    expect([status, body.error.code]).toEqual([404, 'not_found'])
  })
})

/** The id of the task's next turn, which worker `w` has claimed: a worker reads the messages of a turn that it holds. */
async function heldTurn(task: string): Promise<string> {
  const { turns } = (await read<{ turns: Turn[] }>(`/v1/tasks/${task}`)).body
  const open = turns.find(({ status }) => status === 'running' || status === 'queued')
  if (open?.status === 'running') return open.id
  // Where a page took longer than the lease, the turn waits again.
  const turn = open ?? (await platform.client.addTurn(task, {}))
  const claim = { worker: 'w', turnId: turn.id, claimId: 'c' }
  // It can be claimed once it has its share of the workers.
  await until('it is claimed', async () => (await post<{ result: string }>('/internal/claim', claim)).body.result === 'claimed')
  return turn.id
}

/** A task of one turn that has ended, with these texts as its messages. */
async function conversation(texts: string[]): Promise<string> {
  const { task } = await platform.client.createTask({ agent: 'idle' })
  await platform.client.cancel(task.id)
  for (const [index, text] of texts.entries())
    await platform.pg.query(
      `insert into messages (task, index, turn, attempt, author, content, metadata, status, created_at)
       values ($1, $2, 1, 1, 'agent', $3, '{}', 'complete', now())`,
      [task.id, index, JSON.stringify({ type: 'text', text, format: 'plain' })],
    )
  return task.id
}

async function read<T>(path: string): Promise<{ bytes: number; body: T }> {
  const response = await fetch(new URL(path, platform.url))
  const text = await response.text()
  expect([path, response.status]).toEqual([path, 200])
  return { bytes: Buffer.byteLength(text), body: JSON.parse(text) as T }
}

async function post<T>(path: string, body: object): Promise<{ bytes: number; body: T }> {
  const reply = await platform.client.post<T>(path, body)
  expect(reply.status).toBe(200)
  return { bytes: byteLength(reply.body), body: reply.body }
}

async function join(task: string, url = platform.url): Promise<{ snapshot: Snapshot; viewer: Viewer }> {
  const viewer = watch(task, { urls: [url], query: '?follow=true' })
  onTestFinished(() => void viewer.stop())
  const snapshot = await until('it has its snapshot', () => viewer.frames().find(({ data }) => data.type === 'snapshot')?.data as Snapshot)
  return { snapshot, viewer }
}

function byteLength(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
