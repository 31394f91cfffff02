/** Reading and following logs, including logs with entries of other programs. */
import { type Event, formatCursor } from '@rivulet/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { finished, newTask, note, openLogs, queued, started } from '../../../test/support/platform/logs.ts'
import { decodeByteText, encodeByteText } from './byte-text.ts'
import { createChannels } from './channels.ts'
import { createLogSubscriber, encodeEvent, type Push, parsePush } from './event-log.ts'

const task = newTask()

describe('a push', () => {
  test('is parsed to the entries that were written', () => {
    const position = fc.tuple(fc.integer({ min: 1 }), fc.nat()).map(([epoch, seq]) => formatCursor(epoch, seq))
    const index = fc.option(fc.nat())
    const event = fc
      .oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }))
      .map((text): Event => note(task, text.toWellFormed()))
    fc.assert(
      fc.property(
        position,
        fc.array(fc.record({ cursor: position, index, event }), { minLength: 1, maxLength: 5 }),
        (previous, entries) => {
          const written = entries.map(({ event, ...place }) => ({ ...place, json: encodeByteText(encodeEvent(event).json) }))
          const lines = written.flatMap(({ cursor, json }) => [cursor, decodeByteText(json)])
          const message = [previous, '0-0', written.map(entry => entry.index ?? '').join(), ...lines].join('\n')
          expect(parsePush(task, Buffer.from(message))).toEqual({ task, previous, entries: written })
          // The version before pushes entries without indexes.
          const without = written.map(entry => ({ ...entry, index: undefined }))
          expect(parsePush(task, Buffer.from([previous, ...lines].join('\n')))).toEqual({ task, previous, entries: without })
        },
      ),
      { numRuns: 50 },
    )
  })

  test.each([
    '',
    'hello',
    '1',
    '1-',
    '-1',
    '1-12',
    '1-1\n1-23',
    '1-1x\n1-2\n{}',
    '1-1\nnot a cursor\n{}',
    '1-1\n0-0',
    '1-1\n0-0\n3',
    '\n\n\n',
    '1-1\n99999999999999999999-1\n{}',
  ])('that is malformed (%j) is ignored', message => {
    expect(parsePush(task, Buffer.from(message))).toBeNull()
  })
})

test('an encoded event carries the index of its message', () => {
  expect(encodeEvent({ type: 'message.finished', task, turn: 1, attempt: 1, at: 1, index: 7, status: 'complete' }).index).toBe(7)
  expect(encodeEvent(queued(task).event).index).toBeNull()
})

describe('reading', () => {
  test('begins at a cursor, inclusive, and returns at most the requested count', async () => {
    const logs = openLogs()
    const id = newTask()
    await logs.announcer.announce({ task: id, epoch: 1, running: false, entries: [1, 2, 3, 4].map(turnNumber => queued(id, turnNumber)) })
    const cursors = async (from: `${number}-${number}`, count: number) =>
      (await logs.reader.read(id, from, count)).map(({ cursor }) => cursor)
    expect(await cursors('0-0', 10)).toEqual(['1-1', '1-2', '1-3', '1-4'])
    expect(await cursors('1-2', 2)).toEqual(['1-2', '1-3'])
    expect(await cursors('1-9', 2)).toEqual([])
  })

  test('returns the index beside each entry, and none where its writer left it out', async () => {
    const logs = openLogs()
    const id = newTask()
    await logs.announcer.announce({ task: id, epoch: 1, running: true, entries: [queued(id), started(id, 1)] })
    const { heard: received } = await logs.listen(id)
    const events = [3, 4].map(
      (index): Event => ({ type: 'message.finished', task: id, turn: 1, attempt: 1, at: 1, index, status: 'complete' }),
    )
    await logs.writer.append([{ task: id, epoch: 1, first: 1, entries: events.map(encodeEvent) }])
    expect((await received(1))[0]?.entries.map(({ index }) => index)).toEqual([3, 4])
    await logs.redis.xadd(logs.keys.stream(id), '1-5', 'event', '{}')
    await logs.redis.xadd(logs.keys.stream(id), '1-6', 'index', 'x', 'event', '{}')
    const entries = await logs.reader.read(id, '0-0', 100)
    expect(entries.map(({ index }) => index)).toEqual([null, null, 3, 4, undefined, undefined])
  })

  test('returns entries of other programs without their content', async () => {
    const logs = openLogs()
    const id = newTask()
    await logs.announcer.announce({ task: id, epoch: 1, running: false, entries: [queued(id)] })
    for (const fields of [
      ['event', '{"half":'],
      ['nonsense', 'event'],
      ['a', 'b', 'c', 'd'],
      ['index', '0', 'event', '42'],
      ['event', ''],
    ])
      await logs.redis.xadd(logs.keys.stream(id), '*', ...fields)
    await logs.redis.xadd(logs.keys.stream(id), '18446744073709551615-1', 'event', '{}')
    const entries = await logs.reader.read(id, '0-0', 100)
    expect(entries.map(({ json }) => decodeByteText(json))).toEqual([expect.stringContaining('turn.queued'), '{"half":', '', '', '42', ''])
  })

  test('returns null for a log that does not exist', async () => {
    const logs = openLogs()
    expect(await logs.reader.state(newTask())).toBeNull()
    expect(await logs.reader.read(newTask(), '0-0', 10)).toEqual([])
  })
})

describe('a subscriber', () => {
  test('receives every push of a log once follow has resolved, and none of other logs', async () => {
    const logs = openLogs()
    const [followed, other] = [newTask(), newTask()]
    const received: Push[] = []
    const subscriber = createLogSubscriber({
      channels: createChannels(logs.connect()),
      keys: logs.keys,
      onPush: push => received.push(push),
      onRemoved: () => {},
      onReset: () => {},
    })
    await subscriber.follow(followed)
    for (const id of [other, followed]) await logs.announcer.announce({ task: id, epoch: 1, running: false, entries: [queued(id)] })
    await expect.poll(() => received.length).toBe(1)
    await subscriber.unfollow(followed)
    await logs.announcer.announce({ task: followed, entries: [finished(followed)] })
    await subscriber.follow(followed)
    await logs.announcer.announce({ task: followed, epoch: 2, running: true, entries: [started(followed, 2)] })
    await expect.poll(() => received.length).toBe(2)
    expect(received.map(({ task, previous }) => [task, previous])).toEqual([
      [followed, '0-0'],
      [followed, '1-2'],
    ])
  })

  test('calls onReset when pushes may have been lost, and receives pushes again from then on', async () => {
    const logs = openLogs()
    const id = newTask()
    const connection = logs.connect()
    const received: Push[] = []
    let resets = 0
    const subscriber = createLogSubscriber({
      channels: createChannels(connection),
      keys: logs.keys,
      onPush: push => received.push(push),
      onRemoved: () => {},
      onReset: () => (resets += 1),
    })
    await connection.client('SETNAME', id)
    await subscriber.follow(id)
    await logs.redis.client('KILL', 'ID', await clientIdOf(logs.redis, id))
    await expect.poll(() => resets).toBe(1)
    await logs.announcer.announce({ task: id, epoch: 1, running: false, entries: [queued(id)] })
    await expect.poll(() => received.length).toBe(1)
  })
})

/** The subscribed client of this name. Other tests subscribe to the same Redis meanwhile. */
async function clientIdOf(redis: ReturnType<typeof openLogs>['redis'], name: string): Promise<number> {
  const lines = String(await redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).split('\n')
  const [own, ...others] = lines.filter(line => line.includes(` name=${name} `))
  expect([own, others]).toEqual([expect.stringMatching(/^id=\d+ /), []])
  return Number(/^id=(\d+)/.exec(own ?? '')?.[1])
}
