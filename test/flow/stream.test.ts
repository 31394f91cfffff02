/** What a viewer receives of a task: from which event to which, and in which frames. */
import { createClient } from '@rivulet/client'
import { type Cursor, compareCursors, type Event, epochOf } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { done, extend, fail, full, repeat, rest, say, scripted, start } from '../support/agents/scripts.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { type FormatReader, readFormat } from '../support/viewers/format-reader.ts'
import { isLogged, type Viewer, watch } from '../support/viewers/viewer.ts'
import { type Frame, openConnection } from '../support/viewers/viewer-connection.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 2 })
})
afterAll(() => platform.close())

const slowly = [repeat(15, say(0, 'word '), rest(20))]

describe('a viewer', () => {
  test('a viewer from the start gets every event, each in its frame, and then the end', async () => {
    const steps = [
      start(0, { type: 'text', text: 'So: ', format: 'markdown' }),
      repeat(5, say(0, 'w\u00f6rd \n'), rest(5)),
      done(0),
      extend(1, { type: 'tool_request', text: '{"a":' }),
      rest(20),
      extend(1, { type: 'tool_request', text: ' 1}' }),
      full(2, { type: 'data', data: { whole: true } }),
      extend(3, { type: 'media', bytes: 'AAEC' }),
      rest(20),
      extend(3, { type: 'media', bytes: 'Aw==' }),
    ]
    const { task } = await platform.client.createTask(scripted(steps, { input: 'go' }))
    const viewer = watch(task.id, { urls: platform.urls })
    expect(await faultsOfViewers(platform, [viewer])).toEqual([])
    const [connection] = viewer.journal.connections
    expect(viewer.journal.connections).toHaveLength(1)
    expect(connection?.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      connection: 'close',
    })
    expect(types(viewer).slice(-2)).toEqual(['turn.finished', 'end'])
    expect(viewer.state().status).toBe('completed')
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('a viewer that asks from the start gets all of it again, also when it is over', async () => {
    const { task } = await ended(slowly)
    const viewer = watch(task.id, { urls: platform.urls, query: '?from=start' })
    expect(await faultsOfViewers(platform, [viewer])).toEqual([])
    const log = await platform.log(task.id)
    expect(viewer.frames().filter(isLogged).map(seen)).toEqual(log.map(({ cursor, event }) => [cursor, event]))
    expect(types(viewer).slice(-3)).toEqual(['turn.finished', 'caught_up', 'end'])
  })

  test('a viewer that joins when it is over gets a snapshot and the end', async () => {
    const { task, messages } = await ended([say(0, 'all said')])
    const viewer = watch(task.id, { urls: platform.urls })
    expect(await faultsOfViewers(platform, [viewer])).toEqual([])
    expect(types(viewer)).toEqual(['snapshot', 'caught_up', 'end'])
    expect(viewer.frames()[0]?.data).toMatchObject({ reason: 'join', task: { status: 'completed' }, messages, messagesFrom: 0 })
    expect(viewer.frames().at(-1)?.data).toMatchObject({ type: 'end', status: 'completed' })
  })

  test('a viewer that resumes at any cursor gets exactly the events after it, by header or by query, at either API', async () => {
    const { task } = await ended([repeat(6, say(0, 'x'), rest(10))])
    const log = await platform.log(task.id)
    for (const [place, { cursor }] of log.entries()) {
      const after = log.slice(place + 1).map(entry => [entry.cursor, entry.event])
      for (const url of platform.urls) {
        const [byHeader, byQuery] = [
          watch(task.id, { urls: [url], after: cursor }),
          watch(task.id, { urls: [url], query: `?after=${cursor}` }),
        ]
        for (const viewer of [byHeader, byQuery]) {
          await viewer.ended
          expect(viewer.frames().filter(isLogged).map(seen)).toEqual(after)
          expect(viewer.journal.connections[0]?.status).toBe(place === log.length - 1 ? 204 : 200)
        }
      }
    }
  })

  test('is believed by its Last-Event-ID first, then by after, then by from', async () => {
    const { task } = await ended([repeat(3, say(0, 'x'), rest(10))])
    const log = await platform.log(task.id)
    const cursors = log.map(({ cursor }) => cursor)
    const heard = async (query: string, after?: `${number}-${number}`) => {
      const viewer = watch(task.id, { urls: platform.urls, query, ...(after && { after }) })
      await viewer.ended
      return viewer
        .frames()
        .filter(isLogged)
        .map(({ id }) => id)
    }
    expect(await heard(`?after=${cursors[3]}&from=start`, cursors[1])).toEqual(cursors.slice(2))
    expect(await heard(`?after=${cursors[3]}&from=start`)).toEqual(cursors.slice(4))
    expect(await heard('?from=start')).toEqual(cursors)
    expect(await heard('?after=0-0')).toEqual(cursors)
  })

  test('a viewer that follows stays after the end, and gets the next turn', async () => {
    const { task } = await ended([say(0, 'first')])
    const follower = watch(task.id, { urls: platform.urls, query: '?follow=true' })
    await follower.until('catches up', ({ frames }) => frames().some(({ data }) => data.type === 'caught_up'))
    const resumed = watch(task.id, {
      urls: platform.urls,
      query: '?follow=true',
      after: (await platform.log(task.id)).at(-1)?.cursor ?? '0-0',
    })
    await resumed.until('catches up', ({ frames }) => frames().some(({ data }) => data.type === 'caught_up'))
    await platform.client.addTurn(task.id, { input: 'more', params: { steps: [say(0, 'second')] } })
    for (const viewer of [follower, resumed]) {
      await viewer.until('hears the second end', ({ frames }) => finished(frames()).includes(2))
      expect(types(viewer)).not.toContain('end')
      await viewer.stop()
    }
    expect(await faultsOfViewers(platform, [follower])).toEqual([])
    expect(types(resumed)).toEqual([
      'caught_up',
      'turn.queued',
      'turn.started',
      'message.started',
      'message.delta',
      'message.finished',
      'turn.finished',
    ])
  })

  test('hears several turns, one after the other, and the end only after the last', async () => {
    const { task } = await platform.client.createTask(scripted(slowly, { input: 'one' }))
    const viewer = watch(task.id, { urls: platform.urls })
    for (const input of ['two', 'three']) await platform.client.addTurn(task.id, { input, params: { steps: slowly } })
    expect(await faultsOfViewers(platform, [viewer])).toEqual([])
    expect(finished(viewer.frames())).toEqual([1, 2, 3])
    expect(viewer.state().messages.length).toBe(6)
  })

  test('sees an input that is queued while the running turn is tried again, and nothing of the first try at the end', async () => {
    const attempts = { 1: [say(0, 'wrong'), say(1, 'way'), rest(2_000), fail('once')], 2: [repeat(5, say(0, 'right '), rest(10))] }
    const { task } = await platform.client.createTask({ agent: 'scripted', input: 'go', params: { attempts } })
    const viewers = platform.urls.map(url => watch(task.id, { urls: [url], query: '?from=start' }))
    await Promise.all(viewers.map(viewer => viewer.until('hears the first try', ({ frames }) => JSON.stringify(frames()).includes('way'))))
    await platform.client.addTurn(task.id, { input: 'next', params: { steps: [say(0, 'then')] } })
    await Promise.all(viewers.map(viewer => viewer.until('hears of the input', ({ state }) => state().turns.length === 2)))
    const late = watch(task.id, { urls: platform.urls })
    expect(await faultsOfViewers(platform, [...viewers, late])).toEqual([])
    for (const viewer of viewers) {
      const started = viewer.frames().flatMap(({ data }) => (data.type === 'turn.started' ? [[data.turn, data.attempt]] : []))
      expect(started.slice(-3)).toEqual([
        [1, 1],
        [1, 2],
        [2, 1],
      ])
      expect(texts(viewer)).toEqual(['go', 'right '.repeat(5), 'next', 'then'])
    }
  })

  test('hears what an agent notices by itself, among its words', async () => {
    const { task } = await ended([{ custom: { name: 'progress', data: { percent: 50 } } }, say(0, 'done')])
    const viewer = watch(task.id, { urls: platform.urls, query: '?from=start' })
    await viewer.ended
    expect(viewer.frames().find(({ data }) => data.type === 'custom')?.data).toMatchObject({ name: 'progress', data: { percent: 50 } })
    expect(viewer.text()).toBe('done')
  })
})

describe('the stream of one message', () => {
  const path = (task: string, index: number | string) => `/v1/tasks/${task}/messages/${index}/events`
  const open = (task: string, index: number, after?: string, url = platform.url) =>
    readFormat(`${url}${path(task, index)}`, { ...(after && { after }) })
  const heard = ({ frames }: FormatReader) => frames.map(({ id, data }) => [id, JSON.parse(data)])
  const logged = (reader: FormatReader) => heard(reader).filter(([, { type }]) => type !== 'caught_up' && type !== 'end')
  const endOf = (task: string, index: number, status?: string) => ({ type: 'end', task, index, ...(status && { status }) })

  test('has its events from the first one on, waits for a message that is still to come, and ends when the message is closed', async () => {
    const steps = [repeat(5, say(0, 'a '), rest(20)), done(0), repeat(5, say(1, 'b '), say(2, 'c '), rest(20)), done(1), rest(60_000)]
    const { task } = await platform.client.createTask(scripted(steps, { input: 'go' }))
    const readers = platform.urls.flatMap(url => [0, 1, 2].map(index => ({ index, reader: open(task.id, index, undefined, url) })))
    await Promise.all(readers.map(({ reader }) => reader.closed))
    const late = [0, 1, 2].map(index => ({ index, reader: open(task.id, index) }))
    const waiting = open(task.id, 4)
    await Promise.all(late.map(({ reader }) => reader.closed))
    const log = await platform.log(task.id)
    for (const { index, reader } of [...readers, ...late].filter(({ index }) => index > 0)) {
      const own = log.filter(({ event }) => 'index' in event && event.index === index).map(({ cursor, event }) => [cursor, event])
      expect(logged(reader).filter(([, { type }]) => type !== 'turn.started')).toEqual(own)
      expect(heard(reader).at(-1)).toEqual([own.at(-1)?.[0], endOf(task.id, index, 'complete')])
    }
    const input = { index: 0, status: 'complete' }
    const [atOnce, later] = [readers, late].map(those =>
      those.flatMap(({ index, reader }) => (index === 0 ? [logged(reader)[0]?.[1]] : [])),
    )
    for (const event of later ?? []) expect(event).toMatchObject({ type: 'turn.started', input })
    // The claim is committed before it is announced: a reader that comes in between gets the stored message.
    for (const { type, ...event } of atOnce ?? []) expect(event).toMatchObject(type === 'snapshot' ? { messages: [input] } : { input })
    await waiting.until(() => waiting.frames.length > 0)
    await platform.client.cancel(task.id, 'enough')
    await waiting.closed
    expect(heard(waiting).map(([, event]) => event)).toEqual([{ type: 'caught_up', task: task.id }, endOf(task.id, 4)])
  })

  test('resumes exactly at every cursor, by header or by query, and says 204 behind the end of the message', async () => {
    const { task } = await ended([repeat(4, say(0, 'x'), say(1, 'y'), rest(10)), done(0), say(1, 'z')])
    const log = await platform.log(task.id)
    for (const index of [1, 2]) {
      const own = log.filter(({ event }) => 'index' in event && event.index === index)
      for (const { cursor } of log) {
        const rest = own.filter(entry => isBehind(entry.cursor, cursor))
        const byHeader = open(task.id, index, cursor)
        const byQuery = readFormat(`${platform.urls[1]}${path(task.id, index)}?after=${cursor}`)
        for (const reader of [byHeader, byQuery]) {
          await reader.closed
          expect(reader.status()).toBe(rest.length > 0 ? 200 : 204)
          expect(logged(reader).filter(([, { type }]) => type !== 'turn.started')).toEqual(rest.map(({ cursor: at, event }) => [at, event]))
        }
      }
    }
    const lost = open(task.id, 1, '77-7')
    await lost.closed
    const message = (await platform.client.messages(task.id))[1]
    expect(heard(lost).map(([, event]) => event)).toMatchObject([
      { type: 'snapshot', reason: 'gap', messages: [message], messagesFrom: 1, turns: [{ number: 1 }] },
      endOf(task.id, 1, 'complete'),
    ])
  })

  test('begins anew with a new attempt, and ends with what is stored', async () => {
    const attempts = {
      1: [say(0, 'wrong'), rest(100), say(0, ' way'), rest(300), fail('once')],
      2: [repeat(3, say(0, 'right '), rest(10))],
    }
    const { task } = await platform.client.createTask({ agent: 'scripted', input: 'go', params: { attempts } })
    const reader = open(task.id, 1)
    await reader.closed
    const types = heard(reader).map(([, { type }]) => type)
    expect(types.at(-1)).toBe('end')
    // The failed attempt closes its message: a client that comes back once the next one runs follows that.
    await platform.client.waitForEnd(task.id)
    const next = open(task.id, 1, reader.frames.at(-1)?.id ?? undefined)
    await next.closed
    const words = logged(next).flatMap(([, event]) => (event.type === 'message.delta' ? [event.delta.text] : []))
    expect([logged(next)[0]?.[1].type, words.join('')]).toEqual(['turn.started', 'right '.repeat(3)])
  })

  test('that no turn can send any more is 404, and a malformed address is refused', async () => {
    const { task } = await ended([say(0, 'x')])
    const get = async (index: number | string, query = '') => {
      const { status, body } = await platform.client.get<ErrorReply>(`${path(task.id, index)}${query}`)
      return [status, body.error.code]
    }
    expect(await get(2)).toEqual([404, 'not_found'])
    expect(await get(999_999_999, '?after=1-1')).toEqual([404, 'not_found'])
    for (const index of ['-1', 'x', '1.5', '1234567890']) expect(await get(index)).toEqual([400, 'validation_failed'])
    for (const query of ['?after=', '?after=1-1&after=1-2']) expect(await get(1, query)).toEqual([400, 'bad_cursor'])
    expect(await get(1, '?from=start')).toEqual([400, 'validation_failed'])
  })

  test('of the client yields the same', async () => {
    const { task } = await ended([repeat(3, say(0, 'x'), rest(10))])
    const events = []
    for await (const event of createClient({ url: platform.url }).tasks.get(task.id).messageEvents(1)) events.push(event)
    const own = (await platform.log(task.id)).filter(({ event }) => 'index' in event && event.index === 1)
    expect(events.slice(0, -1)).toEqual(own.map(({ cursor, event }) => ({ ...event, cursor })))
    expect(events.at(-1)).toEqual({ ...endOf(task.id, 1, 'complete'), cursor: own.at(-1)?.cursor })
  })
})

describe('a cursor', () => {
  test.each([['999-1'], ['1-999999'], ['0-1'], ['999999999999999-999999999999999']] as const)(
    'that this log never had gets a snapshot instead (%s)',
    async cursor => {
      const { task, messages } = await ended([say(0, 'known')])
      const viewer = watch(task.id, { urls: platform.urls, after: cursor })
      await viewer.ended
      expect(types(viewer)).toEqual(['snapshot', 'caught_up', 'end'])
      expect(viewer.frames()[0]?.data).toMatchObject({ reason: 'gap', messages })
    },
  )

  test('that this log never had goes on live behind the snapshot', async () => {
    const { task } = await platform.client.createTask(scripted(slowly))
    const viewer = watch(task.id, { urls: platform.urls, after: '77-7' })
    await viewer.ended
    expect(viewer.frames()[0]?.data).toMatchObject({ type: 'snapshot', reason: 'gap' })
    expect(viewer.text()).toBe('word '.repeat(15))
  })

  test.each([0, 1, 7])('from the future, %i epochs ahead, gets ids that only grow on its connection', async epochs => {
    const { task } = await platform.client.createTask(scripted([repeat(60, say(0, 'word '), rest(50))]))
    const known = await until('the agent has begun', async () =>
      (await platform.log(task.id)).find(({ event }) => event.type === 'message.delta'),
    )
    const viewer = watch(task.id, { urls: platform.urls, after: `${epochOf(known.cursor) + epochs}-9999` })
    await viewer.ended
    const ids = viewer.frames().flatMap(({ id }) => id ?? [])
    expect(ids).toEqual(ids.toSorted(compareCursors))
    expect(viewer.frames()[0]?.data).toMatchObject({ type: 'snapshot', reason: 'gap' })
    expect(viewer.text()).toBe('word '.repeat(60))
  })

  test.each(['', '1', '1-', '-1', 'a-b', '1-1, 9-9', '1.5-1', '$', '+', '1-1\t2', `${'9'.repeat(16)}-1`, '\u00e9-1'])(
    'that is malformed is refused: %j',
    async cursor => {
      const path = `/v1/tasks/${crypto.randomUUID()}/events`
      const byHeader = await platform.client.send<ErrorReply>('GET', path, { headers: { 'last-event-id': cursor } })
      const byQuery = await platform.client.send<ErrorReply>('GET', `${path}?after=${encodeURIComponent(cursor)}`)
      for (const { status, body } of [byHeader, byQuery]) expect([status, body.error.code]).toEqual([400, 'bad_cursor'])
    },
  )
})

describe('a request', () => {
  test('for a task that is unknown is answered 404', async () => {
    const { status, body } = await platform.client.get<ErrorReply>(`/v1/tasks/${crypto.randomUUID()}/events`)
    expect([status, body.error.code]).toEqual([404, 'task_not_found'])
  })

  test('for a task that was removed is answered 404, also when it was just watched', async () => {
    const { task } = await ended([say(0, 'x')])
    await Promise.all(platform.urls.map(url => watch(task.id, { urls: [url] }).ended))
    expect((await platform.client.remove(task.id)).status).toBe(204)
    for (const api of platform.apis) {
      expect((await platform.clientOf(api).get(`/v1/tasks/${task.id}/events`)).status).toBe(404)
    }
  })

  test('that follows a task ends with `deleted` when the task is removed, at both APIs', async () => {
    const { task } = await ended([say(0, 'x')])
    const viewers = platform.urls.map(url => watch(task.id, { urls: [url], query: '?follow=true' }))
    await Promise.all(viewers.map(viewer => viewer.until('it is up to date', ({ frames }) => frames().at(-1)?.data.type === 'caught_up')))
    expect((await platform.client.remove(task.id)).status).toBe(204)
    for (const viewer of viewers) {
      await viewer.ended
      expect(viewer.frames().at(-1)).toEqual({ id: viewer.cursor(), data: { type: 'deleted', task: task.id } })
    }
  })

  test('of the client that follows a task fails with `task_not_found` when the task is removed', async () => {
    const { task } = await ended([say(0, 'x')])
    const following = (async () => {
      const view = createClient({ url: platform.url }).tasks.get(task.id).events({ follow: true })
      for await (const event of view) if (event.type === 'caught_up') expect((await platform.client.remove(task.id)).status).toBe(204)
    })()
    await expect(following).rejects.toMatchObject({ code: 'task_not_found', message: 'The task was deleted' })
  })

  test('that does not take an event stream is answered 406', async () => {
    const { task } = await ended([say(0, 'x')])
    const accept = (value: string) => platform.client.send<ErrorReply>('GET', `/v1/tasks/${task.id}/events`, { headers: { accept: value } })
    const { status, body } = await accept('application/json')
    expect([status, body.error.code]).toEqual([406, 'not_acceptable'])
    for (const value of ['*/*', 'text/*', 'text/event-stream', 'application/json, text/event-stream;q=0.5']) {
      expect((await accept(value)).status).toBe(200)
    }
  })

  test('by another method is refused, and gets no stream for a body', async () => {
    const { task } = await platform.client.createTask(scripted(slowly))
    for (const method of ['HEAD', 'POST']) {
      const reply = await fetch(`${platform.url}/v1/tasks/${task.id}/events`, { method })
      expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'GET'])
    }
  })

  test('that asks for something that is not there is refused', async () => {
    for (const query of ['?from=middle', '?follow=maybe', '?unknown=1']) {
      const { status, body } = await platform.client.get<ErrorReply>(`/v1/tasks/${crypto.randomUUID()}/events${query}`)
      expect([status, body.error.code]).toEqual([400, 'validation_failed'])
    }
  })
})

describe('creating and streaming in one request', () => {
  test('the answer is the stream, from the first word on', async () => {
    const { frames, connection } = await postAndHear(scripted([repeat(5, say(0, 'live '), rest(10))], { input: 'go' }))
    expect(connection.status).toBe(200)
    expect(frames[0]?.data).toMatchObject({ type: 'snapshot', reason: 'join' })
    const task = taskOf(frames)
    expect(frames.at(-1)?.data).toMatchObject({ type: 'end', status: 'completed' })
    const deltas = frames.flatMap(({ data }) => (data.type === 'message.delta' ? [data] : []))
    expect(deltas.map(({ delta }) => 'text' in delta && delta.text).join('')).toBe('live '.repeat(5))
    expect(await faultsOf(platform, task)).toEqual([])
  })

  test('a request that is repeated under its key gets the same task, while it runs and when it is over', async () => {
    const body = scripted(slowly, { input: 'only once' })
    const headers = { 'idempotency-key': 'create-and-stream' }
    const first = postAndHear(body, headers)
    await until(
      'the task is there',
      async () => (await platform.pg.query("select from idempotency_keys where key = 'key:none create-and-stream'")).rowCount,
    )
    const second = await postAndHear(body, headers)
    const third = await postAndHear(body, headers)
    const all = [await first, second, third]
    expect(new Set(all.map(({ frames }) => taskOf(frames))).size).toBe(1)
    expect(all.map(({ connection }) => connection.headers['idempotent-replayed'])).toEqual([undefined, 'true', 'true'])
    for (const { frames } of all) expect(frames.at(-1)?.data.type).toBe('end')
    const other = await platform.client.post<ErrorReply>('/v1/tasks', { agent: 'echo' }, { ...headers, accept: 'text/event-stream' })
    expect([other.status, other.body.error.code]).toEqual([422, 'idempotency_key_reused'])
  })

  test('a request that is refused is refused as ever', async () => {
    const reply = await platform.client.post<ErrorReply>('/v1/tasks', { agent: 'unknown' }, { accept: 'text/event-stream' })
    expect([reply.status, reply.body.error.code]).toEqual([422, 'unknown_agent'])
  })
})

test('what a turn has said so far can be read while it is said, and is what a viewer holds', async () => {
  const { task } = await platform.client.createTask(scripted([say(0, 'so far'), rest(60_000)], { input: 'go' }))
  const viewer = watch(task.id, { urls: platform.urls })
  await viewer.until('hears it', ({ text }) => text() === 'so far')
  const rows = await platform.client.messages(task.id)
  expect(rows.map(({ status, content }) => [status, content.type === 'text' && content.text])).toEqual([
    ['complete', 'go'],
    ['streaming', 'so far'],
  ])
  expect(rows).toEqual(Array.from(viewer.state().messages, ({ message }) => message))
  await platform.client.cancel(task.id, 'enough')
  expect(await faultsOfViewers(platform, [viewer])).toEqual([])
  expect(types(viewer).slice(-3)).toEqual(['message.finished', 'turn.finished', 'end'])
  expect(viewer.frames().at(-1)?.data).toMatchObject({ status: 'canceled' })
})

async function ended(steps: object[]) {
  const { task, messages } = await platform.client.finishedTask(scripted(steps as Record<string, unknown>[], { input: 'go' }))
  await until('its end is announced', async () => (await platform.log(task.id)).at(-1)?.event.type === 'turn.finished')
  return { task, messages }
}

async function postAndHear(body: object, headers: Record<string, string> = {}) {
  const open = openConnection({ url: `${platform.url}/v1/tasks`, method: 'POST', body, headers })
  await open.closed
  return { connection: open.connection, frames: open.connection.frames }
}

function taskOf(frames: Frame[]): string {
  const first = frames[0]?.data
  return first?.type === 'snapshot' ? first.task.id : ''
}

function types(viewer: Viewer): string[] {
  return viewer.frames().map(({ data }) => data.type)
}

function texts(viewer: Viewer): unknown[] {
  return Array.from(viewer.state().messages, ({ content }) => content.type === 'text' && content.text)
}

function finished(frames: Frame[]): number[] {
  return frames.flatMap(({ data }) => (data.type === 'turn.finished' ? [data.turn] : []))
}

function isBehind(cursor: Cursor, other: Cursor): boolean {
  return compareCursors(cursor, other) > 0
}

function seen({ id, data }: Frame): [string, Event] {
  return [id, data as Event]
}
