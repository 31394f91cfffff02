import type { Cursor } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { createFakeApi, type FakeRequest, type FakeStream, json, openStream } from '../../test/fake-api.ts'
import { type Entry, snapshotOf, taskId, turnLog } from '../../test/sample-task.ts'
import { createClient } from '../client.ts'
import type { WakeUps } from '../http/backoff.ts'

const other = taskId.replace(/1$/, '2')
const log = turnLog(1, [['one ', 'two ', 'three']])
const logOf = (id: string): Entry[] => log.map(({ cursor, event }) => ({ cursor, event: { ...event, task: id } }))
const last = log.at(-1)?.cursor as Cursor

/** Wakes up at once, so that no test waits. */
const atOnce: WakeUps = wake => {
  queueMicrotask(wake)
  return () => {}
}

function openApi(responses: ((request: FakeRequest) => Response | FakeStream)[] = []) {
  let asked = 0
  const api = createFakeApi(request => (responses[asked++] ?? openStream)(request))
  const client = createClient({ url: 'http://api.test', fetch: api.fetch as typeof fetch, wakeUps: atOnce })
  return { api, client, bodies: () => api.requests.map(({ body }) => body) }
}

function send(stream: FakeStream, id: string, cursor: Cursor, event: { type: string; [field: string]: unknown }): void {
  stream.raw(`id: ${id}/${cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
}

const missing =
  (...ids: string[]) =>
  () =>
    json(404, {
      error: { code: 'task_not_found', message: 'No such task', details: ids.map(id => ({ path: `/tasks/${id}`, reason: 'x' })) },
    })

describe('several tasks on one stream', () => {
  test('that breaks after every event: each event is heard once, and each task resumes at its own place', async () => {
    const { api, client, bodies } = openApi()
    const heard: { id: string; event: { type: string; cursor: Cursor } }[] = []
    const reading = (async () => {
      for await (const one of client.watchMany([taskId.toUpperCase(), other], { from: 'start' })) heard.push(one)
    })()
    for (const [place, entry] of log.entries()) {
      const stream = await api.stream(place)
      // The second task is one event behind, and what was heard comes again.
      for (const [id, entries] of [
        [taskId, logOf(taskId).slice(Math.max(0, place - 1), place + 1)],
        [other, logOf(other).slice(Math.max(0, place - 2), place)],
      ] as const)
        for (const { cursor, event } of entries) send(stream, id, cursor, event)
      await expect.poll(() => heard.length).toBe(place * 2 + 1)
      expect(heard.at(-1)?.event.cursor).toBe(place === 0 ? entry.cursor : log[place - 1]?.cursor)
      if (place % 2 === 0) stream.cut()
      else stream.end()
    }
    const stream = await api.stream(log.length)
    send(stream, taskId, last, { type: 'end', task: taskId, status: 'completed' })
    const [final] = logOf(other).slice(-1)
    if (final) send(stream, other, final.cursor, final.event)
    await expect.poll(() => heard.length).toBe(log.length * 2 + 1)
    stream.cut()
    // A task that has ended is not asked for again.
    const again = await api.stream(log.length + 1)
    send(again, other, last, { type: 'end', task: other, status: 'completed' })
    await reading
    for (const id of [taskId, other]) {
      const own = heard.filter(one => one.id === id).map(({ event }) => event)
      expect(own.slice(0, -1)).toEqual(logOf(id).map(({ cursor, event }) => ({ ...event, cursor })))
      expect(own.at(-1)?.type).toBe('end')
    }
    expect(bodies()[0]).toEqual({ tasks: { [taskId]: '0-0', [other]: '0-0' }, follow: false })
    expect(bodies()[3]).toEqual({ tasks: { [taskId]: log[2]?.cursor, [other]: log[1]?.cursor }, follow: false })
    expect(bodies().at(-1)).toEqual({ tasks: { [other]: last }, follow: false })
  })

  test('of which one loses an event: that one joins again with a snapshot, the other at its cursor', async () => {
    const { api, client, bodies } = openApi()
    const events = client.watchMany([taskId, other], { from: 'start' })
    const next = async () => (await events.next()).value as { id: string; event: { type: string } }
    const first = next()
    const stream = await api.stream(0)
    for (const { cursor, event } of logOf(other).slice(0, 2)) send(stream, other, cursor, event)
    expect([(await first).id, (await next()).id]).toEqual([other, other])
    const lost = next()
    send(stream, taskId, log[4]?.cursor as Cursor, logOf(taskId)[4]?.event as { type: string })
    const again = await api.stream(1)
    expect(bodies()[1]).toEqual({ tasks: { [taskId]: null, [other]: log[1]?.cursor }, follow: false })
    const snapshot = snapshotOf(log)
    send(again, taskId, snapshot.cursor, snapshot.event)
    expect((await lost).event.type).toBe('snapshot')
    await events.return?.()
  })

  test('of which one was deleted meanwhile: that is an event, and the others go on; one that never was is an error', async () => {
    const { api, client, bodies } = openApi([openStream, missing(taskId)])
    const heard: string[] = []
    const reading = (async () => {
      for await (const { id, event } of client.watchMany([taskId, other], { from: 'start' })) heard.push(`${id} ${event.type}`)
    })()
    const stream = await api.stream(0)
    for (const id of [taskId, other]) send(stream, id, log[0]?.cursor as Cursor, logOf(id)[0]?.event as { type: string })
    await expect.poll(() => heard.length).toBe(2)
    stream.cut()
    const rest = await api.stream(1)
    expect([heard[2], bodies()[2]]).toEqual([`${taskId} deleted`, { tasks: { [other]: log[0]?.cursor }, follow: false }])
    send(rest, other, log[0]?.cursor as Cursor, { type: 'deleted', task: other })
    await reading
    expect(heard[3]).toBe(`${other} deleted`)
    const { client: second } = openApi([missing(other)])
    await expect(second.watchMany([taskId, other]).next()).rejects.toMatchObject({ code: 'task_not_found' })
  })
})

describe('views of several tasks', () => {
  test('share one connection, which follows when a view adds a task and stays when one leaves', async () => {
    const { api, client, bodies } = openApi()
    const [left, right] = [client.viewMany([taskId], { follow: true }), client.viewMany([other, taskId], { follow: true })]
    const leaveLeft = left.subscribe(() => {})
    const stream = await api.stream(0)
    const snapshot = snapshotOf(log)
    send(stream, taskId, snapshot.cursor, snapshot.event)
    await expect.poll(() => left.current[0]?.status).toBe('completed')
    const leaveRight = right.subscribe(() => {})
    const joined = await api.stream(1)
    expect(stream.isLeft()).toBe(true)
    expect(bodies()[1]).toEqual({ tasks: { [taskId]: snapshot.cursor, [other]: null }, follow: true })
    expect(right.current.map(({ id, status }) => [id, status])).toEqual([
      [other, null],
      [taskId, 'completed'],
    ])
    expect(right.current[1]).toBe(left.current[0])
    leaveLeft()
    send(joined, other, snapshot.cursor, { ...snapshot.event, task: { ...snapshot.event.task, id: other } })
    await expect.poll(() => right.current[0]?.status).toBe('completed')
    expect(api.streams).toHaveLength(2)
    leaveRight()
    await expect.poll(() => joined.isLeft()).toBe(true)
  })

  test('with children show those that start, behind their parents, resume them, and forget them with their parent', async () => {
    const { api, client, bodies } = openApi()
    const [child, grandchild] = [taskId.replace(/1$/, '3'), taskId.replace(/1$/, '4')]
    const view = client.viewMany([taskId], { children: true })
    const leave = view.subscribe(() => {})
    const stream = await api.stream(0)
    expect(bodies()[0]).toEqual({ tasks: { [taskId]: null }, follow: false, children: true })
    const { cursor, event } = snapshotOf(log)
    const families = [[taskId], [child, taskId], [grandchild, child]]
    for (const [id = '', parent] of families) send(stream, id, cursor, { ...event, task: { ...event.task, id, ...(parent && { parent }) } })
    await expect.poll(() => view.current.map(({ id }) => id)).toEqual([taskId, child, grandchild])
    send(stream, child, cursor, { type: 'end', task: child, status: 'completed' })
    await expect.poll(() => view.current[1]?.connection).toBe('ended')
    const beside = client.viewMany([other], { children: true })
    const leaveBeside = beside.subscribe(() => {})
    await api.stream(1)
    const tasks = { [taskId]: cursor, [grandchild]: cursor, [other]: null }
    expect(bodies()[1]).toEqual({ tasks, follow: false, children: true })
    expect(beside.current.map(({ id }) => id)).toEqual([other])
    leave()
    const again = client.viewMany([taskId], { children: true })
    await expect.poll(() => again.current.map(({ id }) => id)).toEqual([taskId])
    leaveBeside()
  })

  test('show the error of a task that does not exist, and the others go on', async () => {
    const { api, client } = openApi([missing(other)])
    const view = client.viewMany([taskId, other])
    const leave = view.subscribe(() => {})
    const stream = await api.stream(0)
    send(stream, taskId, last, snapshotOf(log).event)
    send(stream, taskId, last, { type: 'end', task: taskId, status: 'completed' })
    await expect
      .poll(() => view.current.map(({ connection, error }) => [connection, error?.code]))
      .toEqual([
        ['ended', undefined],
        ['failed', 'task_not_found'],
      ])
    leave()
  })
})
