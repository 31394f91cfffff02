/**
 * A turn's end between its commit and its announcement, when Redis restarts or is wiped and the next turn is canceled or interrupted: the log that is
 * opened anew tells every turn that has ended, with what it wrote. On a real Postgres and a real Redis, with two hubs.
 */
import { createChannels, createLogSubscriber, decodeByteText, encodeEvent, type LogAnnouncer } from '@rivulet/broker'
import { createTaskBody } from '@rivulet/contract/tasks'
import { createTurnBody } from '@rivulet/contract/turns'
import type { Cursor, Event, EventOf, Message } from '@rivulet/protocol'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createTestDatabase } from '../../../test/support/engines/database.ts'
import { faultsIn } from '../../../test/support/judge/judge.ts'
import { twoContentsIn } from '../../../test/support/judge/one-content.ts'
import { openLogs } from '../../../test/support/platform/logs.ts'
import { until } from '../../../test/support/until.ts'
import type { Journal } from '../../../test/support/viewers/viewer.ts'
import { createListener, newConnection } from '../../../test/support/viewers/viewer-connection.ts'
import { claimWithShare } from '../test/give-share.ts'
import { createFiles } from './files/files.ts'
import { createSpilling } from './files/spill.ts'
import { type DatabaseHandle, openDatabase } from './store/connection/database.ts'
import { listMessages } from './store/reads/messages.ts'
import type { TurnRow } from './store/rows.ts'
import { createTaskAcceptance } from './store/tasks/accept/accept-tasks.ts'
import { createTurn } from './store/tasks/accept/create-turn.ts'
import { owedTurns } from './store/turns/announcements.ts'
import type { Claimed } from './store/turns/claimed.ts'
import { createHub } from './stream/hub.ts'
import { createStoredTasks } from './stream/snapshot.ts'
import { findPlace } from './stream/viewer/viewer-place.ts'
import { createMetrics } from './telemetry/metrics.ts'
import type { ChildTasks } from './turns/child-tasks.ts'
import { createTurnEnding } from './turns/ending/turn-ending.ts'
import { createTurnAnnouncing } from './turns/turn-announcing.ts'
import { createTurnUsage } from './turns/turn-usage.ts'

const tenant = 'default'
const logger = pino({ level: 'silent' })
const metrics = createMetrics()
const noChildren: ChildTasks = { spawn: async () => ({ result: 'superseded' }), ended: async () => {}, wake: async () => false }
let database: DatabaseHandle

beforeAll(async () => {
  const { url } = await createTestDatabase()
  database = openDatabase({ url, onError: () => {} })
  await database.db.execute("insert into agents values ('echo', '')")
})
afterAll(async () => {
  metrics.registry.clear()
  await database.close()
})

/** How far the end of turn 1 comes before its API is gone. */
const moments = ['committed', 'announced', 'noted'] as const
const losses = ['nothing', 'restart', 'wipe'] as const
const requests = ['cancel', 'interrupt', 'claim'] as const

describe.each(moments)('the end of a turn is %s', moment => {
  describe.each(losses)('Redis: %s', loss => {
    test.each(requests)('and then: %s', async request => {
      const scene = await openScene()
      const { task, first, next } = scene
      const early = scene.viewer()
      await early.come()
      await early.hears('where the task stands', ({ type }) => type === 'caught_up')

      await scene
        .ending(moment)
        .finish({ turn: first.turn, epoch: first.turn.epoch, claim: 'c', outcome: { status: 'completed' }, appended: 2 })
      await scene.lose(loss)
      const late = scene.viewer()
      await late.come()
      if (request === 'claim') await scene.speak(await scene.claim(next.id))
      else await scene.stop(request)
      await early.come()
      await scene.rest()
      await Promise.all([early, late].map(viewer => viewer.ended()))

      const { data: rows } = await listMessages(database.db, tenant, task, { limit: 100 }, 1_000_000)
      expect(textsOf(rows)).toContain('turn 1 wrote this')
      const isDisturbed = loss !== 'nothing'
      expect([early, late].flatMap(({ journal }) => faultsIn(journal, { rows, isDisturbed }))).toEqual([])
      expect(twoContentsIn([early.journal, late.journal])).toEqual([])
    })
  })
})

const unaudited = async () => {}

test('a turn that ended before its log knew of it is announced as queued and as finished by the next start', async () => {
  const { task, first, reader, ...scene } = await openScene()
  const { turn } = first
  await scene.ending('noted').finish({ turn, epoch: turn.epoch, claim: 'c', outcome: { status: 'completed' }, appended: 2 })
  await scene.ending('noted').cancel({ tenant }, task, {}, unaudited)
  await scene.queue('three')
  await scene.ending('committed').cancel({ tenant }, task, {}, unaudited)
  await scene.speak(await scene.claim((await scene.queue('four')).id))
  await scene.rest()
  const events = (await reader.read(task, '0-0', 100)).map(({ json }): Event => JSON.parse(decodeByteText(json)))
  const ofThird = events.filter(event => event.turn === 3).map(({ type }) => type)
  expect(ofThird).toEqual(['turn.queued', 'turn.finished'])
})

/** Turn 1 runs and has written its text, turn 2 waits. */
async function openScene() {
  const { db, databaseFor } = database
  const { redis, keys, reader, writer, announcer, connect } = openLogs()
  const announcing = createTurnAnnouncing({ db, reader, announcer, logger })
  const accepted = await createTaskAcceptance(databaseFor).accept(tenant, createTaskBody.parse({ agent: 'echo', input: 'one' }), null)
  const { task, turn } = accepted?.accepted ?? expect.fail('It was not accepted')
  await announcing.announceQueued(turn, true)
  const first = await claim(turn.id)
  await write(first, 'turn 1 wrote this')
  const next = await queue('two')
  await announcing.announceQueued(next, false)
  const hubs = [openHub(), openHub()]
  return { task: task.id, first, next, reader, ending: endingOf, lose, viewer, queue, claim, speak, stop, rest }

  async function queue(input: string): Promise<TurnRow> {
    return (await db.transaction(tx => createTurn(tx, { tenant }, task.id, createTurnBody.parse({ input }), 10))).turn
  }

  /** An API that is gone when an end has come so far. */
  function endingOf(moment: (typeof moments)[number]) {
    const lost = async (): Promise<never> => {
      throw new Error('The API is gone')
    }
    const failing: Record<typeof moment, LogAnnouncer['announce']> = {
      committed: lost,
      announced: announcement => announcer.announce(announcement).then(lost),
      noted: announcer.announce,
    }
    const spilling = createSpilling(createFiles({ db, databaseFor, stores: {}, store: 'postgres', logger }), logger)
    const own = { ...announcer, announce: failing[moment] }
    const usage = createTurnUsage({ db, prices: {}, metrics })
    const owing = createTurnAnnouncing({ db, reader, announcer: own, logger })
    return createTurnEnding({
      db,
      databaseFor,
      reader,
      announcer: own,
      announcing: owing,
      childTasks: noChildren,
      spilling,
      usage,
      logger,
      metrics,
    })
  }

  async function lose(loss: (typeof losses)[number]): Promise<void> {
    if (loss === 'wipe') await redis.del(keys.stream(task.id), keys.state(task.id))
    // What a restart leaves: everything, under the run id of the server before.
    const position = await redis.hget(keys.state(task.id), 'position')
    if (loss === 'restart' && position) await redis.hset(keys.state(task.id), 'position', position.replace(/\w+$/, 'f'.repeat(40)))
    for (const { reset } of hubs) reset()
  }

  async function claim(id: string): Promise<Claimed> {
    const claim = await claimWithShare(db, { turnId: id, claim: 'c', worker: 'w', leaseMs: 60_000 })
    if (claim.result !== 'claimed') return expect.fail(`It was not claimed: ${claim.result}`)
    return (await announcing.announceStart(claim.claimed)) ?? expect.fail('It was not started')
  }

  async function write({ turn: { number, epoch, firstIndex } }: Claimed, text: string): Promise<void> {
    const stamp = { task: task.id, turn: number, attempt: 1, at: 1, index: firstIndex }
    const started: EventOf<'message.started'> = {
      type: 'message.started',
      ...stamp,
      author: 'agent',
      content: { type: 'text', text: '', format: 'plain' },
    }
    const delta: EventOf<'message.delta'> = { type: 'message.delta', ...stamp, offset: 0, delta: { type: 'text', text } }
    expect(await writer.append([{ task: task.id, epoch, first: 1, entries: [started, delta].map(encodeEvent) }])).toEqual(['ok'])
  }

  async function speak(claimed: Claimed): Promise<void> {
    await write(claimed, 'turn 2 wrote this')
    await endingOf('noted').finish({
      turn: claimed.turn,
      epoch: claimed.turn.epoch,
      claim: 'c',
      outcome: { status: 'completed' },
      appended: 2,
    })
  }

  async function stop(how: 'cancel' | 'interrupt'): Promise<void> {
    const ending = endingOf('noted')
    if (how === 'cancel') return ending.cancel({ tenant }, task.id, {}, unaudited)
    const { begun, third } = await db.transaction(async tx => ({
      begun: await ending.beginInterrupt(tx, { tenant }, task.id, unaudited),
      third: (await createTurn(tx, { tenant }, task.id, createTurnBody.parse({ input: 'three' }), 10)).turn,
    }))
    await ending.completeInterrupt(begun)
    await announcing.announceQueued(third, false)
    await speak(await claim(third.id))
  }

  /** What the reconciler does. */
  async function rest(): Promise<void> {
    const owed: TurnRow[] = await owedTurns(db, { olderThanMs: -60_000, limit: 100 })
    for (const turn of owed.filter(({ task: of }) => of === task.id)) await announcing.announceOwed(turn)
  }

  function openHub() {
    const pushed = connect()
    let onReset = () => {}
    const hub = createHub({
      ...{ stored: createStoredTasks(databaseFor, 1_000_000), log: reader, metrics, onSnapshots: () => {} },
      onError: () => {},
      limits: { viewerBytes: 1_000_000, snapshotBytes: 1_000_000 },
      subscribe: handlers => {
        onReset = handlers.onReset
        return createLogSubscriber({ channels: createChannels(pushed), keys, ...handlers })
      },
    })
    onTestFinished(() => hub.close(0))
    return { hub, reset: () => onReset() }
  }

  /** Comes to one hub after the other, with its last cursor. */
  function viewer() {
    const journal: Journal = { task: task.id, connections: [] }
    let last: Cursor | null = null
    let isOver = false
    let leave = () => {}
    return { journal, come, hears, ended: () => hears('the end', () => isOver) }

    async function come(): Promise<void> {
      leave()
      const { hub } = hubs[journal.connections.length % 2] ?? expect.fail('There is no hub')
      const connection = newConnection('', last)
      journal.connections.push(connection)
      const listen = createListener(connection, frame => {
        last = frame.id
        if (frame.data.type === 'end') isOver = true
      })
      const place = await findPlace(hub, reader, { tenant, task: task.id }, { cursor: last, isFollowing: false })
      connection.status = place ? 200 : 204
      if (!place) isOver = true
      const response = {
        write: ({ plain }: { plain: Buffer }) => listen(plain.toString()) === undefined,
        end: () => {},
        destroy: () => {},
      }
      const watching = place && hub.watch(place.feed, response, { begin: place.begin, isFollowing: false })
      leave = () => {
        connection.isCut = true
        watching?.gone()
      }
    }

    async function hears(what: string, condition: (data: { type: string }) => boolean): Promise<void> {
      await until(
        `a viewer hears ${what}`,
        () => isOver || journal.connections.some(({ frames }) => frames.some(({ data }) => condition(data))),
      )
    }
  }
}

function textsOf(messages: readonly Message[]): string[] {
  return messages.flatMap(({ content }) => (content.type === 'text' ? [content.text] : []))
}
