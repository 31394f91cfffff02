/** What each tab gets of the one connection, whenever it joins. */
import type { Cursor } from '@rivulet/client'
import { expect, test, vi } from 'vitest'
import { feedName, type Places, type Reader, SharedStream } from './shared-stream.ts'

test('tasks of several readers are one request, and each reader gets its own, with its ids', async () => {
  const { join, requests, send } = open()
  const [one, two] = [join({ a: null }, true), join({ b: '3-1' }, false)]
  await vi.waitFor(() => expect(requests.at(-1)?.places).toEqual({ a: null, b: '3-1' }))
  await send(frame('a/1-2', 'snapshot'), frame('b/3-2'), frame('a/1-3'))
  await vi.waitFor(() => expect(one.ids()).toEqual(['a/1-2', 'a/1-3']))
  expect(two.ids()).toEqual(['3-2'])
})

test('a reader that joins later gets a snapshot, and the one before it gets neither that nor an event twice', async () => {
  const { join, requests, send } = open()
  const one = join({ a: null })
  await vi.waitFor(() => expect(requests).toHaveLength(1))
  await send(frame('a/1-2', 'snapshot'), frame('a/1-3'))
  await vi.waitFor(() => expect(one.ids()).toEqual(['1-2', '1-3']))
  const two = join({ a: null })
  await vi.waitFor(() => expect(requests.at(-1)?.places).toEqual({ a: null }))
  await vi.waitFor(() => expect(requests).toHaveLength(2))
  await send(frame('a/1-3', 'snapshot'), frame('a/1-4'))
  await vi.waitFor(() => expect(two.ids()).toEqual(['1-3', '1-4']))
  expect(one.ids()).toEqual(['1-2', '1-3', '1-4'])
})

test('a reader of the whole log gets it after the snapshot of the other one', async () => {
  const { join, requests, send } = open()
  const [view, log] = [join({ a: null }), join({ a: '0-0' })]
  await vi.waitFor(() => expect(requests.at(-1)?.places).toEqual({ a: null }))
  await send(frame('a/1-2', 'snapshot'))
  await vi.waitFor(() => expect(requests.at(-1)?.places).toEqual({ a: '0-0' }))
  await send(frame('a/1-1'), frame('a/1-2'), frame('a/1-2', 'caught_up'), frame('a/1-3'))
  await vi.waitFor(() => expect(log.ids()).toEqual(['1-1', '1-2', '1-2', '1-3']))
  expect(view.ids()).toEqual(['1-2', '1-2', '1-3'])
})

test('a snapshot that repairs a loss is for every reader', async () => {
  const { join, requests, send } = open()
  const [one, two] = [join({ a: '1-5' }), join({ a: '1-6' })]
  await vi.waitFor(() => expect(requests.at(-1)?.places).toEqual({ a: '1-5' }))
  await send(frame('a/1-9', 'snapshot'), frame('a/1-10'))
  await vi.waitFor(() => expect(one.ids()).toEqual(['1-9', '1-10']))
  expect(two.ids()).toEqual(['1-9', '1-10'])
})

test('a feed resumes at the earliest place, and a reader without one begins with "open"', async () => {
  const { join, requests, send } = open()
  const [before, begins] = [join({ [feedName]: '7-1' }), join({ [feedName]: null })]
  await vi.waitFor(() => expect(requests.at(-1)?.places).toEqual({ [feedName]: '7-1' }))
  await send(frame('7-1', 'open'), frame('7-2'))
  await vi.waitFor(() => expect(before.ids()).toEqual(['7-2']))
  expect(begins.ids()).toEqual(['7-1', '7-2'])
})

test('a task that does not exist is an error for its reader alone', async () => {
  const { join, requests, refuse, send } = open()
  const [one, two] = [join({ a: '1-1' }), join({ gone: null })]
  await vi.waitFor(() => expect(requests).toHaveLength(1))
  refuse(404, { error: { code: 'task_not_found', details: [{ path: '/tasks/gone', reason: 'No such task' }] } })
  await vi.waitFor(() => expect(requests.at(-1)?.places).toEqual({ a: '1-1' }))
  await send(frame('a/1-2'))
  await vi.waitFor(() => expect(one.ids()).toEqual(['1-2']))
  expect([one.statuses(), two.statuses()]).toEqual([[200], [404]])
})

test('the connection closes with the last reader, and a broken one ends all readers', async () => {
  const { stream, join, requests, fail } = open()
  const [one, two] = [join({ a: null }), join({ b: null })]
  await vi.waitFor(() => expect(requests).toHaveLength(1))
  fail()
  await vi.waitFor(() => expect([one.ends(), two.ends()]).toEqual([[true], [true]]))
  const three = join({ a: null })
  await vi.waitFor(() => expect(requests).toHaveLength(2))
  stream.leave(three.reader)
  expect(requests.at(-1)?.signal.aborted).toBe(true)
})

test('a task that has ended leaves the connection, and is asked for again when the feed names it', async () => {
  const { stream, join, requests, send } = open()
  const [one, two] = [join({ a: null }), join({ b: null })]
  await vi.waitFor(() => expect(requests).toHaveLength(1))
  await send(frame('a/1-2', 'snapshot'), frame('b/1-2', 'snapshot'), frame('a/1-2', 'end'))
  await vi.waitFor(() => expect(one.ids()).toEqual(['1-2']))
  join({ c: null })
  await vi.waitFor(() => expect(requests.at(-1)?.places).toEqual({ b: '1-2', c: null }))
  stream.wake(['a'])
  await vi.waitFor(() => expect(requests.at(-1)?.places).toEqual({ a: '1-2', b: '1-2', c: null }))
  await send(frame('a/1-3'))
  await vi.waitFor(() => expect(one.ids()).toEqual(['1-2', '1-3']))
  expect([one.ends(), two.ends()]).toEqual([[], []])
})

test('a task that goes on while its end is on the way is asked for again', async () => {
  const { stream, join, requests, send } = open()
  const one = join({ a: '1-1' })
  await vi.waitFor(() => expect(requests).toHaveLength(1))
  stream.wake(['a'])
  await send(frame('a/1-2'), frame('a/1-2', 'end'))
  await vi.waitFor(() => expect(requests.at(-1)?.places).toEqual({ a: '1-2' }))
  expect(one.ends()).toEqual([])
})

test('readers stay when all tasks have ended and with them the response', async () => {
  const { join, requests, send, close } = open()
  const one = join({ a: '1-1' })
  await vi.waitFor(() => expect(requests).toHaveLength(1))
  await send(frame('a/1-2'), frame('a/1-2', 'end'))
  close()
  await vi.waitFor(() => expect(one.ids()).toEqual(['1-2']))
  const two = join({ a: null })
  await vi.waitFor(() => expect(requests.at(-1)?.places).toEqual({ a: null }))
  await send(frame('a/1-2', 'snapshot'))
  await vi.waitFor(() => expect(two.ids()).toEqual(['1-2']))
  expect(one.ends()).toEqual([])
})

type Request = {
  places: Record<string, Cursor | null>
  signal: AbortSignal
  resolve(response: Response): void
  reject(error: unknown): void
}

function open() {
  const requests: Request[] = []
  const stream = new SharedStream({
    gatherMs: 0,
    open: (places: Places, signal) =>
      new Promise((resolve, reject) => requests.push({ places: Object.fromEntries(places), signal, resolve, reject })),
  })
  let close = () => {}
  return { stream, requests, join, send, refuse, fail, close: () => close() }

  function join(places: Record<string, Cursor | null>, isTagged = false) {
    const frames: string[] = []
    const statuses: number[] = []
    const ends: boolean[] = []
    const reader: Reader = {
      places: new Map(Object.entries(places)),
      isTagged,
      head: ({ status }) => statuses.push(status),
      write: text => frames.push(text),
      end: isBroken => ends.push(isBroken),
    }
    stream.join(reader)
    return { reader, statuses: () => statuses, ends: () => ends, ids: () => frames.map(text => /id: (.*)/.exec(text)?.[1]) }
  }

  /** The response to the latest request, cut in the middle of a frame. */
  async function send(...frames: string[]): Promise<void> {
    const bytes = new TextEncoder().encode(`retry: 1000\n: hb\n${frames.join('')}`)
    const body = new ReadableStream({
      start: controller => {
        controller.enqueue(bytes.slice(0, 40))
        controller.enqueue(bytes.slice(40))
        close = () => controller.close()
      },
    })
    requests.at(-1)?.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }))
  }

  function refuse(status: number, body: object): void {
    requests.at(-1)?.resolve(new Response(JSON.stringify(body), { status }))
  }

  function fail(): void {
    requests.at(-1)?.reject(new TypeError('No network'))
  }
}

function frame(id: string, type = 'message.delta'): string {
  return `event: ${type}\ndata: {"type":"${type}"}\nid: ${id}\n\n`
}
