// @vitest-environment happy-dom
import type { CreateTaskInput } from '@rivulet/contract/tasks'
import type { Message } from '@rivulet/protocol'
import type { Document, HTMLElement } from 'happy-dom'
import { act, createElement, memo, type ReactNode, StrictMode } from 'react'
import { createRoot, type Root } from 'react-dom/client'
import { afterEach, describe, expect, test } from 'vitest'
import { createFakeApi, type FakeRequest, json, openStream, rejection } from '../../test/fake-api.ts'
import { type Entry, snapshotOf, task, taskId, turn, turnLog } from '../../test/sample-task.ts'
import { createClient } from '../client.ts'
import { RivuletProvider } from './client-context.ts'
import { type TaskSource, type UsedTask, type UseTaskOptions, useTask } from './use-task.ts'

const page = globalThis as unknown as {
  document: Document
  IS_REACT_ACT_ENVIRONMENT: boolean
  requestAnimationFrame(callback: () => void): unknown
}
page.IS_REACT_ACT_ENVIRONMENT = true

const mounted: Root[] = []
afterEach(() =>
  act(() => {
    for (const root of mounted.splice(0)) root.unmount()
  }),
)

async function mount(node: ReactNode): Promise<{ element: HTMLElement; root: Root }> {
  const element = page.document.createElement('div')
  page.document.body.appendChild(element)
  const root = createRoot(element as unknown as Parameters<typeof createRoot>[0])
  mounted.push(root)
  await act(async () => root.render(node))
  return { element, root }
}

function clientOf(respond: (request: FakeRequest) => Response | null = () => null) {
  const api = createFakeApi(request => {
    const own = respond(request)
    if (own) return own
    if (request.path.includes('/events')) return openStream()
    return request.path.endsWith('/turns') ? json(202, { turn: turn(2) }) : json(201, { task, turn: turn(1) })
  })
  return { api, client: createClient({ url: 'http://api.test', fetch: api.fetch as unknown as typeof fetch, maxRetries: 0 }) }
}

/** A component that shows a task, and what it was given with each render. */
function transcript(source: TaskSource, options: UseTaskOptions) {
  const renders: UsedTask[] = []
  const rows: Record<number, number> = {}
  const Row = memo(({ message }: { message: Message }) => {
    rows[message.index] = (rows[message.index] ?? 0) + 1
    return createElement('p', null, message.content.type === 'text' ? message.content.text : '')
  })
  function Transcript({ other = source }: { other?: TaskSource }) {
    const used = useTask(other, options)
    renders.push(used)
    return createElement('section', null, ...used.messages.map(message => createElement(Row, { key: message.index, message })))
  }
  return { Transcript, renders, rows, last: () => renders.at(-1) as UsedTask }
}

/** Lets a screen be drawn, as often as it takes for this to hold. */
function drawn(check: () => boolean): Promise<void> {
  return expect
    .poll(async () => {
      await act(() => new Promise<void>(resolve => page.requestAnimationFrame(() => resolve())))
      return check()
    })
    .toBe(true)
}

const log = turnLog(1, [['one '], ['two']])

describe('a task in a component', () => {
  test('is shown as it is said, and its end', async () => {
    const { api, client } = clientOf()
    const { Transcript, last } = transcript(taskId, { client })
    const { element } = await mount(createElement(Transcript))
    expect(last()).toMatchObject({ status: null, messages: [], task: { id: taskId } })
    const stream = await api.stream(0)
    const snapshot = snapshotOf(log.slice(0, 4))
    stream.send(snapshot.cursor, snapshot.event)
    await drawn(() => element.textContent === 'one ')
    expect(last()).toMatchObject({ status: 'running', connection: 'live' })
    for (const { cursor, event } of log.slice(4)) stream.send(cursor, event)
    stream.send(log.at(-1)?.cursor ?? '0-0', { type: 'end', task: taskId, status: 'completed' })
    await drawn(() => last().connection === 'ended')
    expect(element.textContent).toBe('one two')
    expect(last()).toMatchObject({ status: 'completed', error: null })
  })

  test('however fast the deltas come, is rendered at most once per frame, and only the message that changed', async () => {
    const { api, client } = clientOf()
    const { Transcript, renders, rows } = transcript(taskId, { client })
    const { element } = await mount(createElement(Transcript))
    const stream = await api.stream(0)
    const words = Array.from({ length: 2_000 }, (_, place) => `${place} `)
    const long = turnLog(1, [['first'], words], { ending: null })
    const snapshot = snapshotOf(long.slice(0, 5))
    stream.send(snapshot.cursor, snapshot.event)
    await drawn(() => element.textContent === 'first')
    const before = { renders: renders.length, rows: rows[0] }
    let frames = 0
    let isOver = false
    const count = () => {
      frames += 1
      if (!isOver) page.requestAnimationFrame(count)
    }
    page.requestAnimationFrame(count)
    for (const { cursor, event } of long.slice(5)) stream.send(cursor, event)
    await drawn(() => element.textContent === `first${words.join('')}`)
    isOver = true
    expect(renders.length - before.renders).toBeLessThanOrEqual(frames + 1)
    expect(renders.length - before.renders).toBeLessThan(200)
    expect(rows[0]).toBe(before.rows)
  })

  test('is left when the component goes', async () => {
    const { api, client } = clientOf()
    const { Transcript } = transcript(taskId, { client })
    const { root } = await mount(createElement(Transcript))
    const stream = await api.stream(0)
    expect(stream.request.signal?.aborted).toBe(false)
    await act(async () => root.unmount())
    expect(stream.request.signal?.aborted).toBe(true)
    expect(api.requests).toHaveLength(1)
  })

  test('can be another one, or none', async () => {
    const { api, client } = clientOf()
    const { Transcript, last } = transcript(taskId, { client })
    const { root, element } = await mount(createElement(Transcript))
    const stream = await api.stream(0)
    const snapshot = snapshotOf(log)
    stream.send(snapshot.cursor, snapshot.event)
    await drawn(() => element.textContent === 'one two')
    await act(async () => root.render(createElement(Transcript, { other: taskId.replace(/1$/, '2') })))
    expect(element.textContent).toBe('')
    expect((await api.stream(1)).request.path).toContain('0002/events')
    expect(stream.request.signal?.aborted).toBe(true)
    await act(async () => root.render(createElement(Transcript, { other: null })))
    expect(last()).toMatchObject({ task: null, messages: [], status: null, connection: 'idle' })
    await expect(last().send('x')).rejects.toMatchObject({ code: 'task_not_found' })
  })

  test('is sent to and canceled by functions that stay the same', async () => {
    const { api, client } = clientOf(request => (request.path.endsWith('/cancel') ? json(200, { task }) : null))
    const { Transcript, renders, last } = transcript(taskId, { client, follow: true })
    await mount(createElement(Transcript))
    const stream = await api.stream(0)
    expect(stream.request.path).toContain('?follow=true')
    const snapshot = snapshotOf(log)
    stream.send(snapshot.cursor, snapshot.event)
    await drawn(() => last().messages.length === 2)
    expect(await last().send('more')).toMatchObject({ number: 2 })
    expect(await last().cancel('enough')).toMatchObject({ id: taskId })
    expect(api.pathsOf('POST')).toEqual([`/v1/tasks/${taskId}/turns`, `/v1/tasks/${taskId}/cancel`])
    expect(renders[0]?.send).toBe(last().send)
  })

  test('shows what it failed with', async () => {
    const { api, client } = clientOf()
    const { Transcript, last } = transcript(taskId, { client })
    await mount(createElement(Transcript))
    const failed: Entry[] = turnLog(1, [['half']], {
      ending: { status: 'failed', error: { code: 'deadline_exceeded', message: 'Too late' } },
    })
    const snapshot = snapshotOf(failed)
    ;(await api.stream(0)).send(snapshot.cursor, snapshot.event)
    await drawn(() => last().status === 'failed')
    expect(last().error).toMatchObject({ code: 'deadline_exceeded', message: 'Too late' })
  })

  test('that is not there is an error', async () => {
    const { client } = clientOf(() => rejection(404, 'task_not_found'))
    const { Transcript, last } = transcript(taskId, { client })
    await mount(createElement(Transcript))
    await drawn(() => last().connection === 'failed')
    expect(last().error).toMatchObject({ code: 'task_not_found' })
  })
})

describe('a task that a component creates', () => {
  const body: CreateTaskInput = { agent: 'scripted', input: 'hello' }

  test('is created once, also in StrictMode and however often its body is written down anew', async () => {
    const { api, client } = clientOf()
    const { Transcript, last } = transcript({ ...body }, {})
    const tree = () =>
      createElement(StrictMode, null, createElement(RivuletProvider, { client }, createElement(Transcript, { other: { ...body } })))
    const { root, element } = await mount(tree())
    await act(async () => root.render(tree()))
    const stream = await api.stream(0)
    await act(async () => root.render(tree()))
    const snapshot = snapshotOf(log)
    stream.send(snapshot.cursor, snapshot.event)
    await drawn(() => element.textContent === 'one two')
    expect(api.pathsOf('POST')).toEqual(['/v1/tasks'])
    expect(api.streams).toHaveLength(1)
    expect(last().task?.id).toBe(taskId)
  })

  test('another body is another task', async () => {
    const { api, client } = clientOf()
    const { Transcript } = transcript(body, { client })
    const { root } = await mount(createElement(Transcript))
    await api.stream(0)
    await act(async () => root.render(createElement(Transcript, { other: { ...body, input: 'bye' } })))
    await api.stream(1)
    expect(api.requests.filter(({ method }) => method === 'POST').map(request => request.body)).toEqual([body, { ...body, input: 'bye' }])
  })

  test('that is refused is an error', async () => {
    const { client } = clientOf(() => rejection(422, 'unknown_agent'))
    const { Transcript, last } = transcript(body, { client })
    await mount(createElement(Transcript))
    await drawn(() => last().error !== null)
    expect(last()).toMatchObject({ task: null, error: { code: 'unknown_agent' } })
  })
})

describe('a component that has a token', () => {
  const bearersOf = (api: ReturnType<typeof clientOf>['api']) => api.requests.map(({ headers }) => headers.get('authorization'))

  /** Each render brings a function of its own, as one that is written in place does. */
  function holder(source: TaskSource, client: UseTaskOptions['client']) {
    const asked: string[] = []
    function Holder({ word }: { word: string }) {
      const { messages } = useTask(source, {
        ...(client && { client }),
        token: async id => {
          asked.push(id)
          return word
        },
      })
      return createElement('p', null, String(messages.length))
    }
    return { Holder, asked }
  }

  test('uses it for all it does, over one connection however often it renders, and asks the latest source when it is refused', async () => {
    let valid = 'first'
    const { api, client } = clientOf(({ headers }) =>
      headers.get('authorization') === `Bearer ${valid}` ? null : rejection(401, 'unauthorized'),
    )
    const { Holder, asked } = holder(taskId, client)
    const { root } = await mount(createElement(Holder, { word: 'first' }))
    await drawn(() => api.streams.length === 1)
    await act(async () => root.render(createElement(Holder, { word: 'second' })))
    expect([api.streams.length, asked]).toEqual([1, [taskId]])
    valid = 'second'
    api.streams[0]?.cut()
    await drawn(() => api.streams.length === 2)
    expect(bearersOf(api)).toEqual(['Bearer first', 'Bearer first', 'Bearer second'])
    expect(asked).toEqual([taskId, taskId])
  })

  test('creates the task with what the client has, and watches it with the token', async () => {
    const { api, client } = clientOf()
    const { Holder, asked } = holder({ agent: 'scripted' }, client)
    await mount(createElement(Holder, { word: 'narrow' }))
    await drawn(() => api.streams.length === 1)
    expect(bearersOf(api)).toEqual([null, 'Bearer narrow'])
    expect(asked).toEqual([taskId])
  })
})

test('a handle that two components have is one connection', async () => {
  const { api, client } = clientOf()
  const handle = client.tasks.get(taskId)
  const [one, two] = [transcript(handle, { client }), transcript(handle, { client })]
  const { element } = await mount([createElement(one.Transcript, { key: 1 }), createElement(two.Transcript, { key: 2 })])
  const snapshot = snapshotOf(log)
  ;(await api.stream(0)).send(snapshot.cursor, snapshot.event)
  await drawn(() => element.textContent === 'one twoone two')
  expect(api.requests).toHaveLength(1)
})

test('without a client it says so', () => {
  const { Transcript } = transcript(taskId, {})
  return expect(mount(createElement(Transcript))).rejects.toThrow('No client')
})
