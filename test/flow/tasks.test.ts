/** Tasks as a caller sees them: accepted once, continued, interrupted, canceled, removed. */
import { type Message, taskSchema, turnSchema } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rest, say, scripted } from '../support/agents/scripts.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { Accepted, ErrorReply, Reply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

const long = [say(0, 'so far'), rest(60_000), say(0, ', and never this')]

test('a task is accepted with its turn, runs, and its messages are stored', async () => {
  const { status, body } = await platform.client.post<Accepted>('/v1/tasks', {
    agent: 'echo',
    input: 'hello, world',
    metadata: { from: 'a test' },
    params: { any: ['thing'] },
  })
  expect(status).toBe(201)
  expect(taskSchema.parse(body.task)).toMatchObject({
    agent: 'echo',
    status: 'queued',
    metadata: { from: 'a test' },
    params: { any: ['thing'] },
  })
  expect(turnSchema.parse(body.turn)).toMatchObject({ task: body.task.id, number: 1, status: 'queued', attempt: 0 })

  const { task, turns } = await platform.client.waitForEnd(body.task.id)
  expect(task.status).toBe('completed')
  expect(turns).toMatchObject([{ number: 1, status: 'completed', attempt: 1, stopReason: 'stop', input: { text: 'hello, world' } }])
  expect(await platform.client.messages(task.id)).toMatchObject([
    { index: 0, turn: 1, author: 'user', status: 'complete', content: { type: 'text', text: 'hello, world', format: 'plain' } },
    { index: 1, turn: 1, author: 'agent', status: 'complete', content: { type: 'text', text: 'hello, world', format: 'plain' } },
  ])
  expect(await faultsOf(platform, task.id)).toEqual([])
})

test('Postgres stores the messages, and no delta of them', async () => {
  const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'one two three four' })
  const log = await platform.log(task.id)
  expect(log.filter(({ event }) => event.type === 'message.delta').length).toBeGreaterThan(0)
  const { rows: tables } = await platform.pg.query<{ name: string }>(
    'select quote_ident(tablename) as name from pg_tables where schemaname = current_schema()',
  )
  expect(tables.map(({ name }) => name)).toContain('messages')
  for (const { name } of tables) {
    const { rows } = await platform.pg.query(`select row from ${name} as row where row::text like '%message.delta%'`)
    expect(rows).toEqual([])
  }
  const { rows: stored } = await platform.pg.query('select from messages where task = $1', [task.id])
  expect(stored).toHaveLength(2)
})

test('new input to a task that has ended starts it again, and indexes go on', async () => {
  const { task } = await platform.client.finishedTask(scripted([say(0, 'first')], { input: 'one' }))
  const turn = await platform.client.addTurn(task.id, { input: 'two', params: { steps: long } })
  expect(turn).toMatchObject({ number: 2, status: 'queued' })
  expect((await platform.client.detail(task.id)).task.status).not.toBe('completed')
  await untilSaid(task.id, 'so far')
  await platform.client.cancel(task.id)
  expect((await platform.client.messages(task.id)).map(({ index, turn: turnNumber, author }) => [index, turnNumber, author])).toEqual([
    [0, 1, 'user'],
    [1, 1, 'agent'],
    [2, 2, 'user'],
    [3, 2, 'agent'],
  ])
  expect(await faultsOf(platform, task.id)).toEqual([])
})

test('a turn can do without input, and its own params count before those of its task', async () => {
  const { task, messages } = await platform.client.finishedTask(scripted([say(0, 'by the task')]))
  expect(messages).toMatchObject([{ index: 0, author: 'agent', content: { text: 'by the task' } }])
  await platform.client.addTurn(task.id, { params: { steps: [say(0, 'by the turn')] } })
  await platform.client.waitForEnd(task.id)
  expect(await platform.client.messages(task.id)).toMatchObject([{ index: 0 }, { index: 1, content: { text: 'by the turn' } }])
})

describe('Idempotency-Key', () => {
  test('fifty parallel requests under one key make one task, and all get the same answer', async () => {
    const body = { agent: 'echo', input: 'only once', metadata: { mark: 'parallel' } }
    const replies = await Promise.all(Array.from({ length: 50 }, () => untilAccepted(body, 'fifty')))
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]))
    expect(new Set(replies.map(({ body }) => JSON.stringify(body))).size).toBe(1)
    expect(replies.filter(({ headers }) => headers.get('idempotent-replayed') === 'true')).toHaveLength(49)
    const { rows } = await platform.pg.query('select count(*)::int from tasks where metadata @> \'{"mark":"parallel"}\'')
    expect(rows[0].count).toBe(1)
  })

  test('the same key with another body, or at another address, is refused', async () => {
    const headers = { 'idempotency-key': 'twice' }
    const first = await platform.client.post<Accepted>('/v1/tasks', { agent: 'echo', input: 'a' }, headers)
    const other = await platform.client.post<ErrorReply>('/v1/tasks', { agent: 'echo', input: 'b' }, headers)
    expect([other.status, other.body.error.code]).toEqual([422, 'idempotency_key_reused'])
    const elsewhere = await platform.client.post<ErrorReply>(`/v1/tasks/${first.body.task.id}/turns`, { input: 'a' }, headers)
    expect([elsewhere.status, elsewhere.body.error.code]).toEqual([422, 'idempotency_key_reused'])
  })

  test('a turn under a key is queued once', async () => {
    const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'one' })
    const headers = { 'idempotency-key': 'a-turn' }
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => platform.client.post(`/v1/tasks/${task.id}/turns`, { input: 'two' }, headers)),
    )
    expect(replies.map(({ status }) => status)).toEqual([202, 202, 202, 202, 202])
    expect((await platform.client.waitForEnd(task.id)).turns).toHaveLength(2)
  })

  test('a cancel whose key was used for something else cancels nothing', async () => {
    const headers = { 'idempotency-key': 'spent' }
    const { body } = await platform.client.post<Accepted>('/v1/tasks', scripted(long), headers)
    const refused = await platform.client.post<ErrorReply>(`/v1/tasks/${body.task.id}/cancel`, {}, headers)
    expect([refused.status, refused.body.error.code]).toEqual([422, 'idempotency_key_reused'])
    await platform.client.waitForTask(body.task.id, ({ task }) => task.status === 'running')
    await platform.client.cancel(body.task.id)
  })

  test('a cancel that is repeated under its key gets the same answer, also when the task has gone on', async () => {
    const headers = { 'idempotency-key': 'cancel-once' }
    const { task } = await platform.client.createTask(scripted(long))
    const first = await platform.client.post(`/v1/tasks/${task.id}/cancel`, {}, headers)
    await platform.client.addTurn(task.id, {})
    const again = await platform.client.post(`/v1/tasks/${task.id}/cancel`, {}, headers)
    expect(again.body).toEqual(first.body)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    await platform.client.waitForTask(task.id, ({ task: { status } }) => status === 'running')
    await platform.client.cancel(task.id)
  })

  test('while the first request is in flight, the second gets 409 and Retry-After', async () => {
    const first = await platform.pg.connect()
    try {
      await first.query('begin')
      await first.query("insert into idempotency_keys (key, fingerprint) values ('key:none in-flight', 'x')")
      const second = await platform.client.post<ErrorReply>('/v1/tasks', { agent: 'echo' }, { 'idempotency-key': 'in-flight' })
      expect([second.status, second.body.error.code]).toEqual([409, 'in_flight'])
      expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0)
    } finally {
      await first.query('rollback')
      first.release()
    }
  })

  test('a request that failed is not remembered', async () => {
    const headers = { 'idempotency-key': 'failed-first' }
    expect((await platform.client.post('/v1/tasks', { agent: 'never-registered' }, headers)).status).toBe(422)
    expect((await platform.client.post('/v1/tasks', { agent: 'echo', input: 'now' }, headers)).status).toBe(201)
  })
})

describe('get or create by name', () => {
  test('a name is one task of its agent; an input becomes its next turn', async () => {
    const first = await platform.client.post<Accepted>('/v1/tasks', { agent: 'echo', name: 'diary', input: 'monday' })
    expect(first.status).toBe(201)
    const second = await platform.client.post<Accepted>('/v1/tasks', { agent: 'echo', name: 'diary', input: 'tuesday' })
    expect([second.status, second.body.task.id, second.body.turn.number]).toEqual([200, first.body.task.id, 2])
    const looked = await platform.client.post<Accepted>('/v1/tasks', { agent: 'echo', name: 'diary' })
    expect([looked.status, looked.body.turn.id]).toEqual([200, second.body.turn.id])
    const other = await platform.client.post<Accepted>('/v1/tasks', { agent: 'scripted', name: 'diary', params: { steps: [] } })
    expect(other.status).toBe(201)
    const { turns } = await platform.client.waitForEnd(first.body.task.id)
    expect(turns.map(({ number, input }) => [number, input?.type === 'text' && input.text])).toEqual([
      [1, 'monday'],
      [2, 'tuesday'],
    ])
  })

  test('fifty at once make one task with fifty turns', async () => {
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) => untilAccepted({ agent: 'echo', name: 'crowd', input: `${i}` }, `crowd-${i}`)),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([...Array(49).fill(200), 201])
    expect(new Set(replies.map(({ body }) => body.task.id)).size).toBe(1)
    const numbers = replies.map(({ body }) => body.turn.number).sort((a, b) => a - b)
    expect(numbers).toEqual(Array.from({ length: 50 }, (_, i) => i + 1))
    const id = replies[0]?.body.task.id ?? ''
    expect((await platform.client.waitForEnd(id)).turns.every(({ status }) => status === 'completed')).toBe(true)
    expect(await faultsOf(platform, id)).toEqual([])
  })
})

describe('input to a task that is busy', () => {
  test('queue: it waits for its turn', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, 'a'), rest(300)], { input: 'one' }))
    await platform.client.addTurn(task.id, { input: 'two', ifBusy: 'queue' })
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns.map(({ status }) => status)).toEqual(['completed', 'completed'])
    expect(Date.parse(turns[1]?.startedAt ?? '')).toBeGreaterThanOrEqual(Date.parse(turns[0]?.finishedAt ?? ''))
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('reject: it is refused, and taken when the task is idle', async () => {
    const { task } = await platform.client.createTask(scripted(long))
    const refused = await platform.client.post<ErrorReply>(`/v1/tasks/${task.id}/turns`, { input: 'x', ifBusy: 'reject' })
    expect([refused.status, refused.body.error.code]).toEqual([409, 'task_busy'])
    await platform.client.cancel(task.id)
    const params = { steps: [say(0, 'now')] }
    expect((await platform.client.post(`/v1/tasks/${task.id}/turns`, { params, ifBusy: 'reject' })).status).toBe(202)
    expect((await platform.client.waitForEnd(task.id)).turns.at(-1)?.status).toBe('completed')
  })

  test('interrupt: what runs is canceled with what it has said, and what waited runs with the new input, and its params', async () => {
    const { task } = await platform.client.createTask(scripted(long, { input: 'one' }))
    await untilSaid(task.id, 'so far')
    await platform.client.addTurn(task.id, { input: 'waiting', params: { steps: [] } })
    await platform.client.addTurn(task.id, { input: 'three', params: { steps: [say(0, 'at once')] }, ifBusy: 'interrupt' })
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns.map(({ status }) => status)).toEqual(['canceled', 'completed', 'completed'])
    expect((await platform.client.messages(task.id)).map(briefly)).toEqual([
      ['user', 'complete', 'one'],
      ['agent', 'aborted', 'so far'],
      ['user', 'complete', 'waiting'],
      ['user', 'complete', 'three'],
      ['agent', 'complete', 'at once'],
    ])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })
})

describe('cancel', () => {
  test('a running turn ends canceled; what it has said stays, aborted', async () => {
    const { task } = await platform.client.createTask(scripted(long, { input: 'go' }))
    await untilSaid(task.id, 'so far')
    expect((await platform.client.cancel(task.id, 'enough')).status).toBe('canceled')
    const { turns } = await platform.client.detail(task.id)
    expect(turns).toMatchObject([{ status: 'canceled', stopReason: 'aborted', error: { code: 'canceled', message: 'enough' } }])
    const [, reply] = await platform.client.messages(task.id)
    expect(reply).toMatchObject({ status: 'aborted', stopReason: 'aborted', content: { text: 'so far' } })
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('a turn that never started adds no message', async () => {
    const { task } = await platform.client.createTask({ agent: 'echo', input: 'later', delayMs: 60_000 })
    expect((await platform.client.cancel(task.id)).status).toBe('canceled')
    expect(await platform.client.messages(task.id)).toEqual([])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('a task that has ended, or was canceled before, stays as it is', async () => {
    const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'done' })
    expect((await platform.client.cancel(task.id)).status).toBe('completed')
    expect((await platform.client.cancel(task.id)).status).toBe('completed')
    const unknown = await platform.client.post<ErrorReply>(`/v1/tasks/${crypto.randomUUID()}/cancel`, {})
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'task_not_found'])
  })

  test('it needs no body', async () => {
    const { task } = await platform.client.createTask({ agent: 'echo', input: 'later', delayMs: 60_000 })
    expect((await platform.client.send('POST', `/v1/tasks/${task.id}/cancel`)).status).toBe(200)
  })

  test('it needs no body, also from a client that sends a content type with every request', async () => {
    const { task } = await platform.client.createTask({ agent: 'echo', input: 'later', delayMs: 60_000 })
    const headers = { 'content-type': 'application/json' }
    const send = (method: string, path: string) => fetch(`${platform.urls[0]}/v1/tasks/${task.id}${path}`, { method, headers })
    expect((await send('POST', '/cancel')).status).toBe(200)
    expect((await send('DELETE', '')).status).toBe(204)
  })
})

describe('removing a task', () => {
  test('takes everything with it', async () => {
    const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'gone soon' })
    await faultsOf(platform, task.id)
    expect((await platform.client.remove(task.id)).status).toBe(204)
    for (const table of ['tasks', 'turns', 'messages']) {
      const column = table === 'tasks' ? 'id' : 'task'
      expect((await platform.pg.query(`select from ${table} where ${column} = $1`, [task.id])).rowCount).toBe(0)
    }
    expect(await platform.redis.exists(platform.keys.stream(task.id), platform.keys.state(task.id))).toBe(0)
    const again = await platform.client.remove(task.id)
    expect([again.status, (again.body as ErrorReply).error.code]).toEqual([404, 'task_not_found'])
  })

  test('is refused while a turn has not ended', async () => {
    const { task } = await platform.client.createTask(scripted(long))
    const busy = await platform.client.remove(task.id)
    expect([busy.status, (busy.body as ErrorReply).error.code]).toEqual([409, 'task_busy'])
    await platform.client.cancel(task.id)
    expect((await platform.client.remove(task.id)).status).toBe(204)
  })
})

test('what a running turn has said so far can be read', async () => {
  const { task } = await platform.client.createTask(scripted(long, { input: 'go' }))
  const messages = await untilSaid(task.id, 'so far')
  expect(messages.map(briefly)).toEqual([
    ['user', 'complete', 'go'],
    ['agent', 'streaming', 'so far'],
  ])
  await platform.client.cancel(task.id)
})

function briefly({ author, status, content }: Message): [string, string, string] {
  return [author, status, content.type === 'text' ? content.text : content.type]
}

/** As a client does it: again, after a response with Retry-After, because one task makes fifty requests wait for each other. */
function untilAccepted(body: object, key: string): Promise<Reply<Accepted>> {
  return until('the request is accepted', async () => {
    const reply = await platform.client.post<Accepted>('/v1/tasks', body, { 'idempotency-key': key })
    return !reply.headers.has('retry-after') && reply
  })
}

/** What the API shows once this is the end of it. */
async function untilSaid(task: string, text: string): Promise<Message[]> {
  return until(`task ${task} has said ${text}`, async () => {
    const messages = await platform.client.messages(task)
    const last = messages.at(-1)
    return last?.content.type === 'text' && last.content.text.endsWith(text) && messages
  })
}
