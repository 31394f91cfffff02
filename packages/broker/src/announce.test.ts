/** The server's announcements, against a real Redis: written once, in order, and never into the turn of another worker. */
import { describe, expect, test } from 'vitest'
import { finished, newTask, note, notes, openLogs, queued, started } from '../../../test/support/platform/logs.ts'
import { decodeByteText } from './byte-text.ts'
import { createChannels } from './channels.ts'
import { createLogAnnouncer, createLogSubscriber } from './event-log.ts'

describe('an announcement', () => {
  test('is written once, however many processes announce it at the same time', async () => {
    const logs = openLogs()
    const task = newTask()
    const { pushes, heard: received } = await logs.listen(task)
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, () => logs.announcer.announce({ task, epoch: 1, whole: true, running: false, entries: [queued(task)] })),
    )
    expect(new Set(outcomes.map(({ result, cursor }) => `${result} ${cursor}`))).toEqual(new Set(['ok 1-1']))
    const ends = await Promise.all(
      Array.from({ length: 50 }, () => logs.announcer.announce({ task, running: false, entries: [finished(task)] })),
    )
    expect(new Set(ends.map(({ result, cursor }) => `${result} ${cursor}`))).toEqual(new Set(['ok 1-2']))
    expect(await logs.ids(task)).toEqual(['1-1', '1-2'])
    await received(2)
    expect(pushes.map(({ previous }) => previous)).toEqual(['0-0', '1-1'])
  })

  test('of several entries adds those that are new', async () => {
    const logs = openLogs()
    const task = newTask()
    await logs.announcer.announce({ task, epoch: 1, running: false, entries: [queued(task)] })
    const { result, cursor } = await logs.announcer.announce({ task, entries: [queued(task), queued(task, 2)] })
    expect([result, cursor]).toEqual(['ok', '1-2'])
    expect((await logs.reader.read(task, '0-0', 10)).map(({ json }) => JSON.parse(decodeByteText(json)).turn)).toEqual([1, 2])
  })

  test('without an epoch does not open a log', async () => {
    const logs = openLogs()
    const task = newTask()
    expect(await logs.announcer.announce({ task, entries: [finished(task)] })).toEqual({ result: 'missing', cursor: '0-0' })
    expect(await logs.redis.exists(logs.keys.stream(task), logs.keys.state(task))).toBe(0)
  })

  test('about a turn whose end is in the log writes nothing', async () => {
    const logs = openLogs()
    const task = newTask()
    await logs.announcer.announce({ task, epoch: 2, running: false, entries: [finished(task)] })
    const closing = { key: 'closed:1:1:0', event: note(task) }
    expect(await logs.announcer.announce({ task, entries: [queued(task), closing] })).toEqual({ result: 'ok', cursor: '2-1' })
  })

  test('under an older epoch is fenced and writes nothing', async () => {
    const logs = openLogs()
    const task = newTask()
    await logs.announcer.announce({ task, epoch: 5, running: true, entries: [started(task, 5)] })
    expect(await logs.announcer.announce({ task, epoch: 4, running: true, entries: [started(task, 4)] })).toEqual({
      result: 'fenced',
      cursor: '5-1',
    })
    expect(await logs.ids(task)).toEqual(['5-1'])
  })

  test('under the current epoch of the log, as for a repeated claim, changes nothing', async () => {
    const logs = openLogs()
    const task = newTask()
    const claim = { task, epoch: 2, running: true, entries: [queued(task), started(task, 2)] }
    await logs.announcer.announce(claim)
    await logs.writer.append([notes(task, 2, 1, 'a')])
    expect(await logs.announcer.announce(claim)).toEqual({ result: 'ok', cursor: '2-3' })
    expect(await logs.writer.append([notes(task, 2, 2, 'b')])).toEqual(['ok'])
  })
})

describe('raising an epoch', () => {
  test('restarts the numbers of a worker, and keeps the entries of the log', async () => {
    const logs = openLogs()
    const task = newTask()
    await logs.announcer.announce({ task, epoch: 2, running: true, entries: [started(task, 2)] })
    await logs.writer.append([notes(task, 2, 1, 'a')])
    await logs.announcer.announce({ task, epoch: 7, running: true, entries: [started(task, 7)] })
    expect(await logs.writer.append([notes(task, 7, 1, 'b')])).toEqual(['ok'])
    expect(await logs.ids(task)).toEqual(['2-1', '2-2', '7-1', '7-2'])
  })

  test('without an entry leaves the cursor where it was, and the next push follows it', async () => {
    const logs = openLogs()
    const task = newTask()
    await logs.announcer.announce({ task, epoch: 2, running: true, entries: [started(task, 2)] })
    expect(await logs.announcer.announce({ task, epoch: 3, running: false, entries: [] })).toEqual({ result: 'ok', cursor: '2-1' })
    expect(await logs.reader.state(task)).toMatchObject({ cursor: '2-1', epoch: 3, number: 0 })
    const { heard: received } = await logs.listen(task)
    await logs.announcer.announce({ task, running: false, entries: [finished(task)] })
    expect((await received(1)).map(({ previous, entries }) => [previous, entries[0]?.cursor])).toEqual([['2-1', '3-1']])
  })

  test('keeps whether the log holds the whole history of the task', async () => {
    const logs = openLogs()
    const [whole, later] = [newTask(), newTask()]
    await logs.announcer.announce({ task: whole, epoch: 1, whole: true, running: false, entries: [queued(whole)] })
    await logs.announcer.announce({ task: whole, epoch: 2, whole: false, running: true, entries: [started(whole, 2)] })
    await logs.announcer.announce({ task: later, epoch: 9, running: true, entries: [started(later, 9)] })
    expect((await logs.reader.state(whole))?.isWhole).toBe(true)
    expect((await logs.reader.state(later))?.isWhole).toBe(false)
  })
})

describe('a late announcement of the end of a turn', () => {
  test('does not close the log of the next turn, which is running', async () => {
    const logs = openLogs()
    const task = newTask()
    await logs.announcer.announce({ task, epoch: 2, running: true, entries: [queued(task), started(task, 2)] })
    await logs.announcer.announce({ task, epoch: 3, running: true, entries: [queued(task, 2), started(task, 3, 2)] })
    expect((await logs.announcer.announce({ task, running: false, entries: [finished(task, 1)] })).result).toBe('ok')
    expect(await logs.writer.append([notes(task, 3, 1, 'still here')])).toEqual(['ok'])
    expect(await logs.redis.pttl(logs.keys.state(task))).toBe(-1)
  })

  test('closes the log when it is the end of the latest turn', async () => {
    const logs = openLogs()
    const task = newTask()
    await logs.announcer.announce({ task, epoch: 2, running: true, entries: [queued(task), started(task, 2)] })
    await logs.announcer.announce({ task, running: false, entries: [finished(task)] })
    expect(await logs.writer.append([notes(task, 2, 1, 'late')])).toEqual(['closed'])
  })
})

describe('retention', () => {
  test('a log without a running turn expires; one with a running turn stays', async () => {
    const logs = openLogs({ retentionMs: 300 })
    const [idle, busy] = [newTask(), newTask()]
    for (const task of [idle, busy])
      await logs.announcer.announce({ task, epoch: 2, running: true, entries: [queued(task), started(task, 2)] })
    await logs.announcer.announce({ task: idle, running: false, entries: [finished(idle)] })
    await expect.poll(() => logs.redis.exists(logs.keys.stream(idle), logs.keys.state(idle))).toBe(0)
    expect(await logs.redis.exists(logs.keys.stream(busy), logs.keys.state(busy))).toBe(2)
    expect(await logs.announcer.announce({ task: idle, entries: [queued(idle, 2)] })).toMatchObject({ result: 'missing' })
  })

  test('entries and keys of turns that ended long ago are trimmed when the log is raised', async () => {
    const logs = openLogs()
    const task = newTask()
    await logs.announcer.announce({ task, epoch: 1, whole: true, running: false, entries: [queued(task)] })
    await logs.announcer.announce({ task, epoch: 2, running: true, entries: [started(task, 2)] })
    await logs.writer.append([notes(task, 2, 1, 'old')])
    await logs.announcer.announce({ task, running: false, entries: [queued(task, 2), finished(task)] })
    const hasTurns = () => Promise.all([1, 2, 3].map(number => logs.reader.hasTurn(task, number)))
    expect(await hasTurns()).toEqual([true, true, false])
    const later = Date.now() + 2
    await expect.poll(() => Date.now()).toBeGreaterThan(later)
    const impatient = createLogAnnouncer({ ...logs, retentionMs: 1 })
    await impatient.announce({ task, epoch: 3, running: true, entries: [started(task, 3, 2)] })
    // The second turn was queued before the end of the first one and still waits, so that is announced again.
    expect(
      (await logs.reader.read(task, '0-0', 10)).map(({ cursor, json }) => [
        cursor,
        JSON.parse(decodeByteText(json)).type,
        JSON.parse(decodeByteText(json)).turn,
      ]),
    ).toEqual([
      ['3-1', 'turn.queued', 2],
      ['3-2', 'turn.started', 2],
    ])
    expect((await logs.reader.state(task))?.isWhole).toBe(false)
    expect(await hasTurns()).toEqual([false, true, false])
    expect((await logs.redis.hkeys(logs.keys.state(task))).filter(key => key.includes(':')).sort()).toEqual(['queued:2', 'started:3'])
  })

  test('a running turn keeps its start, even when a turn queued behind it ended long ago', async () => {
    const logs = openLogs()
    const task = newTask()
    await logs.announcer.announce({ task, epoch: 2, running: true, entries: [queued(task), started(task, 2)] })
    await logs.announcer.announce({ task, running: false, entries: [queued(task, 2), finished(task, 2)] })
    await logs.writer.append([notes(task, 2, 1, 'still here')])
    const later = Date.now() + 2
    await expect.poll(() => Date.now()).toBeGreaterThan(later)
    const impatient = createLogAnnouncer({ ...logs, retentionMs: 1 })
    for (const epoch of [3, 4]) await impatient.announce({ task, epoch, running: true, entries: [] })
    expect(await logs.ids(task)).toEqual(['2-1', '2-2', '2-3', '2-4', '2-5'])
  })

  test('the entries of a turn that ended a moment ago stay for late viewers', async () => {
    const logs = openLogs({ retentionMs: 60_000 })
    const task = newTask()
    await logs.announcer.announce({ task, epoch: 2, running: true, entries: [started(task, 2)] })
    await logs.announcer.announce({ task, running: false, entries: [finished(task)] })
    await logs.announcer.announce({ task, epoch: 3, running: true, entries: [started(task, 3, 2)] })
    expect(await logs.ids(task)).toEqual(['2-1', '2-2', '3-1'])
  })

  test('a removed log is missing, and its subscribers learn that the task is gone', async () => {
    const logs = openLogs()
    const task = newTask()
    const removed: string[] = []
    const handlers = { onPush: () => {}, onReset: () => {}, onRemoved: (gone: string) => removed.push(gone) }
    await createLogSubscriber({ channels: createChannels(logs.connect()), keys: logs.keys, ...handlers }).follow(task)
    await logs.announcer.announce({ task, epoch: 1, running: false, entries: [queued(task)] })
    await logs.announcer.remove(task)
    expect(await logs.reader.state(task)).toBeNull()
    expect(await logs.reader.read(task, '0-0', 10)).toEqual([])
    await expect.poll(() => removed).toEqual([task])
  })
})
