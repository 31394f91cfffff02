/** Many viewers of many tasks, over two APIs and two workers: whatever happens to their connections, each ends with what is stored. */
import { createClient, textOf } from '@rivulet/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { done, extend, fail, full, modes, repeat, rest, type Step, say, scripted, seededRandom, start } from '../support/agents/scripts.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { readFormat } from '../support/viewers/format-reader.ts'
import { isLogged, type Viewer, watch } from '../support/viewers/viewer.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 2 })
})
afterAll(() => platform.close())

test('twenty tasks at once to eighty viewers, who come, go and come back as they like', async () => {
  const random = seededRandom(50)
  const viewers: Viewer[] = []
  const tasks = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      const body = i % 10 === 9 ? { agent: 'scripted', params: { attempts: { 1: [...story(i), fail('once')], 2: story(i) } } } : script(i)
      const { task } = await platform.client.createTask({ ...body, input: `question ${i}` })
      await platform.client.addTurn(task.id, { input: 'and then?', params: { steps: story(i + 1) } })
      viewers.push(
        // There from the start, and undisturbed.
        watch(task.id, { urls: urlsFrom(i) }),
        // Cut again and again, and back at the other API each time.
        watch(task.id, { urls: urlsFrom(i), cutAfter: connection => (connection < 6 ? 1 + Math.floor(random() * 5) : null) }),
        watch(task.id, { urls: urlsFrom(i + 1), query: '?from=start', cutAfter: connection => (connection < 3 ? 2 : null) }),
      )
      return task.id
    }),
  )
  // In the middle of it.
  for (const [i, task] of tasks.entries()) viewers.push(watch(task, { urls: urlsFrom(i) }))
  expect(viewers).toHaveLength(80)
  expect(await faultsOfViewers(platform, viewers)).toEqual([])
  expect(viewers.flatMap(viewer => viewer.journal.connections).length).toBeGreaterThan(160)
  for (const viewer of viewers) expect(viewer.state().turns.map(({ status }) => status)).toEqual(['completed', 'completed'])
})

test('a viewer that is cut at any event, or at every event, misses none and gets none twice', async () => {
  const steps = [
    start(0, { type: 'text', text: 'Begin: ' }),
    repeat(12, say(0, 'word '), rest(25)),
    done(0),
    say(1, 'and'),
    full(1, data(1)),
  ]
  const { task } = await platform.client.createTask(scripted(steps, { input: 'go' }))
  const fromStart = '?from=start'
  const atEvery = platform.urls.map((_, i) => watch(task.id, { urls: urlsFrom(i), query: fromStart, cutAfter: () => 1 }))
  const atAny = Array.from({ length: 25 }, (_, k) =>
    watch(task.id, { urls: urlsFrom(k), query: fromStart, cutAfter: connection => (connection === 0 ? k + 1 : null) }),
  )
  expect(await faultsOfViewers(platform, [...atEvery, ...atAny])).toEqual([])
  const log = await platform.log(task.id)
  for (const viewer of [...atEvery, ...atAny]) {
    const heard = viewer.frames().filter(isLogged)
    expect(heard.map(({ id, data }) => [id, data])).toEqual(log.map(({ cursor, event }) => [cursor, event]))
  }
  for (const { journal } of atEvery) expect(journal.connections.length).toBeGreaterThanOrEqual(log.length)
})

test('a viewer that resumes at one API with the cursor of another gets no event again, however close behind it is', async () => {
  const { task } = await platform.client.createTask(scripted([repeat(80, say(0, 'w'), rest(3))], { input: 'go' }))
  const viewers = Array.from({ length: 8 }, (_, i) => watch(task.id, { urls: urlsFrom(i), cutAfter: () => 1 }))
  expect(await faultsOfViewers(platform, viewers)).toEqual([])
  for (const viewer of viewers) expect(viewer.text()).toBe('w'.repeat(80))
})

test('an API that is killed under a hundred viewers takes no word with it', async () => {
  const tasks = await Promise.all(
    Array.from({ length: 5 }, async () => (await platform.client.createTask(scripted([repeat(60, say(0, 'word '), rest(40))]))).task.id),
  )
  const [first] = platform.apis
  const second = await platform.startApi()
  const port = new URL(second.url).port
  const viewers = tasks.flatMap((task, i) =>
    Array.from({ length: 20 }, (_, k) =>
      watch(task, { urls: (i + k) % 2 === 0 ? [second.url, first?.url ?? ''] : [first?.url ?? '', second.url] }),
    ),
  )
  await Promise.all(viewers.map(viewer => viewer.until('hears it begin', ({ text }) => text().length > 20)))
  await second.kill('SIGKILL')
  const third = await platform.startApi({ port })
  expect(await faultsOfViewers(platform, viewers)).toEqual([])
  for (const viewer of viewers) expect(viewer.text()).toBe('word '.repeat(60))
  await until('the killed one is back', async () => (await fetch(`${third.url}/readyz`)).ok)
})

describe('several tasks on one stream', () => {
  test('each with its events, its end and its place: cut after any number of events and resumed at either API, none is lost or repeated', async () => {
    const bodies = [0, 1, 2, 3].map(i => ({ ...script(i), input: `question ${i}` }))
    const tasks = await Promise.all(bodies.map(async body => (await platform.client.createTask(body)).task.id))
    const readers = await Promise.all([
      readMany(tasks, () => Number.POSITIVE_INFINITY),
      readMany(tasks, () => 1),
      readMany(tasks, connection => 1 + (connection % 7)),
    ])
    for (const task of tasks) {
      const log = (await platform.log(task)).map(({ cursor, event }) => [cursor, event])
      for (const { heard } of readers) expect(heard.get(task)).toEqual(log)
    }
    expect(readers.map(({ connections }) => connections > 1)).toEqual([false, true, true])
  })

  test('get the end again of what has ended, a snapshot for a cursor that is lost, and more of what follows', async () => {
    const ids = await Promise.all(
      ['one', 'two'].map(async word => (await platform.client.finishedTask(scripted([say(0, word)], { input: 'go' }))).task.id),
    )
    const [first = '', second = ''] = ids
    await until('both ends are announced', async () => {
      const logs = await Promise.all(ids.map(id => platform.log(id)))
      return logs.every(log => log.at(-1)?.event.type === 'turn.finished')
    })
    const end = (await platform.log(first)).at(-1)?.cursor
    const reader = readFormat(`${platform.url}/v1/events`, { body: { tasks: { [first.toUpperCase()]: end, [second]: '77-7' } } })
    await reader.closed
    expect(reader.status()).toBe(200)
    const types = (task: string) => reader.frames.filter(({ id }) => id?.startsWith(`${task}/`)).map(({ event }) => event)
    expect([types(first), types(second)]).toEqual([
      ['caught_up', 'end'],
      ['snapshot', 'caught_up', 'end'],
    ])
    const leaving = new AbortController()
    const following = readFormat(`${platform.url}/v1/events`, {
      body: { tasks: { [first]: end, [second]: null }, follow: true },
      signal: leaving.signal,
    })
    await following.until(() => following.frames.filter(({ event }) => event === 'caught_up').length === 2)
    await platform.client.addTurn(second, { input: 'more', params: { steps: [say(0, 'three')] } })
    await following.until(() => following.frames.some(({ id, event }) => id?.startsWith(second) && event === 'turn.finished'))
    expect((await platform.client.remove(first)).status).toBe(204)
    await following.until(() => following.frames.some(({ id, event }) => id?.startsWith(first) && event === 'deleted'))
    expect(following.frames.map(({ event }) => event)).not.toContain('end')
    leaving.abort()
    await following.closed
  })

  test('have their children with them, of all levels: from the start, and for a client that joins late or resumes', async () => {
    const spawn = (name: string, steps: Step[]): Step => ({ spawn: { name, agent: 'scripted', params: { steps } } }) as unknown as Step
    // It goes on speaking, because a stream that follows it late begins with a snapshot of what it has said.
    const leaf = [repeat(10_000, say(0, 'leaf '), rest(60))]
    const { task } = await platform.client.createTask(scripted([spawn('first', [say(0, 'early')]), spawn('branch', [spawn('leaf', leaf)])]))
    const client = createClient({ url: platform.url })
    const hear = async (options: Parameters<typeof client.watchMany>[1], heard = new Map<string, string[]>()) => {
      for await (const { id, event } of client.watchMany([task.id], { children: true, ...options }))
        heard.set(id, [...(heard.get(id) ?? []), event.type])
      return heard
    }
    const heardFromStart = new Map<string, string[]>()
    const whole = hear({ from: 'start' }, heardFromStart)
    const last = await until('the leaf has begun', async () => {
      const tree = (await platform.pg.query('select child from children where root = $1 order by depth', [task.id])).rows
      return tree.length === 3 && String(tree[2]?.child)
    })
    await until('the leaf speaks', () => heardFromStart.get(last)?.includes('message.delta'))
    const heardLate = new Map<string, string[]>()
    const joining = hear({}, heardLate)
    await until('one that joins late has what runs', () => heardLate.has(last))
    await platform.client.cancel(task.id)
    const [late, all] = await Promise.all([joining, whole])
    expect([...all.keys()]).toHaveLength(4)
    expect(late.size).toBe(3)
    for (const heard of [all, late])
      for (const [id, types] of heard) expect([id, types.at(-1), types.filter(type => type === 'end').length]).toEqual([id, 'end', 1])
    expect(all.get(last)).toContain('message.delta')
    // One that has ended is not sent again by a stream that resumes behind its start.
    const end = (await platform.log(task.id)).at(-1)?.cursor ?? ''
    expect([...(await hear({ after: { [task.id]: end } })).keys()]).toEqual([task.id])
  })

  test('are refused as a whole: too many, none, one that is unknown, one twice, a malformed id or cursor', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, 'x')]))
    const unknown = crypto.randomUUID()
    const ids = (count: number) => Object.fromEntries(Array.from({ length: count }, () => [crypto.randomUUID(), null]))
    const refusal = async (tasks: object, more = {}) => {
      const { status, body } = await platform.client.post<ErrorReply>('/v1/events', { tasks, ...more })
      return [status, body.error.code, body.error.details?.map(({ path }) => path)]
    }
    expect(await refusal(ids(1_001))).toEqual([400, 'too_many_tasks', undefined])
    expect(await refusal(ids(10_000))).toEqual([400, 'json_too_complex', ['/']])
    expect(await refusal({})).toEqual([400, 'validation_failed', ['/tasks']])
    expect(await refusal({ [task.id]: null, [unknown]: null })).toEqual([404, 'task_not_found', [`/tasks/${unknown}`]])
    const loud = task.id.toUpperCase()
    expect(await refusal({ [task.id]: null, [loud]: '1-1' })).toEqual([400, 'validation_failed', [`/tasks/${loud}`]])
    expect(await refusal({ nonsense: null })).toEqual([400, 'validation_failed', ['/tasks/nonsense']])
    for (const cursor of ['', '1', 'a-b', 5])
      expect(await refusal({ [task.id]: cursor })).toEqual([400, 'validation_failed', [`/tasks/${task.id}`]])
    expect(await refusal({ [task.id]: null }, { children: 'yes' })).toEqual([400, 'validation_failed', ['/children']])
    const reply = await platform.client.post<ErrorReply>('/v1/events', { tasks: { [task.id]: null } }, { accept: 'application/json' })
    expect([reply.status, reply.body.error.code]).toEqual([406, 'not_acceptable'])
  })

  test('of a client end with what is stored, also when their API is killed', async () => {
    const tasks = await Promise.all(
      Array.from({ length: 4 }, async () => (await platform.client.createTask(scripted([repeat(30, say(0, 'word '), rest(40))]))).task.id),
    )
    const api = await platform.startApi()
    const port = new URL(api.url).port
    const view = createClient({ url: api.url }).viewMany(tasks)
    const leave = view.subscribe(() => {})
    await until('it has begun', () => view.current.every(({ messages }) => textOf(messages).length > 20))
    await api.kill('SIGKILL')
    await platform.startApi({ port })
    await until('all have ended', () => view.current.every(({ connection }) => connection === 'ended'))
    for (const { id, messages, repairs } of view.current) expect([messages, repairs]).toEqual([await platform.client.messages(id), 0])
    leave()
  })
})

/** Reads several tasks from their start, with a new connection after so many events of the log, until each has ended. */
async function readMany(tasks: readonly string[], cutAfter: (connection: number) => number) {
  const places = new Map<string, string>(tasks.map(task => [task, '0-0']))
  const heard = new Map<string, unknown[]>(tasks.map(task => [task, []]))
  let connections = 0
  for (; places.size > 0; connections += 1) {
    const leaving = new AbortController()
    const url = platform.urls[connections % platform.urls.length]
    const reader = readFormat(`${url}/v1/events`, { body: { tasks: Object.fromEntries(places) }, signal: leaving.signal })
    let taken = 0
    let count = 0
    await reader.until(() => {
      for (; taken < reader.frames.length && count < cutAfter(connections); taken += 1) {
        const { id, event, data } = reader.frames[taken] ?? { id: '', event: '', data: '' }
        const [task = '', cursor = ''] = (id ?? '').split('/')
        if (event === 'end') places.delete(task)
        if (event === 'end' || event === 'caught_up') continue
        expect(event).not.toBe('snapshot')
        places.set(task, cursor)
        heard.get(task)?.push([cursor, JSON.parse(data)])
        count += 1
      }
      return count >= cutAfter(connections) || places.size === 0
    })
    leaving.abort()
    await reader.closed
  }
  return { heard, connections }
}

function urlsFrom(first: number): string[] {
  return platform.urls.map((_, i) => platform.urls[(first + i) % platform.urls.length] ?? '')
}

function script(i: number): object {
  const mode = modes[i % modes.length]
  return scripted(story(i), {}, mode === 'manual' ? 'generator' : mode)
}

function story(i: number): Step[] {
  return [
    start(0, { type: 'text', text: `${i}: `, format: 'markdown' }),
    repeat(8, say(0, `\u{1f30a} word ${i}\n`), rest(15 + (i % 7) * 5)),
    extend(1, { type: 'reasoning_content', index: 0, text: 'because' }),
    extend(2, { type: 'tool_request', text: '{"city":' }),
    rest(10),
    extend(2, { type: 'tool_request', text: `"${i}"}` }),
    full(3, data(i)),
    repeat(4, extend(4, { type: 'media', bytes: 'AAECAwQ=' }), rest(10)),
  ]
}

function data(value: number) {
  return { type: 'data', data: { value } }
}
