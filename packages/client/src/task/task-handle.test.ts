import type { Cursor } from '@rivulet/protocol'
import { describe, expect, test, vi } from 'vitest'
import { createFakeApi, type FakeRequest, type FakeStream, json, openStream } from '../../test/fake-api.ts'
import { type Ending, type Entry, snapshotOf, task, taskId, turn, turnLog } from '../../test/sample-task.ts'
import { createClient } from '../client.ts'

const log = turnLog(1, [['one ', 'two ', 'three']])
const path = `/v1/tasks/${taskId}/events`

function begin(respond: (request: FakeRequest) => Response | null = () => null) {
  const api = createFakeApi(request => {
    const own = respond(request)
    if (own) return own
    if (request.path.startsWith(path)) return openStream()
    return request.path.endsWith('/turns') ? json(202, { turn: turn(2) }) : json(201, { task, turn: turn(1) })
  })
  const client = createClient({
    url: 'http://api.test',
    fetch: api.fetch as typeof fetch,
    wakeUps: wake => {
      queueMicrotask(wake)
      return () => {}
    },
  })
  return { api, client, handle: client.tasks.get(taskId) }
}

function tell(
  stream: FakeStream,
  entries: readonly { cursor: Cursor; event: Entry['event'] | ReturnType<typeof snapshotOf>['event'] }[],
): void {
  for (const { cursor, event } of entries) stream.send(cursor, event)
}

function finish(stream: FakeStream, entries: readonly Entry[], status: Ending['status'] = 'completed'): void {
  stream.send(entries.at(-1)?.cursor ?? '0-0', { type: 'end', task: taskId, status })
  stream.end()
}

function play(stream: FakeStream, entries: readonly Entry[], status?: Ending['status']): void {
  tell(stream, [snapshotOf(entries.slice(0, 1)), ...entries.slice(1)])
  finish(stream, entries, status)
}

describe('a view', () => {
  test('is the fold, with every change, over one connection for all subscribers', async () => {
    const { api, handle } = begin()
    const view = handle.view()
    expect(handle.view()).toBe(view)
    expect(view.current).toMatchObject({ status: null, messages: [], connection: 'idle', task: null })
    const seen: string[] = []
    const leave = view.subscribe(() => seen.push(`${view.current.connection} ${view.current.status} ${view.current.messages.length}`))
    const listener = vi.fn()
    const leaveToo = view.subscribe(listener)
    const stream = await api.stream(0)
    tell(stream, [snapshotOf(log.slice(0, 1)), ...log.slice(1, 5)])
    await expect.poll(() => view.current.messages[0]?.content).toMatchObject({ text: 'one two ' })
    expect(seen).toEqual([
      'connecting null 0',
      'live null 0',
      'live queued 0',
      'live running 0',
      'live running 1',
      'live running 1',
      'live running 1',
    ])
    expect(listener).toHaveBeenCalledTimes(seen.length)
    tell(stream, log.slice(5))
    finish(stream, log)
    await expect.poll(() => view.current.connection).toBe('ended')
    expect(view.current).toMatchObject({ status: 'completed', task: { status: 'completed' }, error: null, repairs: 0 })
    expect(api.requests).toHaveLength(1)
    leave()
    leaveToo()
  })

  test('shows values: what is old stays as it was, and what did not change is the same object', async () => {
    const { api, handle } = begin()
    const view = handle.view()
    const leave = view.subscribe(() => {})
    const stream = await api.stream(0)
    const two = turnLog(1, [['one'], ['two', ' more']])
    tell(stream, [snapshotOf(two.slice(0, 1)), ...two.slice(1, 7)])
    await expect.poll(() => view.current.messages.length).toBe(2)
    const before = view.current
    expect(view.current).toBe(before)
    tell(stream, two.slice(7, 8))
    await expect.poll(() => view.current).not.toBe(before)
    expect(view.current.messages[0]).toBe(before.messages[0])
    expect(view.current.messages[1]).not.toBe(before.messages[1])
    expect(before.messages[1]?.content).toMatchObject({ text: 'two' })
    const settled = view.current
    stream.send('11-9', { type: 'custom', task: taskId, turn: 1, attempt: 1, at: 1, name: 'n', data: 1 })
    await expect.poll(() => view.current.cursor).toBe('11-9')
    expect(view.current.messages).toBe(settled.messages)
    leave()
  })

  test('opens one connection when a subscriber leaves and another joins at once, and closes it with the last', async () => {
    const { api, handle } = begin()
    const view = handle.view()
    view.subscribe(() => {})()
    const leave = view.subscribe(() => {})
    const stream = await api.stream(0)
    expect(api.requests).toHaveLength(1)
    leave()
    leave()
    expect(stream.request.signal?.aborted).toBe(true)
    expect(view.current.connection).toBe('idle')
  })

  test('continues where it stopped when a subscriber returns', async () => {
    const { api, handle } = begin()
    const view = handle.view()
    const leave = view.subscribe(() => {})
    tell(await api.stream(0), [snapshotOf(log.slice(0, 4))])
    await expect.poll(() => view.current.messages.length).toBe(1)
    leave()
    view.subscribe(() => {})
    const stream = await api.stream(1)
    expect(stream.request.path).toBe(`${path}?after=${log[3]?.cursor}`)
    tell(stream, log.slice(4))
    finish(stream, log)
    await expect.poll(() => view.current.messages[0]?.content).toMatchObject({ text: 'one two three' })
  })

  test('shows the repair of a lost delta', async () => {
    const { api, handle } = begin()
    const view = handle.view()
    const leave = view.subscribe(() => {})
    tell(await api.stream(0), [snapshotOf(log.slice(0, 3)), ...log.slice(4)])
    const again = await api.stream(1)
    expect(again.request.path).toBe(path)
    tell(again, [snapshotOf(log)])
    finish(again, log)
    await expect.poll(() => view.current.connection).toBe('ended')
    expect(view.current).toMatchObject({ repairs: 1, messages: snapshotOf(log).event.messages })
    leave()
  })

  test('fails with the error of a refusal', async () => {
    const { handle } = begin(() => json(404, { error: { code: 'task_not_found', message: 'No', requestId: 'r' } }))
    const view = handle.view()
    const leave = view.subscribe(() => {})
    await expect.poll(() => view.current.connection).toBe('failed')
    expect(view.current.error).toMatchObject({ code: 'task_not_found' })
    leave()
  })
})

describe('a result', () => {
  test('is the same for all callers, and settles once', async () => {
    const { api, handle } = begin()
    const asked = [handle.result(), handle.result()]
    const stream = await api.stream(0)
    play(stream, log)
    const [first, second] = await Promise.all(asked)
    expect(first).toBe(second)
    expect(await handle.result()).toBe(first)
    expect(first).toMatchObject({ status: 'completed', text: 'one two three', usage: { outputTokens: 2 }, turn: { number: 1 } })
    expect(first?.messages).toEqual(snapshotOf(log).event.messages)
    expect(api.requests).toHaveLength(1)
  })

  test.each([
    [
      'failed',
      { code: 'deadline_exceeded', message: 'Too late' },
      { code: 'deadline_exceeded', message: 'Too late', row: { retry: false } },
    ],
    ['failed', { code: 'quota', message: 'No more' }, { code: 'agent_error', message: 'No more', row: { retry: true } }],
    ['canceled', { code: 'canceled', message: 'enough' }, { code: 'canceled', message: 'enough', row: { retry: false } }],
  ] as const)('of a turn that %s with %o is an error that holds what was said', async (status, error, expected) => {
    const { api, handle } = begin()
    const asked = handle.result().catch((reason: unknown) => reason)
    const spoken: string[] = []
    const told = (async () => {
      for await (const words of handle.text()) spoken.push(words)
    })().catch((reason: unknown) => reason)
    const failing = turnLog(1, [['half']], { ending: { status, error } })
    for (const place of [0, 1]) play(await api.stream(place), failing, status)
    expect(await asked).toMatchObject({ name: 'RivuletError', ...expected, cause: { status, text: 'half' } })
    expect(await told).toMatchObject(expected)
    expect(spoken.join('')).toBe('half')
  })

  test('after new input is that of the new turn, though the old one has been told', async () => {
    const { api, handle } = begin()
    const first = handle.result()
    play(await api.stream(0), log)
    expect((await first).text).toBe('one two three')
    await handle.send('again')
    const second = handle.result()
    const more = turnLog(2, [['four']], { firstIndex: 1 })
    // Its announcement may be late: the end of what is known is not the end.
    finish(await api.stream(1), log)
    const stream = await api.stream(2)
    expect(stream.request.path).toBe(`${path}?after=${log.at(-1)?.cursor}`)
    tell(stream, more)
    finish(stream, more)
    expect(await second).toMatchObject({ text: 'four', turn: { number: 2 } })
    expect((await second).messages).toHaveLength(1)
  })

  test('is read from the rows where a snapshot left out the beginning of the turn', async () => {
    const all = snapshotOf(turnLog(1, [['long'], ['short']])).event
    const pages = [
      { data: all.messages.slice(0, 1), nextCursor: 0 },
      { data: all.messages.slice(1), nextCursor: null },
    ]
    const { api, handle } = begin(request => (request.path.includes('/messages') ? json(200, pages.shift()) : null))
    const asked = handle.result()
    const stream = await api.stream(0)
    stream.send('11-9', { ...all, messages: all.messages.slice(1), messagesFrom: 1 })
    stream.send('11-9', { type: 'end', task: taskId, status: 'completed' })
    expect((await asked).text).toBe('long\n\nshort')
    expect(api.pathsOf('GET').slice(1)).toEqual([`/v1/tasks/${taskId}/messages?turn=1`, `/v1/tasks/${taskId}/messages?turn=1&after=0`])
  })

  test('that no caller awaits any more closes its connection', async () => {
    const { api, handle } = begin()
    const controllers = [new AbortController(), new AbortController()]
    const asked = controllers.map(({ signal }) => handle.result({ signal }))
    const stream = await api.stream(0)
    controllers[0]?.abort('left')
    await expect(asked[0]).rejects.toBe('left')
    expect(stream.request.signal?.aborted).toBe(false)
    controllers[1]?.abort('left')
    await expect(asked[1]).rejects.toBe('left')
    expect(stream.request.signal?.aborted).toBe(true)
  })
})

describe('the words of a task', () => {
  test('are those of the turn that was sent last', async () => {
    const { api, handle } = begin()
    await handle.send('again')
    const spoken: string[] = []
    const told = (async () => {
      for await (const words of handle.text()) spoken.push(words)
    })()
    const more = turnLog(2, [['four ', 'five']], { firstIndex: 1 })
    const stream = await api.stream(0)
    tell(stream, [snapshotOf(log), ...more])
    finish(stream, more)
    await told
    expect(spoken).toEqual(['four ', 'five'])
  })
})

describe('a snapshot that holds no message, because the newest is too long for it', () => {
  const all = snapshotOf(turnLog(1, [['very '], ['long']])).event
  const cut = { ...all, messages: [], messagesFrom: 2 }
  const onPages = () => {
    const pages = [
      { data: all.messages.slice(0, 1), nextCursor: 0 },
      { data: all.messages.slice(1), nextCursor: null },
    ]
    return begin(request => (request.path.includes('/messages') ? json(200, pages.shift()) : null))
  }

  test('is no empty task: a view says where its messages begin, and the next turn goes on from there', async () => {
    const { api, handle } = begin()
    const view = handle.view({ follow: true })
    const leave = view.subscribe(() => {})
    const stream = await api.stream(0)
    stream.send('11-9', cut)
    await expect.poll(() => view.current).toMatchObject({ messages: [], messagesFrom: 2, status: 'completed' })
    tell(stream, turnLog(2, [['again']], { firstIndex: 2 }))
    await expect.poll(() => view.current.messages).toMatchObject([{ index: 2, turn: 2, content: { text: 'again' }, status: 'complete' }])
    expect(view.current).toMatchObject({ messagesFrom: 2, repairs: 0 })
    leave()
  })

  test('is no empty result: the messages are read, page by page', async () => {
    const { api, handle } = onPages()
    const asked = handle.result()
    const stream = await api.stream(0)
    stream.send('11-9', cut)
    stream.send('11-9', { type: 'end', task: taskId, status: 'completed' })
    expect(await asked).toMatchObject({ text: 'very \n\nlong', messages: all.messages })
  })

  test('is not silent: the words are read, page by page', async () => {
    const { api, handle } = onPages()
    const spoken: string[] = []
    const told = (async () => {
      for await (const words of handle.text()) spoken.push(words)
    })()
    const stream = await api.stream(0)
    stream.send('11-9', cut)
    stream.send('11-9', { type: 'end', task: taskId, status: 'completed' })
    await told
    expect(spoken.join('')).toBe('very \n\nlong')
    expect(api.pathsOf('GET').slice(1)).toEqual([`/v1/tasks/${taskId}/messages?turn=1`, `/v1/tasks/${taskId}/messages?turn=1&after=0`])
  })
})

test('a turn is read whole by its number', async () => {
  const whole = { ...turn(3), input: { type: 'text', text: 'long', format: 'plain' } }
  const { api, handle } = begin(request => (request.path.endsWith('/turns/3') ? json(200, { turn: whole }) : null))
  expect(await handle.getTurn(3)).toEqual(whole)
  expect(api.pathsOf('GET')).toEqual([`/v1/tasks/${taskId}/turns/3`])
})
