/** `?wait=`: a response that comes with the end of a turn, and says where to go on when the end does not come in time. */
import { createClient as createRivulet, RivuletError } from '@rivulet/client'
import type { Message, Task, Turn } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rest, say, scripted } from '../support/agents/scripts.ts'
import { openTestKeyring, pepper } from '../support/platform/keyring.ts'
import { metric } from '../support/platform/metrics.ts'
import { type Platform, startPlatform, withPlatform } from '../support/platform/platform.ts'
import { createClient, type ErrorReply, type Reply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

type Finished = { task: Task; turn: Turn; messages: Message[]; nextCursor: number | null }
type UnderWay = { task: Task; turn: Turn; cursor: string }

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, env: { MAX_STREAMS: '3' } })
  // A registered agent that no worker runs.
  await platform.client.post('/internal/hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] })
})
afterAll(() => platform.close())

const wordsIn = ({ messages }: Finished) => messages.map(({ author, content }) => [author, 'text' in content ? content.text : null])
const waits = (url = platform.url) => metric(url, 'rivulet_turn_waits')
const gone = { task: { status: 'completed' }, turn: { number: 1, status: 'completed', stopReason: 'stop' }, nextCursor: null }

describe('a request that waits', () => {
  test('gets task, turn and messages when the turn has ended', async () => {
    const { status, headers, body } = await platform.client.post<Finished>('/v1/tasks?wait=30s', { agent: 'echo', input: 'hello' })
    expect([status, headers.get('location')]).toEqual([201, null])
    expect(body).toMatchObject(gone)
    expect(wordsIn(body)).toEqual([
      ['user', 'hello'],
      ['agent', 'hello'],
    ])
    const more = await platform.client.post<Finished>(`/v1/tasks/${body.task.id}/turns?wait=30s`, { input: 'more' })
    expect([more.status, more.body.turn.number]).toEqual([200, 2])
    expect(more.body.messages.map(({ index }) => index)).toEqual([2, 3])
  })

  test('hears of an end that another API has announced', async () => {
    const { task } = await platform.client.createTask({ agent: 'idle', input: 'hello' })
    const [, second] = platform.apis
    const waiting = createClient(() => second?.url ?? '').get<Finished>(`/v1/tasks/${task.id}/turns/1?wait=60s`)
    await until('it waits', async () => (await waits(second?.url)) === 1)
    await platform.client.cancel(task.id, 'enough')
    expect(await waiting).toMatchObject({ status: 200, body: { task: { status: 'canceled' }, turn: { error: { code: 'canceled' } } } })
    await until('it does not wait', async () => (await waits(second?.url)) === 0)
  })

  test('gets 202 when its time is over, and goes on where that says', async () => {
    const steps = [say(0, 'one'), rest(1_500), say(0, ' two')]
    const first = await platform.client.post<UnderWay>('/v1/tasks?wait=300ms', scripted(steps))
    expect([first.status, first.headers.get('location')]).toEqual([202, `/v1/tasks/${first.body.task.id}/turns/1?wait=300ms`])
    expect(first.body.turn.status).toMatch(/queued|running/)
    const events = await fetch(`${platform.url}/v1/tasks/${first.body.task.id}/events?after=${first.body.cursor}`)
    expect(await events.text()).toContain('"text":" two"')
    const { status, body } = await platform.client.get<Finished>(String(first.headers.get('location')).replace('300ms', '30s'))
    expect([status, wordsIn(body)]).toEqual([200, [['agent', 'one two']]])
  })

  test('gets the end of a turn that ended long ago', async () => {
    const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'one' })
    await platform.client.addTurn(task.id, { input: 'two' })
    await platform.client.waitForEnd(task.id)
    await platform.redis.del(platform.keys.stream(task.id))
    const { status, body } = await platform.client.get<Finished>(`/v1/tasks/${task.id}/turns/1?wait=1ms`)
    expect([status, wordsIn(body)]).toEqual([
      200,
      [
        ['user', 'one'],
        ['agent', 'one'],
      ],
    ])
  })

  test('gets a failed turn as a result, with its error', async () => {
    const { status, body } = await platform.client.post<Finished>('/v1/tasks?wait=30s', {
      ...scripted([say(0, 'so far'), { throw: 'broken' }]),
      maxAttempts: 1,
    })
    expect([status, body.turn.status, body.turn.error?.code]).toEqual([201, 'failed', 'agent_error'])
    expect(wordsIn(body)).toEqual([['agent', 'so far']])
  })

  test('and is repeated under its Idempotency-Key waits for the same turn', async () => {
    const ask = () => platform.client.post<Finished>('/v1/tasks?wait=30s', { agent: 'echo', input: 'once' }, { 'idempotency-key': 'waits' })
    const [first, second] = [await ask(), await ask()]
    expect([first.status, second.status, second.headers.get('idempotent-replayed')]).toEqual([201, 201, 'true'])
    expect(second.body).toEqual(first.body)
  })

  test('and whose client disconnects is no longer counted', async () => {
    const leaving = new AbortController()
    const { task } = await platform.client.createTask({ agent: 'idle' })
    const waiting = fetch(`${platform.url}/v1/tasks/${task.id}/turns/1?wait=60s`, { signal: leaving.signal }).catch(() => 'gone')
    await until('it waits', async () => (await waits()) === 1)
    leaving.abort()
    expect(await waiting).toBe('gone')
    await until('it does not wait', async () => (await waits()) === 0)
  })

  test('has the limits of a stream, and nothing is created above them', async () => {
    const { task } = await platform.client.createTask({ agent: 'idle', name: 'crowded' })
    const leaving = new AbortController()
    const path = `${platform.url}/v1/tasks/${task.id}/turns/1?wait=60s`
    const waiting = Array.from({ length: 3 }, () => fetch(path, { signal: leaving.signal }).catch(() => {}))
    await until('they wait', async () => (await waits()) === 3)
    const refused: Reply<ErrorReply>[] = [
      await platform.client.post('/v1/tasks?wait=1s', { agent: 'idle', name: 'never' }),
      await platform.client.post(`/v1/tasks/${task.id}/turns?wait=1s`, {}),
    ]
    leaving.abort()
    await Promise.all(waiting)
    expect(refused.map(({ status, body }) => [status, body.error.code])).toEqual(Array(2).fill([503, 'overloaded']))
    expect((await platform.client.detail(task.id)).turns).toHaveLength(1)
    expect((await platform.client.get<{ data: Task[] }>('/v1/tasks?name=never')).body.data).toEqual([])
  })

  test('gets 404 when the task is deleted meanwhile', async () => {
    const { task } = await platform.client.createTask({ agent: 'idle', input: 'hello' })
    const waiting = platform.client.get<Finished>(`/v1/tasks/${task.id}/turns/1?wait=60s`)
    await until('it waits', async () => (await waits()) === 1)
    // As if its rows had been removed by hand: a caller cannot delete a task that has not ended.
    await platform.pg.query('delete from tasks where id = $1', [task.id])
    await platform.redis.publish(platform.keys.channel(task.id), 'removed')
    expect(await waiting).toMatchObject({ status: 404, body: { error: { code: 'task_not_found' } } })
  })

  test.each(['', '0s', '61s', '30', '1m', '-1s', '1.5s', 'true'])('for %s is refused', async time => {
    const refused = await platform.client.post<ErrorReply>(`/v1/tasks?wait=${time}`, { agent: 'echo' })
    expect([refused.status, refused.body.error.code, refused.body.error.details?.[0]?.path]).toEqual([400, 'validation_failed', '/wait'])
  })

  test('cannot stream as well', async () => {
    const accepting = { accept: 'text/event-stream' }
    for (const refused of [
      await platform.client.post<ErrorReply>('/v1/tasks?wait=1s', { agent: 'echo' }, accepting),
      await platform.client.post<ErrorReply>('/v1/tasks?wait=1s&format=ai-sdk', { agent: 'echo' }),
    ])
      expect([refused.status, refused.body.error.code]).toEqual([400, 'bad_request'])
  })
})

describe('the client', () => {
  test('runs an agent to its result, over as many waits as it takes', async () => {
    // A try of 500 ms waits for 400 ms. On a busy machine, a response may take longer than the rest.
    const client = createRivulet({ url: platform.url, timeoutMs: 500, maxRetries: 50 })
    const steps = [say(0, 'one'), rest(1_500), say(0, ' two')]
    const { text, status, turn, messages } = await client.run({ agent: 'scripted', input: 'go', params: { steps } as never })
    expect([text, status, turn.number, messages.length]).toEqual(['one two', 'completed', 1, 2])
    const more = await client.run({ agent: 'echo', name: 'again', input: 'a' })
    expect(await client.run({ agent: 'echo', name: 'again', input: 'b' })).toMatchObject({
      text: 'b',
      task: { id: more.task.id },
      turn: { number: 2 },
    })
  })

  test('reads all messages of a turn that has more than a page', async () => {
    const steps = Array.from({ length: 130 }, (_, index) => ({
      full: { index, content: { type: 'text', text: `${index}`, format: 'plain' } },
    }))
    const { messages } = await createRivulet({ url: platform.url }).run({ agent: 'scripted', params: { steps } as never })
    expect(messages.map(({ index }) => index)).toEqual(Array.from({ length: 130 }, (_, index) => index))
  })

  test('rejects for a turn that failed, with the result so far', async () => {
    const client = createRivulet({ url: platform.url })
    const steps = [say(0, 'so far'), { throw: 'broken' }]
    const failed = await client.run({ agent: 'scripted', params: { steps } as never, maxAttempts: 1 }).catch(error => error)
    expect(failed).toBeInstanceOf(RivuletError)
    expect(failed).toMatchObject({ code: 'agent_error', retryable: true, cause: { text: 'so far', status: 'failed' } })
  })

  test('creates a task that starts later, and reads one message', async () => {
    const client = createRivulet({ url: platform.url })
    const task = await client.tasks.create({ agent: 'echo', start: false })
    expect([task.task.status, task.turn]).toEqual(['queued', undefined])
    const result = task.result()
    await task.send('now')
    expect((await result).text).toBe('now')
    expect(await task.getMessage(1)).toMatchObject({ author: 'agent', content: { text: 'now' } })
    expect(() => task.events({ after: 'nonsense' })).toThrow(expect.objectContaining({ code: 'bad_cursor' }))
  })
})

test('an API that stops sends its waiting requests on with 202', async () => {
  const api = await platform.startApi()
  const { task } = await platform.client.createTask({ agent: 'idle' })
  const waiting = createClient(() => api.url).get<UnderWay>(`/v1/tasks/${task.id}/turns/1?wait=60s`)
  await until('it waits', async () => (await waits(api.url)) === 1)
  const stopped = api.kill('SIGTERM')
  const { status, headers, body } = await waiting
  expect([status, headers.get('location'), body.turn.status]).toEqual([202, `/v1/tasks/${task.id}/turns/1?wait=60000ms`, 'queued'])
  expect(await stopped).toMatchObject({ code: 0 })
})

test('a caller that may not read may not wait, and a token may with the right to read', async () => {
  await withPlatform(
    { env: { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test', KEY_PEPPER: pepper } },
    async keyed => {
      const keyring = openTestKeyring(keyed.databaseUrl)
      const writer = await keyring.create({ tenant: 'acme', scopes: ['tasks:write'] })
      const full = await keyring.create({ tenant: 'acme', scopes: ['tasks:read', 'tasks:write'] })
      const as = (key: string) => ({ authorization: `Bearer ${key}` })
      const refused = await keyed.client.post<ErrorReply>('/v1/tasks?wait=1s', { agent: 'echo' }, as(writer.key))
      expect([refused.status, refused.body.error.code]).toEqual([403, 'forbidden'])
      const { body } = await keyed.client.post<Finished>('/v1/tasks?wait=30s', { agent: 'echo', input: 'a' }, as(full.key))
      const tokenFor = async (can: string[]) =>
        (await keyed.client.post<{ token: string }>(`/v1/tasks/${body.task.id}/tokens`, { can }, as(full.key))).body.token
      const turns = `/v1/tasks/${body.task.id}/turns?wait=30s`
      expect((await keyed.client.post(turns, { input: 'b' }, as(await tokenFor(['send'])))).status).toBe(403)
      expect((await keyed.client.post(turns, { input: 'b' }, as(await tokenFor(['send', 'read'])))).status).toBe(200)
      await keyring.close()
    },
  )
})
