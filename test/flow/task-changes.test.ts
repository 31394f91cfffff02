/** What a caller does with a task besides running it: rename it, label it, find it by its age, run its last turn again, and export it. */
import { createClient, type ExportLine, type Json, type State, type Task, type Turn } from '@rivulet/client'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { fail, patch as merge, rest, say, set } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply, Reply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
  await platform.client.post('/internal/hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] })
})
afterAll(() => platform.close())

const json = { 'content-type': 'application/json' }

function patch<T = { task: Task }>(id: string, body: unknown): Promise<Reply<T>> {
  return platform.client.send('PATCH', `/v1/tasks/${id}`, { headers: json, body: JSON.stringify(body) })
}

describe('a change', () => {
  test('sets the name, merges the metadata, and leaves the rest as it is', async () => {
    const metadata = { kept: 1, gone: 'x', deep: { a: 1, b: 2 }, list: [1, 2] }
    const { task } = await platform.client.createTask({ agent: 'echo', input: 'hello', metadata, params: { p: 1 } })
    await platform.client.waitForEnd(task.id)
    const { status, body } = await patch(task.id, {
      name: 'renamed',
      metadata: { gone: null, deep: { b: null, c: { d: null } }, list: [3] },
    })
    expect(status).toBe(200)
    expect(body.task).toMatchObject({ name: 'renamed', status: 'completed', params: { p: 1 } })
    expect(body.task.metadata).toEqual({ kept: 1, deep: { a: 1, c: {} }, list: [3] })
    expect((await platform.client.detail(task.id)).task).toEqual(body.task)
    // A viewer that joins sees it; the log stays as it is.
    const response = await fetch(`${platform.url}/v1/tasks/${task.id}/events`)
    expect(await response.text()).toContain('"name":"renamed"')
    expect(await faultsOf(platform, task.id)).toEqual([])
    expect((await patch(task.id, { name: null })).body.task.name).toBeUndefined()
  })

  test('while a turn runs does not disturb it', async () => {
    const steps = [
      { delta: { index: 0, delta: { type: 'text', text: 'one' } } },
      { sleep: 800 },
      { delta: { index: 0, delta: { type: 'text', text: ' two' } } },
    ]
    const { task } = await platform.client.createTask({ agent: 'scripted', params: { steps } })
    await platform.client.waitForTask(task.id, ({ task: { status } }) => status === 'running')
    expect((await patch(task.id, { metadata: { seen: true } })).status).toBe(200)
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns).toMatchObject([{ status: 'completed', attempt: 1 }])
    expect(await platform.client.messages(task.id)).toMatchObject([{ content: { text: 'one two' } }])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('to a name that another task of the agent has is refused, and changes nothing', async () => {
    await platform.client.createTask({ agent: 'idle', name: 'taken' })
    const { task } = await platform.client.createTask({ agent: 'idle', metadata: { a: 1 } })
    const refused = await patch<ErrorReply>(task.id, { name: 'taken', metadata: { a: 2 } })
    expect([refused.status, refused.body.error.code]).toEqual([409, 'name_taken'])
    expect((await platform.client.detail(task.id)).task).toEqual(task)
  })

  test('by change cannot grow the metadata without a limit', async () => {
    const { task } = await platform.client.createTask({ agent: 'idle' })
    const part = 'x'.repeat(1_500_000)
    expect((await patch(task.id, { metadata: { a: part } })).status).toBe(200)
    const refused = await patch<ErrorReply>(task.id, { metadata: { b: part } })
    expect([refused.status, refused.body.error.code, refused.body.error.message]).toEqual([
      413,
      'body_too_large',
      expect.stringContaining('MAX_BODY_BYTES'),
    ])
  })

  test.each([{ name: '' }, { name: 5 }, { metadata: null }, { metadata: [] }, { params: {} }, []])('of %j is refused', async body => {
    const { task } = await platform.client.createTask({ agent: 'idle' })
    expect((await patch<ErrorReply>(task.id, body)).body.error.code).toBe('validation_failed')
  })
})

describe('a retry', () => {
  test('runs the last turn again, with its input and params, as a new turn', async () => {
    const params = { steps: [{ throw: 'broken' }] }
    const { task } = await platform.client.finishedTask({ agent: 'scripted', input: 'go', params, maxAttempts: 1 })
    const { status, body } = await platform.client.post<{ turn: Turn }>(`/v1/tasks/${task.id}/retry`, {})
    expect([status, body.turn.number, body.turn.input]).toEqual([202, 2, expect.objectContaining({ text: 'go' })])
    await platform.client.waitForEnd(task.id)
    expect(await platform.client.messages(task.id)).toMatchObject([
      { turn: 1, author: 'user' },
      { turn: 2, author: 'user', content: { text: 'go' } },
    ])
    expect(await faultsOf(platform, task.id)).toEqual([])
    const again = await platform.client.post<{ turn: Turn }>(`/v1/tasks/${task.id}/retry`, {})
    expect([again.status, again.body.turn?.number]).toEqual([202, 3])
  })

  test('of a task that has not ended, or not started, is refused', async () => {
    const { task } = await platform.client.createTask({ agent: 'idle' })
    const busy = await platform.client.post<ErrorReply>(`/v1/tasks/${task.id}/retry`, {})
    expect([busy.status, busy.body.error.code]).toEqual([409, 'task_busy'])
    const { body } = await platform.client.post<{ task: Task }>('/v1/tasks', { agent: 'idle', start: false })
    const empty = await platform.client.post<ErrorReply>(`/v1/tasks/${body.task.id}/retry`, {})
    expect([empty.status, empty.body.error.code]).toEqual([404, 'not_found'])
  })

  test('that is repeated under its key adds one turn', async () => {
    const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'hello' })
    const retry = () => platform.client.post<{ turn: Turn }>(`/v1/tasks/${task.id}/retry`, {}, { 'idempotency-key': 'again' })
    expect([(await retry()).body.turn.number, (await retry()).body.turn.number]).toEqual([2, 2])
  })
})

test('an export has the task, its turns, its messages and its usage, whatever their number', async () => {
  const client = createClient({ url: platform.url })
  const steps = Array.from({ length: 250 }, (_, index) => ({
    full: { index, content: { type: 'text', text: `${index} é`, format: 'plain' } },
  }))
  const task = await client.tasks.create({ agent: 'scripted', input: 'x'.repeat(300_000), params: { steps } as never })
  await task.result()
  await task.retry()
  await task.result()
  const lines: ExportLine[] = []
  for await (const line of task.export()) lines.push(line)
  expect(lines.map(({ type }) => type)).toEqual(['task', 'turn', 'turn', ...Array(502).fill('message'), 'usage'])
  expect(lines.flatMap(line => (line.type === 'message' ? [line.message] : []))).toEqual(await platform.client.messages(task.id))
  expect(lines.flatMap(line => (line.type === 'turn' ? [line.turn.input] : []))).toEqual(
    Array(2).fill({ type: 'text', text: 'x'.repeat(300_000), format: 'plain' }),
  )
})

test('tasks are found by when they were created', async () => {
  const times: string[] = []
  for (const mark of ['a', 'b', 'c']) {
    const { task } = await platform.client.createTask({ agent: 'idle', metadata: { age: mark } })
    times.push(task.createdAt)
    await expect.poll(() => Date.now()).toBeGreaterThan(Date.parse(task.createdAt) + 5)
  }
  const [first = '', second = '', third = ''] = times
  const marks = async (query: Record<string, string>) => {
    const { body } = await platform.client.get<{ data: Task[] }>(`/v1/tasks?${new URLSearchParams({ agent: 'idle', ...query })}`)
    return body.data.flatMap(({ metadata: { age } }) => age ?? [])
  }
  expect(await marks({ createdAfter: first })).toEqual(['c', 'b'])
  expect(await marks({ createdAfter: first, createdBefore: third })).toEqual(['b'])
  // The same moment in another time zone.
  const shifted = new Date(Date.parse(second) + 3_600_000).toISOString().replace('Z', '+01:00')
  expect(await marks({ createdAfter: shifted })).toEqual(['c'])
  for (const odd of ['yesterday', '2026-01-01', '5'])
    expect((await platform.client.get<ErrorReply>(`/v1/tasks?createdAfter=${odd}`)).body.error.code).toBe('validation_failed')
})

describe('the state of a task', () => {
  const stateOf = async (id: string) => {
    const { status, headers, body } = await platform.client.get<State>(`/v1/tasks/${id}/state`)
    return [status, headers.get('etag'), body]
  }
  const put = async (id: string, value: Json, ifMatch?: string) => {
    const headers = { ...json, ...(ifMatch !== undefined && { 'if-match': ifMatch }) }
    const reply = await platform.client.send<State & ErrorReply>('PUT', `/v1/tasks/${id}/state`, {
      headers,
      body: JSON.stringify({ value }),
    })
    return [reply.status, reply.body.error?.code ?? reply.body.version]
  }

  test('is what the attempt that ended the turn has made of it, for viewers and callers', async () => {
    const attempts = {
      1: [set({ tries: 1 }), merge({ lost: true }), fail('no luck')],
      2: [merge({ tries: 2 }), merge({ n: null, m: [1] })],
    }
    const { task } = await platform.client.createTask({ agent: 'scripted', params: { attempts } })
    expect(await stateOf(task.id)).toEqual([200, '"0"', { version: 0, value: null }])
    await platform.client.waitForEnd(task.id)
    const state = { version: 2, value: { tries: 2, m: [1] } }
    expect(await stateOf(task.id)).toEqual([200, '"2"', state])
    expect((await platform.client.detail(task.id)).state).toEqual(state)
    expect(await faultsOf(platform, task.id)).toEqual([])
    const view = createClient({ url: platform.url }).tasks.get(task.id).view({ follow: true })
    onTestFinished(view.subscribe(() => {}))
    await until('a late viewer has the state', async () => view.current.state.version === 2)
    // A turn that fails for good keeps what it has made, like its messages.
    await platform.client.addTurn(task.id, { params: { steps: [merge({ more: 1 }), say(5, 'out of order')] } })
    await platform.client.waitForEnd(task.id)
    await until('the viewer has it at once', async () => view.current.state.version === 3)
    expect(view.current.state.value).toEqual({ tries: 2, m: [1], more: 1 })
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('is replaced by a caller that knows its version, between two turns', async () => {
    const { task } = await platform.client.createTask({ agent: 'scripted', params: { steps: [set({ by: 'agent' })] } })
    await platform.client.waitForEnd(task.id)
    const view = createClient({ url: platform.url }).tasks.get(task.id).view({ follow: true })
    onTestFinished(view.subscribe(() => {}))
    await until('a viewer has joined', async () => view.current.state.version === 1)
    expect(await put(task.id, 1)).toEqual([428, 'precondition_required'])
    expect(await put(task.id, 1, '"7"')).toEqual([412, 'precondition_failed'])
    expect(await put(task.id, 1, 'W/"1"')).toEqual([412, 'precondition_failed'])
    expect(await put(task.id, 1, '1')).toEqual([400, 'bad_request'])
    expect(await put(task.id, 'x'.repeat(1024 * 1024), '"1"')).toEqual([413, 'state_too_large'])
    expect(await put(task.id, 'x'.repeat(2 * 1024 * 1024), '"1"')).toEqual([413, 'body_too_large'])
    const both = await Promise.all([put(task.id, { by: 'one' }, '"1"'), put(task.id, { by: 'other' }, '"1"')])
    expect(both.map(([status]) => status).sort()).toEqual([200, 412])
    await until('the viewer has the change', async () => view.current.state.version === 2)
    expect(await put(task.id, null, '*')).toEqual([200, 3])
    expect(await stateOf(task.id)).toEqual([200, '"3"', { version: 3, value: null }])
    await platform.client.addTurn(task.id, { params: { steps: [merge({ a: 1 }), rest(60_000)] } })
    await until('the next turn goes on from there', async () => view.current.state.version === 4)
    expect(view.current.state.value).toEqual({ a: 1 })
    expect(await put(task.id, 1, '*')).toEqual([409, 'task_busy'])
    await platform.client.cancel(task.id)
    expect(await stateOf(task.id)).toEqual([200, '"4"', { version: 4, value: { a: 1 } }])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('is restored by a rewind and copied by a fork, under versions that only grow', async () => {
    const rivulet = createClient({ url: platform.url })
    const task = await rivulet.tasks.create({ agent: 'scripted', params: { steps: [set({ turn: 1 })] } })
    await task.result()
    await task.send(undefined, { params: { steps: [merge({ turn: 2 })] } })
    await task.result()
    await task.state.put({ turn: 2.5 }, 2)
    const copy = await task.fork({ after: 1 })
    expect(await copy.state.get()).toEqual({ version: 1, value: { turn: 1 } })
    await task.send(undefined, { after: 1, params: { steps: [merge({ again: true })] } })
    await task.result()
    expect(await task.state.get()).toEqual({ version: 5, value: { turn: 1, again: true } })
    await expect(task.state.put(0, 3)).rejects.toMatchObject({ code: 'precondition_failed' })
    await task.send(undefined, { after: 0, params: { steps: [] } })
    await task.result()
    expect(await task.state.get()).toEqual({ version: 6, value: null })
    expect(await faultsOf(platform, task.id)).toEqual([])
  })
})

describe('many calls of one task at once', () => {
  test('leave connections to the calls of other tasks while its row is held', async () => {
    const [{ task: busy }, { task: other }] = [await idleTask(), await idleTask()]
    const holder = await platform.pg.connect()
    await holder.query('begin')
    await holder.query('select from tasks where id = $1 for update', [busy.id])
    const waiting = Promise.all(Array.from({ length: 40 }, () => [signal(busy.id), input(busy.id)]).flat())
    const sent = await Promise.all(Array.from({ length: 5 }, () => signal(other.id)))
    expect(sent.map(({ status }) => status)).toEqual(Array(5).fill(202))
    await holder.query('rollback')
    holder.release()
    for (const { status } of await waiting) expect([202, 503]).toContain(status)
  })

  function idleTask(): Promise<{ task: Task }> {
    return platform.client.createTask({ agent: 'idle', input: 'hello' })
  }

  function input(task: string): Promise<Reply<unknown>> {
    return platform.client.post(`/v1/tasks/${task}/turns`, { input: 'more' })
  }

  function signal(task: string): Promise<Reply<unknown>> {
    return platform.client.post(`/v1/tasks/${task}/signals`, { name: 'paid' })
  }
})
