import type { Cursor, RivuletError } from '@rivulet/protocol'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createFakeApi, type FakeRequest, type FakeStream, json, openStream, rejection } from '../../test/fake-api.ts'
import { type Entry, snapshotOf, taskId, turnLog } from '../../test/sample-task.ts'
import { type ClientOptions, createClient } from '../client.ts'
import type { WakeUps } from '../http/backoff.ts'
import { isLogged, type TaskEvent } from './task-event.ts'

const log = turnLog(1, [['one ', 'two ', 'three']])
const last = log.at(-1)?.cursor as Cursor
const end = { type: 'end', task: taskId, status: 'completed' } as const
const caughtUp = { type: 'caught_up', task: taskId } as const
const path = `/v1/tasks/${taskId}/events`

/** Wakes up at once, so that no test waits. */
const atOnce: WakeUps = wake => {
  queueMicrotask(wake)
  return () => {}
}

function watched(
  responses: (((request: FakeRequest) => Response | Promise<Response>) | null)[] = [],
  options: Partial<ClientOptions> = {},
) {
  let asked = 0
  const api = createFakeApi(request => {
    const respond = responses[asked]
    asked += 1
    return respond ? respond(request) : openStream()
  })
  const client = createClient({ url: 'http://api.test', fetch: api.fetch as typeof fetch, wakeUps: atOnce, ...options })
  return { api, client, handle: client.tasks.get(taskId) }
}

function tell(stream: FakeStream, entries: readonly Entry[]): void {
  for (const { cursor, event } of entries) stream.send(cursor, event)
}

async function allOf(events: AsyncIterable<TaskEvent>, into: TaskEvent[] = []): Promise<TaskEvent[]> {
  for await (const event of events) into.push(event)
  return into
}

const expected = log.map(({ cursor, event }) => ({ ...event, cursor }))

describe('events', () => {
  test('each comes once, over any number of connections, each from the last cursor', async () => {
    const { api, handle } = watched()
    const soFar: TaskEvent[] = []
    const heard = allOf(handle.events(), soFar)
    for (const [place, entry] of log.entries()) {
      const stream = await api.stream(place)
      // What a reconnect replays comes again.
      tell(stream, [...log.slice(Math.max(0, place - 2), place), entry])
      await expect.poll(() => soFar.length).toBe(place + 1)
      if (place % 2 === 0) stream.cut()
      else stream.end()
    }
    const stream = await api.stream(log.length)
    stream.send(last, caughtUp)
    stream.send(last, end)
    expect((await heard).filter(isLogged)).toEqual(expected)
    expect((await heard).slice(-2).map(({ type }) => type)).toEqual(['caught_up', 'end'])
    expect(api.pathsOf('GET')).toEqual([`${path}?from=start`, ...log.map(({ cursor }) => `${path}?after=${cursor}`)])
    expect(handle.repairs).toBe(0)
  })

  test('receive `caught_up` once', async () => {
    const { api, handle } = watched()
    const heard = allOf(handle.events())
    for (const place of [0, 1]) {
      const stream = await api.stream(place)
      stream.send('0-0', caughtUp)
      if (place === 0) stream.cut()
      else {
        tell(stream, log)
        stream.send(last, end)
      }
    }
    expect((await heard).map(({ type }) => type)).toEqual(['caught_up', ...log.map(({ event }) => event.type), 'end'])
  })

  test('begin after a cursor, at the start, or with a snapshot, and follow', async () => {
    const { api, handle } = watched()
    const requests = [
      { after: '3-4' as Cursor },
      {},
      { from: 'snapshot' as const },
      { from: 'snapshot' as const, follow: true },
      { follow: true },
    ]
    for (const options of requests) {
      const events = handle.events(options)
      void events.next()
      await api.stream(api.requests.length)
      await events.return?.()
    }
    expect(api.pathsOf('GET')).toEqual(
      ['?after=3-4', '?from=start', '', '?follow=true', '?from=start&follow=true'].map(query => path + query),
    )
  })

  test('nothing left to come (204) is the end, with what is known of it', async () => {
    const { api, handle } = watched([null, () => new Response(null, { status: 204 })])
    const soFar: TaskEvent[] = []
    const heard = allOf(handle.events(), soFar)
    const stream = await api.stream(0)
    tell(stream, log)
    await expect.poll(() => soFar.length).toBe(log.length)
    stream.cut()
    expect((await heard).at(-1)).toEqual({ ...end, cursor: last })
    const { handle: late } = watched([() => new Response(null, { status: 204 })])
    expect(await allOf(late.events({ after: last }))).toEqual([])
  })

  test('a snapshot is one of them, and what follows it goes on from there', async () => {
    const { api, handle } = watched()
    const heard = allOf(handle.events())
    const stream = await api.stream(0)
    const snapshot = snapshotOf(log.slice(0, 4), 'gap')
    stream.send(snapshot.cursor, snapshot.event)
    tell(stream, log)
    stream.send(last, end)
    expect((await heard).map(({ type }) => type)).toEqual(['snapshot', ...log.slice(4).map(({ event }) => event.type), 'end'])
  })
})

describe('a lost delta', () => {
  test('makes it join anew with a snapshot, and is counted', async () => {
    const { api, handle } = watched()
    const heard = allOf(handle.events())
    const stream = await api.stream(0)
    tell(stream, [...log.slice(0, 4), ...log.slice(5)])
    const again = await api.stream(1)
    expect(again.request.path).toBe(path)
    expect(stream.isLeft()).toBe(true)
    expect(handle.repairs).toBe(1)
    const snapshot = snapshotOf(log)
    again.send(snapshot.cursor, snapshot.event)
    again.send(last, end)
    expect((await heard).map(({ type }) => type)).toEqual([...log.slice(0, 4).map(({ event }) => event.type), 'snapshot', 'end'])
  })
})

describe('a refusal', () => {
  test.each([
    [400, 'bad_cursor'],
    [401, 'unauthorized'],
    [403, 'forbidden'],
    [404, 'task_not_found'],
    [422, 'validation_failed'],
  ])('of %i %s is final', async (status, code) => {
    const { api, handle } = watched([() => rejection(status, code)])
    await expect(allOf(handle.events())).rejects.toMatchObject({ code })
    expect(api.requests).toHaveLength(1)
  })

  test.each([
    ['503', () => rejection(503, 'draining')],
    ['429', () => rejection(429, 'too_many_turns')],
    ['500', () => rejection(500, 'internal')],
    ['no answer', () => Promise.reject(new TypeError('fetch failed'))],
    ['a response that is not from Rivulet', () => new Response('<html>')],
  ])('by %s is not', async (_, respond) => {
    const { api, handle } = watched([respond, respond, respond, null])
    const heard = allOf(handle.events())
    const stream = await api.stream(0)
    tell(stream, log)
    stream.send(last, end)
    expect((await heard).filter(isLogged)).toEqual(expected)
    expect(api.requests).toHaveLength(4)
  })

  test('of a token has it renewed, once for each connection', async () => {
    const tokens = ['one', 'two']
    const { api, handle } = watched(
      [() => rejection(401, 'unauthorized'), null, () => rejection(401, 'unauthorized'), () => rejection(401, 'unauthorized')],
      {
        token: () => tokens.shift() ?? 'three',
      },
    )
    const heard = allOf(handle.events())
    const stream = await api.stream(0)
    expect(stream.request.headers.get('authorization')).toBe('Bearer two')
    stream.cut()
    await expect(heard).rejects.toMatchObject({ code: 'unauthorized' } satisfies Partial<RivuletError>)
    expect(api.requests.at(-1)?.headers.get('authorization')).toBe('Bearer three')
  })
})

describe('a token that the stream hands out', () => {
  const fresh = (token: string, task = taskId) =>
    `id: 1-1\nevent: token\ndata: ${JSON.stringify({ type: 'token', task, token, expiresAt: '2030-01-01T00:00:00.000Z' })}\n\n`

  test('is used for the next connection; the token function is not called again, and the reader does not see the event', async () => {
    let asked = 0
    const { api, handle } = watched([null, null], {
      token: () => {
        asked += 1
        return 'first'
      },
    })
    const heard = allOf(handle.events())
    const stream = await api.stream(0)
    stream.raw(fresh('second') + fresh('of another task', '00000000-0000-7000-8000-00000000beef') + fresh('third').replace('third"', '3'))
    stream.end()
    const next = await api.stream(1)
    expect([stream, next].map(({ request }) => request.headers.get('authorization'))).toEqual(['Bearer first', 'Bearer second'])
    tell(next, log)
    next.send(last, end)
    expect((await heard).filter(isLogged)).toEqual(expected)
    expect(asked).toBe(1)
  })

  test('is its handle’s alone: other tasks have their own, and the rest goes on with the key', async () => {
    const asked: string[] = []
    const other = taskId.replace(/1$/, '2')
    const { api, client } = watched([null, null, null, () => json(200, { data: [] })], { key: 'own' })
    const token = (task: string) => {
      asked.push(task)
      return `for ${task}`
    }
    const heard = allOf(client.tasks.get(taskId, { token }).events())
    const stream = await api.stream(0)
    stream.raw(fresh('second'))
    stream.end()
    const next = await api.stream(1)
    const leaving = client.tasks.get(other, { token: 'as it is' }).events()
    void leaving.next()
    await api.stream(2)
    await leaving.return?.()
    await client.agents.list()
    expect(api.requests.map(({ headers }) => headers.get('authorization'))).toEqual([
      `Bearer for ${taskId}`,
      'Bearer second',
      'Bearer as it is',
      'Bearer own',
    ])
    expect(asked).toEqual([taskId])
    tell(next, log)
    next.send(last, end)
    await heard
  })

  test('does not take the place of a key', async () => {
    const { api, handle } = watched([null, null], { key: 'own' })
    const heard = allOf(handle.events())
    const stream = await api.stream(0)
    stream.raw(fresh('second'))
    stream.end()
    const next = await api.stream(1)
    expect(next.request.headers.get('authorization')).toBe('Bearer own')
    tell(next, log)
    next.send(last, end)
    await heard
  })
})

describe('coming back', () => {
  function delays() {
    const timers = vi.spyOn(globalThis, 'setTimeout')
    onTestFinished(() => timers.mockRestore())
    // The guards of silence are not delays.
    return () => timers.mock.calls.map(([, ms]) => ms).filter(ms => ms !== undefined && ms > 50 && ms <= 30_000)
  }

  test('takes longer each time that nothing is heard, and begins anew when something is', async () => {
    const asked = delays()
    const away = () => Promise.reject(new TypeError('fetch failed'))
    const { api, handle } = watched([away, away, away, null, away, null], { random: () => 1 })
    const events = handle.events()
    const heard = allOf(events)
    const stream = await api.stream(0)
    tell(stream, log.slice(0, 2))
    stream.cut()
    await api.stream(1)
    expect(asked()).toEqual([100, 200, 400, 100, 200])
    await events.return?.()
    await heard
  })

  test('waits as long as the server asks for: by retry when it says goodbye, by Retry-After when it refuses', async () => {
    const asked = delays()
    const { api, handle } = watched([null, () => rejection(503, 'draining', { 'retry-after': '3' }), null], { random: () => 1 })
    const events = handle.events()
    const heard = allOf(events)
    const stream = await api.stream(0)
    stream.raw('retry: 2345\n\n')
    tell(stream, log.slice(0, 1))
    stream.end()
    await api.stream(1)
    expect(asked()).toEqual([2_345, 3_000])
    await events.return?.()
    await heard
  })

  test.each(['999999999', '99999999999'])('waits no longer than half a minute, also when told retry: %s', async ms => {
    const asked = delays()
    const { api, handle } = watched([], { random: () => 1 })
    const events = handle.events()
    const heard = allOf(events)
    const stream = await api.stream(0)
    stream.raw(`retry: ${ms}\n\n`)
    tell(stream, log.slice(0, 1))
    stream.end()
    await api.stream(1)
    expect(asked()).toEqual([30_000])
    await events.return?.()
    await heard
  })

  test('after a loss takes longer with each loss, and not after a break without a loss', async () => {
    const asked = delays()
    const { api, handle } = watched([], { random: () => 1 })
    const events = handle.events()
    const soFar: TaskEvent[] = []
    const heard = allOf(events, soFar)
    const snapshot = snapshotOf(log.slice(0, 2))
    for (const place of [0, 1, 2]) {
      const stream = await api.stream(place)
      stream.send(snapshot.cursor, snapshot.event)
      tell(stream, log.slice(3, 4))
    }
    const stream = await api.stream(3)
    stream.send(snapshot.cursor, snapshot.event)
    await expect.poll(() => soFar.length).toBe(4)
    stream.cut()
    await api.stream(4)
    expect(asked()).toEqual([200, 400, 800, 100])
    expect(handle.repairs).toBe(3)
    await events.return?.()
    await heard
  })

  test('is at once in a browser that is online again, and in a tab that is looked at again', async () => {
    const page = new EventTarget()
    const document = Object.assign(new EventTarget(), { visibilityState: 'visible' })
    vi.stubGlobal('addEventListener', page.addEventListener.bind(page))
    vi.stubGlobal('removeEventListener', page.removeEventListener.bind(page))
    vi.stubGlobal('document', document)
    onTestFinished(() => void vi.unstubAllGlobals())
    const refused = () => rejection(503, 'draining', { 'retry-after': '25' })
    const api = createFakeApi((_, { requests }) => (requests.length < 3 ? refused() : openStream()))
    const view = createClient({ url: 'http://api.test', fetch: api.fetch as typeof fetch })
      .tasks.get(taskId)
      .view()
    const leave = view.subscribe(() => {})
    for (const [asked, target, event] of [
      [1, page, 'online'],
      [2, document, 'visibilitychange'],
    ] as const) {
      await expect.poll(() => [api.requests.length, view.current.connection]).toEqual([asked, 'waiting'])
      target.dispatchEvent(new globalThis.Event(event))
    }
    await api.stream(0)
    expect(api.requests).toHaveLength(3)
    leave()
  })

  test('does not wait for the head of an answer for ever', async () => {
    const hang = ({ signal }: FakeRequest) =>
      new Promise<Response>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    const { api, handle } = watched([hang, null], { silenceMs: 20 })
    const events = handle.events()
    void events.next()
    await api.stream(0)
    expect(api.requests).toHaveLength(2)
    await events.return?.()
  })
})

describe('leaving', () => {
  test('by break closes the connection, without a reconnect', async () => {
    const { api, handle } = watched()
    const opened = api.stream(0).then(stream => {
      tell(stream, log)
      return stream
    })
    for await (const event of handle.events()) if (event.type === 'message.started') break
    const stream = await opened
    expect(stream.isLeft()).toBe(true)
    expect(stream.request.signal?.aborted).toBe(true)
    expect(api.requests).toHaveLength(1)
  })

  test('while it waits for the next event ends that wait', async () => {
    const { api, handle } = watched()
    const events = handle.events()
    const next = events.next()
    const stream = await api.stream(0)
    await events.return?.()
    expect(await next).toEqual({ done: true, value: undefined })
    expect(stream.request.signal?.aborted).toBe(true)
  })

  test('by a signal throws its reason, also between two connections', async () => {
    const reason = new Error('left')
    for (const isWaiting of [false, true]) {
      const controller = new AbortController()
      const { api, handle } = watched([], { wakeUps: () => () => {} })
      const heard = allOf(handle.events({ signal: controller.signal }))
      const stream = await api.stream(0)
      if (isWaiting) stream.cut()
      controller.abort(reason)
      await expect(heard).rejects.toBe(reason)
      expect(api.requests).toHaveLength(1)
    }
  })
})
