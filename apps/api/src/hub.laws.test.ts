/**
 * Whatever order things happen in, every viewer ends with what is stored, and was told of every gap: a real hub over a made-up Redis and Postgres
 * whose answers come when the schedule says so. Pushes are lost, doubled, delayed and swapped; logs lose their ends, expire and are trimmed;
 * sockets fill up and break. A failing run prints its seed.
 */
import type { LogReader, LogSubscriber, Push } from '@rivulet/broker'
import type { Cursor } from '@rivulet/protocol'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { faultsIn, foldJournal } from '../../../test/support/judge.ts'
import { seededRandom } from '../../../test/support/scripts.ts'
import { createTaskWorld } from '../../../test/support/task-world.ts'
import { isLogged, type Journal } from '../../../test/support/viewer.ts'
import { type Connection, createListener, newConnection } from '../../../test/support/viewer-connection.ts'
import { createHub, type Watching } from './hub.ts'
import { createMetrics } from './metrics.ts'
import type { StoredTasks } from './snapshot.ts'
import { findPlace } from './viewer-place.ts'

const metrics = createMetrics()
afterAll(() => metrics.registry.clear())

type Disturbance = { isLossy: boolean }

test.each<[string, Disturbance]>([
  ['pushes are lost, doubled, delayed and swapped', { isLossy: false }],
  ['and logs lose their ends, or all of themselves', { isLossy: true }],
])('viewers who join, are cut, come back and fall behind at any moment end with what is stored, while %s', async (_, disturbance) => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 31 - 1 }), async seed => {
      expect(await play(seed, disturbance)).toEqual([])
    }),
    { numRuns: Number(process.env.RUNS ?? 400) },
  )
})

/** Plays one life of a task under one schedule; answers what was wrong. */
async function play(seed: number, { isLossy }: Disturbance): Promise<string[]> {
  const random = seededRandom(seed)
  const pick = (below: number) => Math.floor(random() * below)
  const network: Push[] = []
  const redis = createPending()
  const postgres = createPending()
  const world = createTaskWorld({ random, onPush: push => isFollowed && network.push(push) })
  let isFollowed = false
  let onPush: (push: Push) => void = () => {}
  let onReset: () => void = () => {}
  const { id } = world.task
  const log: LogReader = {
    state: () => redis.ask(() => world.log.state()),
    read: (_, from, count, to) => redis.ask(() => world.log.read(from, count, to)),
  }
  const stored: StoredTasks = {
    base: (_, turn) =>
      postgres.ask(() => {
        const { task, turns, messages } = world.rows()
        return { task, turns, messages, upTo: Math.max(turn, turns.at(-1)?.number ?? 0) }
      }),
    epoch: () => postgres.ask(() => world.rows().epoch),
  }
  const subscriber: LogSubscriber = {
    follow: () =>
      redis.ask(() => {
        isFollowed = true
      }),
    unfollow: async () => {},
  }
  const limits = { viewerBytes: 2_000, viewerStallMs: 30_000, snapshotBytes: 1024 * 1024 }
  const hub = createHub({
    ...{ stored, log, metrics, limits, onError: () => {}, onGap: () => {} },
    subscribe: handlers => {
      ;({ onPush, onReset } = handlers)
      return subscriber
    },
  })
  const viewers: FakeViewer[] = []
  const cursors: Cursor[] = ['0-0']

  // A little of the task's life first: there is nothing to watch before it was created.
  world.step()
  let isAlive = true
  const actions: (() => unknown)[] = [
    () => {
      isAlive = world.step()
    },
    () => {
      isAlive = world.step()
    },
    redis.next,
    redis.next,
    redis.next,
    postgres.next,
    () => deliver(0),
    () => deliver(0),
    () => deliver(pick(network.length)),
    () => network[0] && onPush(network[0]),
    () => network.shift(),
    () => viewers.length < 6 && viewers.push(createFakeViewer({ task: id, open, random, onCursor: cursor => cursors.push(cursor) })),
    () => viewers[pick(viewers.length)]?.come(),
    () => viewers[pick(viewers.length)]?.cut(),
    () => viewers[pick(viewers.length)]?.fill(),
    () => viewers[pick(viewers.length)]?.drain(),
    () => onReset(),
    ...(isLossy
      ? [
          () => random() < 0.15 && world.cut(1 + pick(5)),
          () => random() < 0.05 && world.empty(),
          () => random() < 0.1 && redis.fail(),
          () => random() < 0.1 && postgres.fail(),
        ]
      : []),
  ]
  for (let i = 0; i < 3_000 && isAlive; i += 1) {
    actions[pick(actions.length)]?.()
    await settle()
  }

  // Everything comes to rest: whoever was cut comes back, sockets drain, and the feeds compare themselves with their logs.
  for (let round = 0; round < 200 && !viewers.every(({ isDone }) => isDone()); round += 1) {
    for (const viewer of viewers) {
      viewer.drain()
      viewer.come()
    }
    onReset()
    for (let i = 0; i < 20; i += 1) {
      redis.next()
      postgres.next()
      await settle()
    }
  }
  await hub.close(0)
  return viewers.flatMap(({ journal, isDone }) => {
    // Some had heard the end before the next input came.
    const last = foldJournal(journal).state.turns.at(-1)?.number ?? 0
    const rows = world.rows().messages.filter(({ turn }) => turn <= last)
    return [...(isDone() ? [] : ['a viewer never came to an end']), ...faultsIn(journal, { rows, isDisturbed: isLossy })]
  })

  function deliver(place: number): void {
    const [push] = network.splice(place, 1)
    if (push) onPush(push)
  }

  async function open(cursor: Cursor | null, response: FakeResponse): Promise<Watching | null> {
    const place = await findPlace(hub, log, id, { cursor, isFollowing: false })
    return place && hub.watch(place.feed, response, { begin: place.begin, isFollowing: false })
  }
}

type FakeResponse = Parameters<ReturnType<typeof createHub>['watch']>[1]

type FakeViewer = { journal: Journal; isDone(): boolean; come(): void; cut(): void; fill(): void; drain(): void }

type Socket = { connection: Connection; listen: (text: string) => void; watching: Watching | null; buffered: string[] }

/** A client with a socket that can be full or break; it comes back with its last cursor. */
function createFakeViewer(deps: {
  task: string
  open: (cursor: Cursor | null, response: FakeResponse) => Promise<Watching | null>
  random: () => number
  onCursor: (cursor: Cursor) => void
}): FakeViewer {
  const { task, open, random, onCursor } = deps
  const journal: Journal = { task, connections: [] }
  const isFromStart = random() < 0.3
  let last: Cursor | null = null
  let current: Socket | null = null
  let isFull = false
  let isDone = false
  return { journal, isDone: () => isDone, come, cut, fill, drain }

  function come(): void {
    if (current || isDone) return
    const connection = newConnection(isFromStart ? '?from=start' : '', last)
    const listen = createListener(connection, frame => {
      last = frame.id
      if (isLogged(frame)) onCursor(frame.id)
      if (frame.data.type === 'end') isDone = true
    })
    const own: Socket = { connection, listen, watching: null, buffered: [] }
    current = own
    isFull = false
    journal.connections.push(connection)
    const response: FakeResponse = {
      write: ({ plain }) => {
        if (!isFull) listen(plain.toString())
        else own.buffered.push(plain.toString())
        return !isFull
      },
      unsentBytes: () => own.buffered.length,
      end: () => leave(own, listen),
      destroy: () => leave(own, () => {}),
    }
    open(last ?? (isFromStart ? '0-0' : null), response).then(
      watching => {
        connection.status = watching ? 200 : 204
        if (!watching) isDone = true
        own.watching = watching
        if (current !== own) watching?.gone()
      },
      () => {
        connection.status = 503
        if (current === own) current = null
      },
    )
  }

  /** What is buffered still arrives when the server ends the response, and does not when the connection breaks. */
  function leave(own: Socket, listen: (text: string) => void): void {
    for (const text of own.buffered.splice(0)) listen(text)
    if (current === own) current = null
    queueMicrotask(() => own.watching?.gone())
  }

  function cut(): void {
    if (!current) return
    current.connection.isCut = true
    leave(current, () => {})
  }

  function fill(): void {
    isFull = true
  }

  function drain(): void {
    if (!current || !isFull) return
    isFull = false
    for (const text of current.buffered.splice(0)) current.listen(text)
    current.watching?.drained()
  }
}

/** Questions that wait for their answer, which is made when it is given. */
function createPending() {
  const waiting: { answer: () => void; fail: () => void }[] = []
  return { ask, next: () => waiting.shift()?.answer(), fail: () => waiting.shift()?.fail() }

  function ask<T>(make: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      waiting.push({ answer: () => resolve(make()), fail: () => reject(new Error('Connection is closed.')) })
    })
  }
}

async function settle(): Promise<void> {
  await new Promise(resolve => setImmediate(resolve))
}
