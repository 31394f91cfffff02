/** Slow readers, long conversations, and an API that stops: other viewers are not affected, and none receives a wrong text. */
import { type ClientRequest, request } from 'node:http'
import { connect } from 'node:net'
import { messagesOf, type Snapshot, text } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { repeat, rest, say, scripted, start } from '../support/agents/scripts.ts'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { metric } from '../support/platform/metrics.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { collectingOptions, heldMemory } from '../support/process/collect-garbage.ts'
import { until } from '../support/until.ts'
import { type Viewer, watch } from '../support/viewers/viewer.ts'

const MiB = 1024 * 1024

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 1 })
})
afterAll(() => platform.close())

describe('readers that stop reading', () => {
  const word = `${'0123456789'.repeat(6_000)}\n`
  const count = 220
  // More than any kernel keeps for a socket, and stays open until it is canceled.
  const flood = [repeat(count, say(0, word)), rest(600_000)]

  test('cost the process next to nothing, delay no other viewer, and continue from a snapshot', { timeout: 120_000 }, async () => {
    const api = await platform.startApi({ env: collectingOptions })
    const alone = await floodWith(0)
    const crowded = await floodWith(12)
    // Each viewer of the past gets its own pages: if the API kept the unread ones, they would take 200 MB.
    const replaying = Array.from({ length: 24 }, () => watch(crowded.task, { urls: [api.url], query: '?from=start' }))
    for (const viewer of replaying) viewer.pause()
    await Promise.all(replaying.map(viewer => viewer.until('is answered', ({ journal }) => journal.connections[0]?.status === 200)))
    const reading = watch(crowded.task, { urls: [api.url], query: '?from=start' })
    await reading.until('has read all of it', ({ text }) => text().length === word.length * count, { timeoutMs: 60_000 })
    expect((await heldMemory(api)) - alone.memory).toBeLessThan(60 * MiB)
    crowded.readers.push(reading)
    await Promise.all(replaying.map(viewer => viewer.stop()))

    const back = crowded.stalled.slice(0, 2)
    for (const viewer of crowded.stalled.slice(2)) await viewer.stop()
    for (const viewer of back) viewer.resume()
    for (const viewer of back)
      await viewer.until('has the whole text', ({ text }) => text().length === word.length * count, { timeoutMs: 60_000 })
    await platform.client.cancel(crowded.task)
    expect(await faultsOfViewers(platform, [...back, ...crowded.readers])).toEqual([])
    for (const viewer of back) {
      expect(viewer.frames().flatMap(({ data }) => (data.type === 'snapshot' ? [data.reason] : []))).toContain('slow')
      expect(viewer.text() === word.repeat(count)).toBe(true)
    }
    const said = await until('it is logged', () =>
      api.lines.find(({ msg, reason, task }) => msg === 'sent a snapshot to viewers' && reason === 'slow' && task === crowded.task),
    )
    expect(said).toMatchObject({ turn: 1 })
    for (const viewer of crowded.readers) expect(viewer.journal.connections).toHaveLength(1)

    async function floodWith(stalling: number) {
      const { task } = await platform.client.createTask(scripted(flood))
      const urls = [api.url]
      const stalled = Array.from({ length: stalling }, () => watch(task.id, { urls }))
      for (const viewer of stalled) viewer.pause()
      const readers = [watch(task.id, { urls }), watch(task.id, { urls })]
      for (const viewer of readers)
        await viewer.until('has the whole text', ({ text }) => text().length === word.length * count, { timeoutMs: 60_000 })
      const memory = await heldMemory(api)
      if (stalling === 0) await platform.client.cancel(task.id)
      return { task: task.id, stalled, readers, memory }
    }
  })

  test.each([
    ['as events', ''],
    ['in the words of the AI SDK', '?format=ai-sdk'],
    ['as task messages of Agentex', '?format=agentex'],
  ])('share one snapshot of a long turn, %s, also while the turn speaks on', { timeout: 120_000 }, async (_, query) => {
    const api = await platform.startApi({ env: { ...collectingOptions, MAX_VIEWER_STALL_MS: '600000' } })
    const steps = [repeat(130, say(0, word)), start(1, text()), repeat(600, say(1, 'and so on '), rest(100)), rest(600_000)]
    const { task } = await platform.client.createTask(scripted(steps))
    const reader = watch(task.id, { urls: [api.url] })
    await reader.until('has the long text', ({ state }) => state().messages.length === 2, { timeoutMs: 60_000 })
    const before = await heldMemory(api)
    const unread = await Promise.all(Array.from({ length: 60 }, () => openUnread(`${api.url}/v1/tasks/${task.id}/events${query}`)))
    onTestFinished(() => unread.forEach(request => void request.destroy()))
    await until('their sockets are full', async () => (await metric(api.url, 'rivulet_viewers_blocked')) === 60)
    // A copy for each would be 470 MB.
    expect((await heldMemory(api)) - before).toBeLessThan(100 * MiB)
    await platform.client.cancel(task.id)
    expect(await faultsOfViewers(platform, [reader])).toEqual([])
  })

  test('and come back when the turn is over find the rest where it is stored', { timeout: 60_000 }, async () => {
    const { task } = await platform.client.createTask(scripted([repeat(count, say(0, word))], { input: 'go' }))
    const stalled = watch(task.id, { urls: [platform.url] })
    stalled.pause()
    // Stored is not yet announced, and until then a snapshot holds all of the turn. The other API reads the log when its first viewer comes.
    await until('its end is announced', async () => (await platform.log(task.id)).some(({ event }) => event.type === 'turn.finished'))
    stalled.resume()
    const late = watch(task.id, { urls: platform.urls.slice(1) })
    await Promise.all([stalled.ended, late.ended])
    const rows = await platform.client.messages(task.id)
    expect(rows[1]?.content.type === 'text' && rows[1].content.text === word.repeat(count)).toBe(true)
    // A message that is too long for a snapshot by itself is left out, and what is left out is said.
    expect([late.state().messagesFrom, late.state().messages.length]).toEqual([2, 0])
    const { messagesFrom } = stalled.state()
    expect([...rows.slice(0, messagesFrom), ...messagesOf(stalled.state())]).toEqual(rows)
    expect(stalled.frames().some(({ data }) => data.type === 'snapshot' && data.reason === 'slow')).toBe(true)
    expect(await faultsOfViewers(platform, [stalled, late])).toEqual([])
  })
})

/** A request whose response is never read. */
function openUnread(url: string): Promise<ClientRequest> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent: false, headers: { accept: 'text/event-stream' } }, () => resolve(sent))
    sent.on('error', reject).end()
  })
}

describe('a snapshot', () => {
  const long = 'x'.repeat(300_000)

  test('holds what fits of the turns that have ended, and all of the one that has not', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, long)], { input: '1' }))
    for (const input of ['2', '3', '4', '5']) await platform.client.addTurn(task.id, { input, params: { steps: [say(0, long)] } })
    await platform.client.waitForEnd(task.id)
    const rows = await platform.client.messages(task.id)
    expect(rows).toHaveLength(10)

    const [withLog, withoutLog] = [await joined(task.id, 0), await withoutItsLog(task.id, () => joined(task.id, 1))]
    for (const { snapshot } of [withLog, withoutLog]) {
      expect(snapshot.messagesFrom).toBe(4)
      expect(snapshot.messages).toEqual(rows.slice(4))
      expect(JSON.stringify(snapshot.messages).length).toBeLessThan(MiB)
      expect(snapshot.turns.map(({ number, status }) => [number, status])).toEqual([1, 2, 3, 4, 5].map(number => [number, 'completed']))
    }

    await platform.client.addTurn(task.id, { input: '6', params: { steps: [repeat(30, say(0, 'y'.repeat(60_000))), rest(600_000)] } })
    const running = await until('the sixth turn has spoken', async () => {
      const { snapshot, viewer } = await joined(task.id, 0, '')
      await viewer.stop()
      const last = snapshot.messages.at(-1)
      return last?.turn === 6 && last.content.type === 'text' && last.content.text.length === 1_800_000 && snapshot
    })
    expect(running.messages.filter(({ turn: turnNumber }) => turnNumber === 6)).toHaveLength(2)
    expect(running.messages.map(({ index }) => index)).toEqual(running.messages.map((_, i) => running.messagesFrom + i))
    expect(JSON.stringify(running.messages.filter(({ turn: turnNumber }) => turnNumber < 6)).length).toBeLessThan(MiB)
    // GET …/messages returns what a snapshot leaves out, and the messages of the running turn.
    const all = await platform.client.messages(task.id)
    expect(all.slice(running.messagesFrom)).toEqual(running.messages)
    expect(all.slice(0, 10)).toEqual(rows)
    await platform.client.cancel(task.id)
  })

  async function joined(task: string, api: number, query = '?follow=true'): Promise<{ snapshot: Snapshot; viewer: Viewer }> {
    const viewer = watch(task, { urls: [platform.urls[api] ?? ''], query })
    await viewer.until('gets its snapshot', ({ frames }) => frames().length > 0)
    onTestFinished(() => void viewer.stop())
    return { snapshot: viewer.frames()[0]?.data as Snapshot, viewer }
  }

  /** As if it had expired. */
  async function withoutItsLog<T>(task: string, use: () => Promise<T>): Promise<T> {
    await platform.redis.del(platform.keys.stream(task), platform.keys.state(task))
    return use()
  }
})

describe('an API that gets SIGTERM', () => {
  test('sends its viewers to another, where they miss nothing, and does not wait for viewers that do not read', {
    timeout: 90_000,
  }, async () => {
    const third = await platform.startApi()
    const { task } = await platform.client.createTask(scripted([repeat(200, say(0, 'word '), rest(20))], { input: 'go' }))
    const viewers = Array.from({ length: 120 }, () => watch(task.id, { urls: [third.url, platform.url] }))
    const stalled = watch(task.id, { urls: [third.url, platform.url] })
    stalled.pause()
    const deaf = connect({ port: Number(new URL(third.url).port), host: '127.0.0.1', allowHalfOpen: true })
    deaf.on('error', () => {})
    deaf.write(`GET /v1/tasks/${task.id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    onTestFinished(() => void deaf.destroy())
    await Promise.all(viewers.map(viewer => viewer.until('hears it', ({ text }) => text().length > 50)))

    const began = performance.now()
    const exit = third.kill('SIGTERM')
    // Some come while it stops.
    const late = Array.from({ length: 20 }, () => watch(task.id, { urls: [third.url, platform.url] }))
    expect(await exit).toEqual({ code: 0, signal: null })
    expect(performance.now() - began).toBeLessThan(10_000)
    stalled.resume()
    expect(await faultsOfViewers(platform, [...viewers, ...late, stalled])).toEqual([])
    for (const viewer of [...viewers, stalled]) expect(viewer.text()).toBe('word '.repeat(200))
    // Told when to come back, once more, before the end of the connection.
    for (const { journal } of viewers) expect(journal.connections[0]?.retries).toHaveLength(2)
    const delays = new Set(viewers.map(({ journal }) => journal.connections[0]?.retries[1]))
    expect(delays.size).toBeGreaterThan(60)
  })
})
