/** The hub does some things by the clock, and shares others among viewers. Its own clock is driven by hand; everything else is real. */
import type { LogReader, LogSubscriber, Push } from '@rivulet/broker'
import { type Cursor, compareCursors, formatCursor, hasEnded, origin, parseCursor, RivuletError } from '@rivulet/protocol'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { seededRandom } from '../../../../test/support/agents/scripts.ts'
import { createTaskWorld } from '../../../../test/support/judge/task-world.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createHub, type HubDeps } from './hub.ts'
import type { Shared, SseResponse } from './sse-response.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const tenant = 'default'
const passSeconds = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1_000)

describe('a feed', () => {
  test('is kept for half a minute after its last viewer, then dropped and no longer followed', async () => {
    const { join, subscriber, states } = await openHub()
    const viewer = await join()
    viewer.close()
    await passSeconds(20)
    const asked = states()
    ;(await join()).close()
    expect(states()).toBe(asked)
    expect(subscriber.follow).toHaveBeenCalledTimes(1)
    await passSeconds(32)
    expect(subscriber.unfollow).toHaveBeenCalledTimes(1)
    await join()
    expect(subscriber.follow).toHaveBeenCalledTimes(2)
  })

  test('that has received nothing for fifteen seconds asks, and finds what it has missed', async () => {
    const { join, loseNext, step } = await openHub()
    const viewer = await join()
    const before = viewer.written().length
    loseNext()
    step()
    await passSeconds(14)
    expect(
      viewer
        .written()
        .slice(before)
        .filter(text => text.includes('\nid:')),
    ).toEqual([])
    await passSeconds(3)
    expect(
      viewer
        .written()
        .slice(before)
        .filter(text => text.includes('\nid:')),
    ).toHaveLength(1)
  })

  test('whose task was removed sends its viewers away at once, with a reason, also those with a full socket', async () => {
    const { join, removed, hub, task } = await openHub()
    const [viewer, full] = [await join(), await join()]
    full.fill()
    removed()
    for (const { isEnded, written } of [viewer, full]) {
      expect(isEnded()).toBe(true)
      expect(written().at(-1)).toContain(`event: deleted\ndata: {"type":"deleted","task":"${task}"}`)
    }
    expect(hub.isRunning(tenant, task)).toBe(false)
  })

  test('and does so by itself when it received no notice', async () => {
    const { join, remove } = await openHub()
    const viewer = await join()
    remove()
    await passSeconds(17)
    expect(viewer.isEnded()).toBe(true)
    expect(viewer.written().at(-1)).toContain('event: deleted')
  })
})

test('entries of one tick are framed once and written once, the same bytes to every viewer that is up to date', async () => {
  const { join, step } = await openHub()
  const viewers = await Promise.all(Array.from({ length: 3 }, () => join()))
  const before = viewers.map(({ chunks }) => chunks.length)
  step()
  step()
  step()
  await flush()
  expect(viewers.map(({ chunks }, i) => chunks.length - (before[i] ?? 0))).toEqual([1, 1, 1])
  const [first, ...others] = viewers.map(({ chunks }) => chunks.at(-1))
  expect(first?.plain.toString().match(/^id: /gm)?.length).toBeGreaterThanOrEqual(3)
  for (const other of others) expect(other).toBe(first)
})

test('a viewer that joins while the log is read is sent no end before the real one', async () => {
  let tried = 0
  for (let seed = 1; seed <= 40; seed += 1) {
    for (let moment = 0; moment < 25; moment += 1) {
      const { hub, task, join, loseAll, reset, world, finish } = await openHub(seed)
      const feed = await hub.open(tenant, task)
      loseAll(true)
      // An end, and a turn after it, that the feed has to read together.
      while (world.rows().turns.length < 2 && world.step());
      const { turns } = world.rows()
      const hasMore = turns[0]?.status === 'completed' && turns[1]?.status === 'queued' && world.step()
      loseAll(false)
      if (!hasMore || world.log.state()?.cursor === feed.position()) break
      reset()
      for (let i = 0; i < moment; i += 1) await null
      const viewer = await join({ feed })
      await flush()
      expect([seed, moment, viewer.isEnded()]).toEqual([seed, moment, false])
      await finish()
      expect(viewer.isEnded()).toBe(true)
      tried += 1
    }
  }
  expect(tried).toBeGreaterThan(100)
})

test('where Redis has lost the end of a log, a new viewer receives every turn that has ended, also those that the log lacks altogether', async () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    for (const lost of [1, 2, 4, 8, 16, 32]) {
      const { join, world, finish } = await openHub(seed)
      await finish()
      world.cut(lost)
      const viewer = await join()
      await flush()
      const { turns, messages } = world.rows()
      const [snapshot] = viewer.written().flatMap(chunk => /^event: snapshot\ndata: (.*)$/m.exec(chunk)?.[1] ?? [])
      const shown = JSON.parse(snapshot ?? '{}') as { turns: unknown[]; messages: unknown[] }
      expect([seed, lost, shown.turns?.length, shown.messages?.length]).toEqual([seed, lost, turns.length, messages.length])
      expect(viewer.isEnded()).toBe(true)
    }
  }
})

test('and receives no end while a turn waits or runs, whatever Redis has lost of it', async () => {
  let tried = 0
  for (let seed = 1; seed <= 100; seed += 1) {
    for (const lost of [1, 2, 3]) {
      const { join, world, finish } = await openHub(seed)
      for (let i = 0; i < (seed * 7) % 40; i += 1) world.step()
      world.cut(lost)
      if (world.rows().turns.every(({ status }) => hasEnded(status))) continue
      const viewer = await join()
      await flush()
      expect([seed, lost, viewer.isEnded()]).toEqual([seed, lost, false])
      await finish()
      expect([seed, lost, viewer.isEnded()]).toEqual([seed, lost, true])
      tried += 1
    }
  }
  expect(tried).toBeGreaterThan(100)
})

test('a viewer with a cursor that no log had, behind a claim whose log is not open yet, gets no id that is lower than one before', async () => {
  let left = 0
  for (let seed = 1; seed <= 20; seed += 1) {
    const { join, world, finish } = await openHub(seed)
    const viewers = []
    world.empty()
    while (world.step() && !world.log.state()) {
      const viewer = await join({ clientCursor: formatCursor(world.rows().epoch, 5) })
      await flush()
      viewers.push(viewer)
    }
    await finish()
    for (const { written, isEnded } of viewers) {
      const ids = written().flatMap(text => Array.from(text.matchAll(/^id: (.*)$/gm), ([, id]) => parseCursor(id ?? '') ?? origin))
      expect(ids).toEqual(ids.toSorted(compareCursors))
      expect(isEnded()).toBe(true)
      left += written().some(text => text.includes('event: end')) ? 0 : 1
    }
  }
  expect(left).toBeGreaterThan(0)
})

test('and the lost entries are not requested again and again', async () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    for (const lost of [1, 2, 3, 6]) {
      const { join, world, reset, states, finish, loseAll } = await openHub(seed)
      const viewer = await join()
      for (let i = 0; i < (seed * 7) % 30; i += 1) world.step()
      world.cut(lost)
      // Entries while Redis is unavailable reach no viewer.
      loseAll(true)
      for (let i = 0; i < seed % 3; i += 1) world.step()
      loseAll(false)
      const before = states()
      for (let i = 0; i < 3; i += 1) {
        reset()
        await flush()
      }
      expect([seed, lost, states() - before < 30, viewer.isDestroyed()]).toEqual([seed, lost, true, false])
      await finish()
      reset()
      await flush()
      expect([seed, lost, viewer.isEnded()]).toEqual([seed, lost, true])
    }
  }
})

describe('a hub that closes', () => {
  test('sends every viewer its time to reconnect, ends its response, and cuts a viewer that does not read', async () => {
    const { hub, join } = await openHub()
    const polite = Array.from({ length: 3 }, () => join({ closesAtEnd: true }))
    const viewers = await Promise.all(polite)
    const deaf = await join()
    const closing = hub.close(60)
    vi.useRealTimers()
    await closing
    for (const viewer of [...viewers, deaf]) {
      expect(viewer.isEnded()).toBe(true)
      expect(viewer.written().at(-1)).toMatch(/^retry: \d{4}\n$/)
    }
    expect([...viewers, deaf].map(({ isDestroyed }) => isDestroyed())).toEqual([false, false, false, true])
  })

  test('ends the response of a viewer that was joining', async () => {
    const { hub, join } = await openHub()
    void hub.close(10)
    expect((await join()).isEnded()).toBe(true)
  })
})

test('a response that had to wait until its feed was gone is ended, so that its client comes back', async () => {
  const { hub, join, task } = await openHub()
  const feed = await hub.open(tenant, task)
  await passSeconds(60)
  const late = await join({ feed })
  expect([late.isEnded(), late.written()]).toEqual([true, []])
})

test('a feed is for the tenant of its task: another tenant does not find the task, loaded or not', async () => {
  const { hub, join, task } = await openHub()
  await join()
  expect([hub.isRunning(tenant, task), hub.isRunning('another-tenant', task)]).toEqual([true, false])
  await expect(hub.open('another-tenant', task)).rejects.toMatchObject({ code: 'task_not_found' })
})

async function openHub(seed = 4) {
  const metrics = createMetrics()
  onTestFinished(() => metrics.registry.clear())
  let handlers: Parameters<HubDeps['subscribe']>[0] | undefined
  let isLosing = false
  let isLosingAll = false
  let isRemoved = false
  const world = createTaskWorld({
    random: seededRandom(seed),
    onPush: (push: Push) => {
      if (!isLosing && !isLosingAll) handlers?.onPush(push)
      isLosing = false
    },
  })
  const { id: task } = world.task
  const state = vi.fn(async () => {
    if (state.mock.calls.length > 2_000) throw new Error('It is asked for ever')
    return isRemoved ? null : world.log.state()
  })
  const log: LogReader = { state, read: async (_, from, count, to) => world.log.read(from, count, to) }
  const subscriber = { follow: vi.fn(async () => {}), unfollow: vi.fn(async () => {}) } satisfies LogSubscriber
  const hub = createHub({
    ...{ log, metrics, onError: () => {}, onSnapshots: () => {} },
    limits: { viewerBytes: 1024 * 1024, snapshotBytes: 1024 * 1024 },
    stored: {
      base: async (_, __, turnNumber) => {
        if (isRemoved) throw new RivuletError('task_not_found', 'No such task')
        const rows = world.rows()
        return { ...rows, upTo: Math.max(turnNumber, rows.turns.at(-1)?.number ?? 0) }
      },
      version: async () => world.version(),
    },
    subscribe: given => {
      handlers = given
      return subscriber
    },
  })
  onTestFinished(async () => {
    vi.useRealTimers()
    await hub.close(0)
  })
  // Until its turn has begun.
  for (let i = 0; i < 4; i += 1) world.step()
  return {
    hub,
    task,
    world,
    metrics,
    join,
    step,
    finish,
    subscriber,
    states: () => state.mock.calls.length,
    loseNext,
    loseAll,
    reset,
    remove,
    removed: () => handlers?.onRemoved(task),
  }

  type Joining = { closesAtEnd?: boolean; feed?: Awaited<ReturnType<typeof hub.open>>; clientCursor?: Cursor }

  async function join({ closesAtEnd = false, feed, clientCursor }: Joining = {}) {
    const socket = createFakeSocket(() => closesAtEnd && watching.gone())
    const watched = feed ?? (await hub.open(tenant, task))
    if (clientCursor) await watched.check()
    const watching = hub.watch(watched, socket.response, {
      begin: clientCursor ? { kind: 'snapshot', reason: 'gap', clientCursor } : { kind: 'snapshot', reason: 'join' },
      isFollowing: false,
    })
    return { ...socket, close: watching.gone, hear }
  }

  /** The next event, for everyone. */
  async function hear(): Promise<void> {
    step()
    await flush()
  }

  function step(): void {
    const before = world.log.state()?.cursor
    while (world.log.state()?.cursor === before && world.step());
  }

  async function finish(): Promise<void> {
    while (world.step());
    await flush()
  }

  function loseNext(): void {
    isLosing = true
  }

  function loseAll(isLost: boolean): void {
    isLosingAll = isLost
  }

  function reset(): void {
    handlers?.onReset()
  }

  function remove(): void {
    isRemoved = true
  }
}

function createFakeSocket(onEnd: () => void) {
  const chunks: Shared[] = []
  let isFull = false
  let isEnded = false
  let isDestroyed = false
  const response: SseResponse = {
    write: bytes => {
      chunks.push(bytes)
      return !isFull
    },
    end: () => {
      isEnded = true
      queueMicrotask(onEnd)
    },
    destroy: () => {
      isDestroyed = true
    },
  }
  return {
    ...{ response, chunks, written: () => chunks.map(({ plain }) => plain.toString()) },
    ...{ isEnded: () => isEnded, isDestroyed: () => isDestroyed },
    fill: () => {
      isFull = true
    },
  }
}

async function flush(): Promise<void> {
  await new Promise(resolve => setImmediate(resolve))
}
