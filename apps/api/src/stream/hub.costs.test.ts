/** A delta costs this process little, counted and not timed: it is not parsed, and encoded once, however many are watching, and asks Redis nothing. */
import { randomUUID } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { encodeByteText, type LogEntry, type LogReader, type LogSubscriber, messageIndexOf, type Push } from '@rivulet/broker'
import { type Cursor, type Event, formatCursor, origin } from '@rivulet/protocol'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import type { HubDeps } from './hub.ts'
import type { Shared } from './sse-response.ts'

const tenant = 'default'

vi.mock('./sse-frame.ts', { spy: true })
// Test files share their modules, and a hub that another file has loaded does not call the spy.
vi.resetModules()
const frames = await import('./sse-frame.ts')
const { createHub } = await import('./hub.ts')
// The next file in this process would get some modules with the spy and some without, and so two classes of one name.
afterAll(() => {
  vi.doUnmock('./sse-frame.ts')
  vi.resetModules()
})

test.each([1, 200])('a delta to %i viewers is not parsed, encoded once, and one write each', async viewerCount => {
  const { task, join, say, log, subscriber } = await openHub()
  const viewers = await Promise.all(Array.from({ length: viewerCount }, () => join()))
  await flush()
  const before = viewers.map(({ writes }) => writes())
  const asked = vi.mocked(log.state).mock.calls.length + vi.mocked(log.read).mock.calls.length
  vi.mocked(frames.encodeFrame).mockClear()
  const parse = vi.spyOn(JSON, 'parse')
  onTestFinished(() => void parse.mockRestore())
  for (let i = 0; i < 10; i += 1) say('word')
  await flush()
  expect(frames.encodeFrame).toHaveBeenCalledTimes(10)
  expect(parse).not.toHaveBeenCalled()
  // The deltas of one tick are one write.
  expect(viewers.map(({ writes }, i) => writes() - (before[i] ?? 0))).toEqual(Array(viewerCount).fill(1))
  expect(new Set(viewers.map(({ last }) => last())).size).toBe(1)
  expect(vi.mocked(log.state).mock.calls.length + vi.mocked(log.read).mock.calls.length).toBe(asked)
  expect(vi.mocked(subscriber.follow).mock.calls).toEqual([[task]])
})

test.each([1, 200])('%i viewers that join together and want everything cause one read and one framing', async viewerCount => {
  const { join, expectReadOnce } = await openLongLog()
  const viewers = await Promise.all(Array.from({ length: viewerCount }, () => join(origin)))
  await until('all have caught up', () => viewers.every(isCaughtUp))
  expectReadOnce()
})

test.each([1, 20])('%i viewers that join one after the other and want everything cause one read and one framing', async viewerCount => {
  const { join, expectReadOnce } = await openLongLog()
  for (let i = 0; i < viewerCount; i += 1) {
    const viewer = await join(origin)
    await until('it has caught up', () => isCaughtUp(viewer))
  }
  expectReadOnce()
})

test('two hundred viewers that join an unwatched task at once cause one query to Postgres', async () => {
  const { join, base } = await openHub()
  await Promise.all(Array.from({ length: 200 }, () => join()))
  expect(base).toHaveBeenCalledTimes(1)
})

test('a snapshot is encoded once and framed once: all viewers that get it share its bytes', async () => {
  const { join, say } = await openHub()
  const first = await join('snapshot')
  for (let i = 0; i < 100; i += 1) say('word '.repeat(2_000))
  await flush()
  vi.mocked(frames.encodeFrame).mockClear()
  const viewers = await Promise.all(Array.from({ length: 60 }, () => join('snapshot')))
  await flush()
  const snapshots = viewers.map(({ all }) => all().filter(({ plain }) => plain.includes('event: snapshot')))
  expect(snapshots.map(({ length }) => length)).toEqual(Array(60).fill(1))
  expect(new Set(snapshots.flat().map(({ chunked }) => chunked)).size).toBe(1)
  expect(snapshots[0]?.[0]?.plain.length).toBeGreaterThan(1_000_000)
  expect(vi.mocked(frames.encodeFrame).mock.calls.filter(([, type]) => type === 'snapshot')).toHaveLength(1)
  expect(first.writes()).toBeGreaterThan(0)
})

test('viewers that join while a turn streams, and do not read, share a snapshot while the events since are smaller than it', async () => {
  const { join, say } = await openHub()
  await join()
  for (let i = 0; i < 50; i += 1) say('word '.repeat(2_000))
  await flush()
  const viewers: Awaited<ReturnType<typeof join>>[] = []
  for (let i = 0; i < 60; i += 1) {
    viewers.push(await join('snapshot', false))
    await flush()
    say('word '.repeat(400))
    await flush()
  }
  const snapshots = viewers.flatMap(({ all }) => all().filter(({ plain }) => plain.includes('event: snapshot')))
  expect(snapshots).toHaveLength(60)
  expect(new Set(snapshots).size).toBe(1)
  // A viewer that reads does not wait long: the events since the snapshot follow at once.
  const reader = await join('snapshot')
  const received = Buffer.concat(reader.all().map(({ plain }) => plain)).toString()
  expect(received.match(/event: [\w.]+/g)).toEqual(['event: snapshot', ...Array(60).fill('event: message.delta'), 'event: caught_up'])
})

test('a viewer that is up to date takes less than four kilobytes, beside its socket', async () => {
  const { join, say } = await openHub()
  const first = await join()
  for (let i = 0; i < 100; i += 1) say('word')
  await flush()
  const before = heldBytes()
  const viewers = await Promise.all(Array.from({ length: 1_000 }, () => join()))
  // The notes of the test itself do not count.
  for (const viewer of viewers) viewer.forget()
  vi.clearAllMocks()
  const each = (heldBytes() - before) / viewers.length
  expect(first.writes()).toBeGreaterThan(0)
  expect(each).toBeLessThan(4_096)
})

/** Whatever it was sent since, such as a heartbeat. */
function isCaughtUp({ all }: { all(): Shared[] }): boolean {
  return all().some(({ plain }) => plain.includes('caught_up'))
}

/** A log of two thousand deltas, most of which are only in Redis any more. */
async function openLongLog() {
  const { join, say, log } = await openHub()
  await join()
  for (let i = 0; i < 2_000; i += 1) say('word')
  await flush()
  vi.mocked(log.read).mockClear()
  vi.mocked(frames.encodeFrame).mockClear()
  return { join, expectReadOnce }

  function expectReadOnce(): void {
    expect(vi.mocked(log.read).mock.calls.length).toBeLessThanOrEqual(4)
    expect(vi.mocked(frames.encodeFrame).mock.calls.length).toBeLessThanOrEqual(2_003)
  }
}

/** A hub on a log in memory, of a task whose agent is speaking. */
async function openHub() {
  const metrics = createMetrics()
  const task = randomUUID()
  const stamp = { task, turn: 1, attempt: 1, at: 1 }
  const entries: LogEntry[] = []
  let length = 0
  let onPush: (push: Push) => void = () => {}
  append({ type: 'turn.queued', ...stamp, attempt: 0 })
  append({ type: 'turn.started', ...stamp, firstIndex: 0 })
  append({ type: 'message.started', ...stamp, index: 0, author: 'agent', content: { type: 'text', text: '', format: 'plain' } })
  const log: LogReader = {
    state: vi.fn(async () => ({ cursor: position(), epoch: 1, number: entries.length, isWhole: true, isStale: false })),
    read: vi.fn(async (_, from, count, to) => entries.filter(({ cursor }) => isBetween(cursor, from, to)).slice(0, count)),
  }
  const subscriber = { follow: vi.fn(async () => {}), unfollow: vi.fn(async () => {}) } satisfies LogSubscriber
  const now = new Date(0).toISOString()
  const base = vi.fn(async () => ({
    task: { id: task, agent: 'a', status: 'running' as const, params: null, metadata: {}, createdAt: now, updatedAt: now },
    turns: [{ id: randomUUID(), task, number: 1, status: 'running' as const, attempt: 1, queuedAt: now }],
    ...{ messages: [], nextIndex: 0, starts: [], state: null, upTo: 1, epoch: 1 },
  }))
  const hub = createHub({
    ...{ log, metrics, onError: () => {}, onSnapshots: () => {} },
    limits: { viewerBytes: 1024 * 1024, snapshotBytes: 1024 * 1024 },
    stored: { base, version: async () => ({ epoch: 1, endCursor: null }) },
    subscribe: (handlers: Parameters<HubDeps['subscribe']>[0]) => {
      onPush = handlers.onPush
      return subscriber
    },
  })
  onTestFinished(async () => {
    await hub.close(0)
    metrics.registry.clear()
  })
  return { task, join, say, log, subscriber, base }

  /** After a cursor, by default where the feed stands; or from a snapshot on. */
  async function join(from?: Cursor | 'snapshot', reads = true) {
    let writes = 0
    let last: Shared | null = null
    let all: Shared[] = []
    const response = {
      write: (bytes: Shared) => {
        writes += 1
        last = bytes
        all.push(bytes)
        // When to come back is short enough for any socket.
        return reads || writes === 1
      },
      ...{ end: () => queueMicrotask(() => watching.gone()), destroy: () => {} },
    }
    const feed = await hub.open(tenant, task)
    const watching = hub.watch(feed, response, {
      begin:
        from === 'snapshot'
          ? { kind: 'snapshot', reason: 'join' }
          : { kind: 'after', cursor: from ?? feed.position(), loads: feed.loads() },
      isFollowing: true,
    })
    return { writes: () => writes, last: () => last, all: () => all, forget }

    function forget(): void {
      last = null
      all = []
    }
  }

  function say(text: string): void {
    const previous = position()
    const entry = append({ type: 'message.delta', ...stamp, index: 0, delta: { type: 'text', text }, offset: length })
    length += text.length
    onPush({ task, previous, entries: [entry] })
  }

  function append(event: Event): LogEntry {
    const entry = { cursor: formatCursor(1, entries.length + 1), index: messageIndexOf(event), json: encodeByteText(JSON.stringify(event)) }
    entries.push(entry)
    return entry
  }

  function position(): Cursor {
    return formatCursor(1, entries.length)
  }
}

function isBetween(cursor: Cursor, from: Cursor, to: Cursor | undefined): boolean {
  const seq = (at: Cursor) => Number(at.slice(at.indexOf('-') + 1))
  return seq(cursor) >= seq(from) && (to === undefined || seq(cursor) <= seq(to))
}

function heldBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

async function flush(): Promise<void> {
  await new Promise(resolve => setImmediate(resolve))
}
