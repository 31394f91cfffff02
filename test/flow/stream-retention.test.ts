/** Viewers of tasks whose logs are trimmed and expire under them: with a log, part of a log or none, all of them receive the same. */
import { setTimeout as sleep } from 'node:timers/promises'
import { hasEnded, messagesOf } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fail, repeat, rest, say, scripted } from '../support/agents/scripts.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { readFormat } from '../support/viewers/format-reader.ts'
import { isLogged, type Viewer, watch } from '../support/viewers/viewer.ts'

const retentionMs = 600

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 1, env: { LOG_RETENTION_MS: String(retentionMs) } })
})
afterAll(() => platform.close())

const words = (count: number) => [repeat(count, say(0, 'word '), rest(25))]

test('a viewer that joins at any moment of a task, while it runs, ends and expires, ends with the stored messages', async () => {
  const { viewers } = await arriveDuring([words(10)])
  expect(await faultsOfViewers(platform, viewers, { log: false })).toEqual([])
  for (const viewer of viewers) expect(viewer.text()).toBe('word '.repeat(10))
  expect(new Set(viewers.map(beginning))).toEqual(new Set(['join', 'gap', 'log']))
})

test('a viewer that joins at any moment of a conversation whose first turns are trimmed ends with the stored messages', async () => {
  const { viewers } = await arriveDuring([4, 24, 4, 24, 4].map(words))
  expect(await faultsOfViewers(platform, viewers, { log: false })).toEqual([])
  for (const viewer of viewers) expect(viewer.state().turns.map(({ status }) => status)).toEqual(Array(5).fill('completed'))
})

test('a message that is too long for a snapshot is not lost with its log: every snapshot says where messages begin', async () => {
  const long = [repeat(20, say(0, 'x'.repeat(60_000)))]
  const { task } = await platform.client.createTask(scripted(long, { input: 'one' }))
  await platform.client.waitForEnd(task.id)
  await until('the log has expired', async () => (await platform.redis.exists(platform.keys.stream(task.id))) === 0)
  const late = platform.urls.map(url => watch(task.id, { urls: [url] }))
  await Promise.all(late.map(({ ended }) => ended))
  for (const viewer of late) {
    expect(viewer.frames().map(({ data }) => data.type)).toEqual(['snapshot', 'caught_up', 'end'])
    expect([viewer.state().messagesFrom, viewer.state().messages.length]).toEqual([2, 0])
  }
  // Viewers of the next turn go on from there, whether they join before it begins, while it streams or when it has ended.
  const follow = platform.urls.map(url => watch(task.id, { urls: [url], query: '?follow=true' }))
  await Promise.all(
    follow.map(viewer => viewer.until('has caught up', ({ frames }) => frames().some(({ data }) => data.type === 'caught_up'))),
  )
  await platform.client.addTurn(task.id, { input: 'two', params: { steps: words(10) } })
  const hasBegun = (viewer: Viewer) => viewer.until('hears of the turn', ({ state }) => state().turns.length === 2)
  await Promise.all(follow.map(hasBegun))
  const viewers: Viewer[] = []
  for (let isOver = false; !isOver; isOver = (await platform.redis.exists(platform.keys.stream(task.id))) === 0) {
    viewers.push(...platform.urls.map(url => watch(task.id, { urls: [url] })))
    await sleep(25)
  }
  const rows = await platform.client.messages(task.id)
  expect(rows).toHaveLength(4)
  expect(await faultsOfViewers(platform, viewers, { log: false })).toEqual([])
  for (const viewer of [...viewers, ...follow]) {
    const { messagesFrom, discarded } = viewer.state()
    expect([messagesFrom, discarded, messagesOf(viewer.state())]).toEqual([2, 0, rows.slice(2)])
  }
  await Promise.all(follow.map(viewer => viewer.stop()))
})

test('a message whose log has expired is sent as it is stored, with its end, and not again to a client that has it', async () => {
  const { task, messages } = await platform.client.finishedTask(scripted(words(3), { input: 'one' }))
  await until('the log has expired', async () => (await platform.redis.exists(platform.keys.stream(task.id))) === 0)
  for (const [i, url] of platform.urls.entries()) {
    const address = `${url}/v1/tasks/${task.id}/messages/${i}/events`
    const reader = readFormat(address)
    await reader.closed
    expect(reader.frames.map(({ data }) => JSON.parse(data))).toMatchObject([
      { type: 'snapshot', reason: 'join', messages: [messages[i]], messagesFrom: i },
      { type: 'end', task: task.id, index: i, status: 'complete' },
    ])
    const again = readFormat(address, { after: reader.frames.at(-1)?.id ?? '' })
    await again.closed
    expect(again.status()).toBe(204)
  }
})

test('a turn that waits is not forgotten when what was said before it is trimmed', async () => {
  const { task } = await platform.client.createTask(scripted(words(8), { input: 'one' }))
  const attempts = { 1: [fail('once')], 2: words(30) }
  await platform.client.addTurn(task.id, { input: 'two', params: { attempts } })
  await platform.client.addTurn(task.id, { input: 'three', params: { steps: words(2) } })
  await platform.client.waitForTask(task.id, ({ turns }) => turns[1]?.attempt === 2)
  await until('the first turn is trimmed', async () => (await platform.log(task.id)).every(({ event }) => event.turn > 1))
  // Fresh feeds: no viewer has watched this task before.
  const viewers = platform.urls.map(url => watch(task.id, { urls: [url] }))
  expect(await faultsOfViewers(platform, viewers, { log: false })).toEqual([])
  for (const viewer of viewers) expect(viewer.state().turns.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed'])
})

test('from the start means all of it or a snapshot, also for an API that has read the start before it was trimmed', async () => {
  const { task } = await platform.client.createTask(scripted(words(2), { input: 'one', delayMs: 1_500 }))
  const early = platform.urls.map(url => watch(task.id, { urls: [url], query: '?from=start' }))
  await Promise.all(early.map(viewer => viewer.until('has joined', ({ frames }) => frames().length > 0)))
  await platform.client.addTurn(task.id, { input: 'two', params: { steps: words(30) } })
  await platform.client.addTurn(task.id, { input: 'three', params: { steps: words(30) } })
  await platform.client.waitForTask(task.id, ({ turns }) => turns[2]?.status !== 'queued')
  await until('the first turn is trimmed', async () => (await platform.log(task.id)).every(({ event }) => event.turn > 1))
  const late = platform.urls.flatMap(url => ['?from=start', '?after=0-0'].map(query => watch(task.id, { urls: [url], query })))
  expect(await faultsOfViewers(platform, [...early, ...late], { log: false })).toEqual([])
  expect(early.map(beginning)).toEqual(['log', 'log'])
  expect(late.map(beginning)).toEqual(['gap', 'gap', 'gap', 'gap'])
})

test('a viewer that follows a task beyond the end of its log gets its next turn', async () => {
  const { task } = await platform.client.finishedTask(scripted(words(2), { input: 'one' }))
  const followers = platform.urls.map(url => watch(task.id, { urls: [url], query: '?follow=true' }))
  await until('the log has expired', async () => (await platform.redis.exists(platform.keys.stream(task.id))) === 0)
  await Promise.all(followers.map(viewer => viewer.until('hears the first turn', ({ state }) => state().turns[0]?.status === 'completed')))
  followers.push(...platform.urls.map(url => watch(task.id, { urls: [url], query: '?follow=true' })))
  await Promise.all(followers.map(viewer => viewer.until('has joined', ({ frames }) => frames().length > 0)))
  await platform.client.addTurn(task.id, { input: 'two', params: { steps: words(3) } })
  for (const follower of followers) {
    await follower.until('hears the second end', ({ state }) => state().turns[1]?.status === 'completed')
    await follower.stop()
  }
  expect(await faultsOfViewers(platform, followers, { log: false })).toEqual([])
})

/**
 * New viewers all the time, at both APIs, until the log of these turns has expired: without a cursor, from the start, and with cursors that others have
 * seen before. The first of them has joined before the first turn begins, whatever the machine does meanwhile.
 */
async function arriveDuring(turns: object[][]): Promise<{ viewers: Viewer[] }> {
  const { task } = await platform.client.createTask({ ...scripted([]), start: false })
  const first = watch(task.id, { urls: platform.urls, query: '?from=start&follow=true' })
  const viewers = [first]
  await first.until('it has joined', ({ frames }) => frames().length > 0)
  for (const steps of turns) await platform.client.addTurn(task.id, { input: 'go', params: { mode: 'generator', steps } })
  await first.until('it has begun', ({ frames }) => frames().some(({ data }) => data.type === 'turn.started'))
  for (let i = 0; (await platform.redis.exists(platform.keys.stream(task.id))) === 1; i += 1) {
    const urls = [platform.urls[i % 2] ?? '']
    // With the snapshots, because an event after one does not follow the event before it.
    const seen = first.frames().filter(frame => isLogged(frame) || frame.data.type === 'snapshot')
    const kinds = [{}, { query: '?from=start' }, { past: seen.slice(0, 1 + ((i * 7) % seen.length)) }]
    viewers.push(watch(task.id, { urls, ...kinds[i % 3] }))
    await sleep(10)
  }
  viewers.push(watch(task.id, { urls: platform.urls }), watch(task.id, { urls: platform.urls, query: '?from=start' }))
  await first.until(
    'it has heard the last end',
    ({ state }) => state().turns.length === turns.length && state().turns.every(({ status }) => hasEnded(status)),
  )
  await first.stop()
  return { viewers }
}

function beginning({ journal }: Viewer): string {
  const first = journal.connections.find(({ isCut }) => !isCut)?.frames[0]?.data
  return first?.type === 'snapshot' ? first.reason : 'log'
}
