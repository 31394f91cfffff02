/**
 * One life of a task before two real hubs, over a made-up Redis and Postgres whose replies come when the schedule decides. Pushes are lost, doubled,
 * delayed and swapped; logs lose their ends, expire and are trimmed; sockets fill up and break.
 */
import type { LogReader, LogSubscriber, Push } from '@rivulet/broker'
import type { Cursor, Message } from '@rivulet/protocol'
import { seededRandom } from '../../../test/support/agents/scripts.ts'
import { createTaskWorld, type TaskWorld } from '../../../test/support/judge/task-world.ts'
import type { Journal } from '../../../test/support/viewers/viewer.ts'
import { type Connection, createListener, newConnection } from '../../../test/support/viewers/viewer-connection.ts'
import { createHub, type HubDeps, type Watching } from '../src/stream/hub.ts'
import { respondToMany } from '../src/stream/many/many-response.ts'
import type { StoredTasks } from '../src/stream/snapshot.ts'
import { pieceOf } from '../src/stream/sse-frame.ts'
import { share } from '../src/stream/sse-response.ts'
import { findPlace } from '../src/stream/viewer/viewer-place.ts'
import type { Metrics } from '../src/telemetry/metrics.ts'

export type Disturbance = { isLossy: boolean }

type Played = { viewers: { journal: Journal; isDone: boolean }[]; messages: Message[] }

/** Plays one life of a task under one schedule, before two API processes. */
export async function playTask(metrics: Metrics, seed: number, { isLossy }: Disturbance): Promise<Played> {
  const random = seededRandom(seed)
  const pick = (below: number) => Math.floor(random() * below)
  const apis: FakeApi[] = []
  const world = createTaskWorld({ random, onPush: push => apis.map(({ publish }) => publish(push)) })
  apis.push(createFakeApi(world, metrics), createFakeApi(world, metrics))
  const viewers: FakeViewer[] = []
  const api = () => apis[pick(2)] as FakeApi
  // Pushes may reach one of them much later than the other.
  const share = random()
  const network = () => apis[random() < share ? 0 : 1] as FakeApi
  const viewer = () => viewers[pick(viewers.length)]
  const open: FakeApi['open'] = (cursor, response) => (random() < 0.3 ? api().openMany(cursor, response) : api().open(cursor, response))

  // A little of the task's life first: there is nothing to watch before it was created.
  world.step()
  let isAlive = true
  const live = () => {
    isAlive = world.step()
  }
  const actions: (() => unknown)[] = [
    ...[live, live],
    ...Array.from({ length: 6 }, () => () => api().redis.next()),
    ...Array.from({ length: 2 }, () => () => api().postgres.next()),
    // Pushes come in order, or do not; twice, or not at all.
    ...Array.from({ length: 4 }, () => () => network().deliver(0)),
    ...[() => network().deliver(pick(5)), () => network().repeat(), () => network().lose()],
    () => random() < 0.3 && api().reset(),
    () => viewers.length < 6 && viewers.push(createFakeViewer({ task: world.task.id, open, isFromStart: random() < 0.3 })),
    ...[() => viewer()?.come(), () => viewer()?.cut(), () => viewer()?.fill(), () => viewer()?.drain()],
    ...[() => viewer()?.comeBack(), () => viewer()?.comeBack()],
    ...(isLossy
      ? [
          () => random() < 0.15 && world.cut(1 + pick(5)),
          () => random() < 0.05 && world.empty(),
          () => random() < 0.1 && api().redis.fail(),
          () => random() < 0.1 && api().postgres.fail(),
        ]
      : []),
  ]
  for (let i = 0; i < 3_000 && isAlive; i += 1) {
    actions[pick(actions.length)]?.()
    await settle()
  }

  // Everything comes to rest: a viewer that was cut comes back, sockets drain, and the feeds compare themselves with their logs.
  for (let round = 0; round < 200 && !viewers.every(({ isDone }) => isDone()); round += 1) {
    for (const { drain, come } of viewers) {
      drain()
      come()
    }
    for (const { reset } of apis) reset()
    for (let i = 0; i < 20; i += 1) {
      for (const { redis, postgres } of apis) {
        redis.next()
        postgres.next()
      }
      await settle()
    }
  }
  await Promise.all(apis.map(({ close }) => close()))
  return { viewers: viewers.map(({ journal, isDone }) => ({ journal, isDone: isDone() })), messages: world.rows().messages }
}

type FakeApi = ReturnType<typeof createFakeApi>

/** A real hub; its Redis and its Postgres reply when the schedule says so, and pushes wait in its network. */
function createFakeApi(world: TaskWorld, metrics: Metrics) {
  const network: Push[] = []
  const redis = createPending()
  const postgres = createPending()
  const { id } = world.task
  let isFollowed = false
  let handlers: Parameters<HubDeps['subscribe']>[0] | undefined
  const log: LogReader = {
    state: () => redis.ask(() => world.log.state()),
    read: (_, from, count, to) => redis.ask(() => world.log.read(from, count, to)),
  }
  const stored: StoredTasks = {
    base: (_, __, turnNumber) =>
      postgres.ask(() => {
        const rows = world.rows()
        return { ...rows, upTo: Math.max(turnNumber, rows.turns.at(-1)?.number ?? 0) }
      }),
    version: () => postgres.ask(world.version),
  }
  const subscriber: LogSubscriber = {
    follow: () =>
      redis.ask(() => {
        isFollowed = true
      }),
    unfollow: async () => {},
  }
  const hub = createHub({
    ...{ stored, log, metrics, onError: () => {}, onSnapshots: () => {} },
    limits: { viewerBytes: 2_000, snapshotBytes: 1024 * 1024, ringBytes: 1_000 },
    subscribe: given => {
      handlers = given
      return subscriber
    },
  })
  return { redis, postgres, open, openMany, publish, deliver, repeat, lose, reset: () => handlers?.onReset(), close: () => hub.close(0) }

  async function open(cursor: Cursor | null, response: FakeResponse): Promise<Watching | null> {
    const place = await findPlace(hub, log, { tenant: 'default', task: id }, { cursor, isFollowing: false })
    return place && hub.watch(place.feed, response, { begin: place.begin, isFollowing: false })
  }

  /** The same on the response of a stream of several tasks, with its task taken from the ids again. */
  async function openMany(cursor: Cursor | null, response: FakeResponse): Promise<Watching | null> {
    const place = await findPlace(hub, log, { tenant: 'default', task: id }, { cursor, isFollowing: false })
    if (!place) return null
    const write: FakeResponse['write'] = ({ plain }) =>
      response.write(share([pieceOf(Buffer.from(plain.toString().replaceAll(`id: ${id}/`, 'id: ')))]))
    const many = respondToMany({ ...response, write }, 1, { isTagged: true, children: null })
    many.add(id, part => hub.watch(place.feed, part, { begin: place.begin, isFollowing: false }))
    return { ...many, sendToken: () => false }
  }

  function publish(push: Push): void {
    if (isFollowed) network.push(push)
  }

  function deliver(place: number): void {
    const [push] = network.splice(Math.min(place, network.length - 1), 1)
    if (push) handlers?.onPush(push)
  }

  function repeat(): void {
    if (network[0]) handlers?.onPush(network[0])
  }

  function lose(): void {
    network.shift()
  }
}

type FakeResponse = Parameters<ReturnType<typeof createHub>['watch']>[1]

type FakeViewer = Record<'come' | 'cut' | 'comeBack' | 'fill' | 'drain', () => void> & { journal: Journal; isDone(): boolean }

type Socket = { connection: Connection; listen: (text: string) => void; watching: Watching | null; buffered: string[] }

/** A client with a socket that can be full or break; it comes back with its last cursor. */
function createFakeViewer({ task, open, isFromStart }: { task: string; open: FakeApi['open']; isFromStart: boolean }): FakeViewer {
  const journal: Journal = { task, connections: [] }
  let last: Cursor | null = null
  let current: Socket | null = null
  let isFull = false
  let isDone = false
  return { journal, isDone: () => isDone, come, cut, comeBack, fill, drain }

  function come(): void {
    if (current || isDone) return
    const connection = newConnection(isFromStart ? '?from=start' : '', last)
    const listen = createListener(connection, frame => {
      last = frame.id
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

  function comeBack(): void {
    cut()
    come()
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
  const waiting: { resolve: () => void; fail: () => void }[] = []
  return { ask, next: () => waiting.shift()?.resolve(), fail: () => waiting.shift()?.fail() }

  function ask<T>(make: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      waiting.push({ resolve: () => resolve(make()), fail: () => reject(new Error('Connection is closed.')) })
    })
  }
}

async function settle(): Promise<void> {
  await new Promise(resolve => setImmediate(resolve))
}
