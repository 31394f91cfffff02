/** Many viewers of many tasks, over two APIs and two workers: whatever happens to their connections, each ends with what is stored. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { done, extend, fail, full, modes, repeat, rest, type Step, say, scripted, seededRandom, start } from '../support/agents/scripts.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { isLogged, type Viewer, watch } from '../support/viewers/viewer.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 2 })
})
afterAll(() => platform.close())

test('twenty tasks at once to eighty viewers, who come, go and come back as they like', { timeout: 120_000 }, async () => {
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

test('a viewer who is cut at any event, or at every event, misses none and hears none twice', { timeout: 90_000 }, async () => {
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

test('a viewer who resumes at one API with what it heard at the other hears nothing again, however close behind it is', async () => {
  const { task } = await platform.client.createTask(scripted([repeat(80, say(0, 'w'), rest(3))], { input: 'go' }))
  const viewers = Array.from({ length: 8 }, (_, i) => watch(task.id, { urls: urlsFrom(i), cutAfter: () => 1 }))
  expect(await faultsOfViewers(platform, viewers)).toEqual([])
  for (const viewer of viewers) expect(viewer.text()).toBe('w'.repeat(80))
})

test('an API that is killed under a hundred viewers takes no word with it', { timeout: 90_000 }, async () => {
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
