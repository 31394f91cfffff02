/** Every outcome of the append script, against a real Redis. */
import { describe, expect, test } from 'vitest'
import { newTask, notes, openLogs, queued, started } from '../../../test/support/platform/logs.ts'
import { decodeByteText } from './byte-text.ts'
import { encodeEvent, type LogEntry } from './event-log.ts'

type Logs = ReturnType<typeof openLogs>

/** A log in which a turn runs under epoch 2: it holds 1-1 and 2-1. */
async function openTurn({ announcer }: Logs, task = newTask()): Promise<string> {
  await announcer.announce({ task, epoch: 1, whole: true, running: false, entries: [queued(task)] })
  await announcer.announce({ task, epoch: 2, running: true, entries: [started(task, 2)] })
  return task
}

describe('an append', () => {
  test('gets the next cursors of its epoch, in order', async () => {
    const logs = openLogs()
    const task = await openTurn(logs)
    expect(await logs.writer.append([notes(task, 2, 1, 'a', 'b')])).toEqual(['ok'])
    expect(await logs.writer.append([notes(task, 2, 3, 'c')])).toEqual(['ok'])
    expect(await logs.ids(task)).toEqual(['1-1', '2-1', '2-2', '2-3', '2-4'])
    expect(await logs.reader.state(task)).toEqual({ cursor: '2-4', epoch: 2, number: 3, isWhole: true, isStale: false })
  })

  test('that is sent again is a duplicate and writes nothing', async () => {
    const logs = openLogs()
    const task = await openTurn(logs)
    const append = notes(task, 2, 1, 'a', 'b')
    expect(await logs.writer.append([append])).toEqual(['ok'])
    expect(await logs.writer.append([append])).toEqual(['duplicate'])
    expect(await logs.writer.append([notes(task, 2, 1, 'a')])).toEqual(['duplicate'])
    expect(await logs.ids(task)).toEqual(['1-1', '2-1', '2-2', '2-3'])
  })

  test('whose first entries are there already adds only the rest', async () => {
    const logs = openLogs()
    const task = await openTurn(logs)
    await logs.writer.append([notes(task, 2, 1, 'a', 'b')])
    expect(await logs.writer.append([notes(task, 2, 2, 'b', 'c', 'd')])).toEqual(['ok'])
    const entries = await logs.reader.read(task, '2-2', 100)
    expect(entries.map(({ cursor, json }) => [cursor, eventOf({ json }).data])).toEqual([
      ['2-2', 'a'],
      ['2-3', 'b'],
      ['2-4', 'c'],
      ['2-5', 'd'],
    ])
  })

  test('that names its last number stands for all of them, however many entries it has, and is written whole or not at all', async () => {
    const logs = openLogs()
    const task = await openTurn(logs)
    const numbered = (first: number, last: number, ...data: string[]) => ({ ...notes(task, 2, first, ...data), last })
    expect(await logs.writer.appendAt([numbered(1, 2, 'a', 'b', 'c')])).toEqual([{ result: 'ok', cursor: '2-4' }])
    expect(await logs.writer.append([numbered(3, 4)])).toEqual(['ok'])
    expect(await logs.reader.state(task)).toMatchObject({ cursor: '2-4', number: 4 })
    expect(await logs.writer.append([numbered(3, 4, 'd')])).toEqual(['duplicate'])
    expect(await logs.writer.append([numbered(4, 5, 'd', 'e')])).toEqual(['gap'])
    expect(await logs.writer.append([numbered(6, 6, 'd')])).toEqual(['gap'])
    expect(await logs.ids(task)).toEqual(['1-1', '2-1', '2-2', '2-3', '2-4'])
  })

  test('that skips a number is a gap and writes nothing', async () => {
    const logs = openLogs()
    const task = await openTurn(logs)
    expect(await logs.writer.append([notes(task, 2, 2, 'b')])).toEqual(['gap'])
    expect(await logs.ids(task)).toEqual(['1-1', '2-1'])
  })

  test('under an epoch above that of the log is a gap, because its claim was lost', async () => {
    const logs = openLogs()
    const task = await openTurn(logs)
    expect(await logs.writer.append([notes(task, 3, 1, 'a')])).toEqual(['gap'])
  })

  test('to a log that does not exist is missing', async () => {
    const logs = openLogs()
    const task = newTask()
    expect(await logs.writer.append([notes(task, 2, 1, 'a')])).toEqual(['missing'])
    expect(await logs.redis.exists(logs.keys.stream(task), logs.keys.state(task))).toBe(0)
  })

  test('under an older epoch is fenced, even when it would be a duplicate', async () => {
    const logs = openLogs()
    const task = await openTurn(logs)
    await logs.writer.append([notes(task, 2, 1, 'a')])
    await logs.announcer.announce({ task, epoch: 3, running: true, entries: [started(task, 3)] })
    expect(await logs.writer.append([notes(task, 2, 1, 'a')])).toEqual(['fenced'])
    expect(await logs.writer.append([notes(task, 2, 2, 'b')])).toEqual(['fenced'])
    expect(await logs.writer.append([notes(task, 3, 1, 'c')])).toEqual(['ok'])
    expect(await logs.ids(task)).toEqual(['1-1', '2-1', '2-2', '3-1', '3-2'])
  })

  test('after the end of its turn is rejected as closed', async () => {
    const logs = openLogs()
    const task = await openTurn(logs)
    await logs.announcer.announce({ task, epoch: 2, running: false, entries: [] })
    expect(await logs.writer.append([notes(task, 2, 1, 'late')])).toEqual(['closed'])
    expect(await logs.ids(task)).toEqual(['1-1', '2-1'])
  })

  test('to a log above its size limit is rejected as full; a new epoch counts from 0', async () => {
    const logs = openLogs({ maxBytes: 1_000 })
    const task = await openTurn(logs)
    const long = 'x'.repeat(600)
    expect(await logs.writer.append([notes(task, 2, 1, long, long)])).toEqual(['ok'])
    expect(await logs.writer.append([notes(task, 2, 3, 'more')])).toEqual(['full'])
    expect(await logs.writer.append([notes(task, 2, 1, long, long)])).toEqual(['duplicate'])
    await logs.announcer.announce({ task, epoch: 3, running: true, entries: [started(task, 3)] })
    expect(await logs.writer.append([notes(task, 3, 1, 'more')])).toEqual(['ok'])
  })

  test('to several logs in one call returns an outcome for each', async () => {
    const logs = openLogs()
    const [one, two, three] = [await openTurn(logs), newTask(), await openTurn(logs)]
    expect(
      await logs.writer.append([notes(one, 2, 1, 'a'), notes(two, 2, 1, 'b'), notes(three, 1, 1, 'c'), notes(one, 2, 2, 'd')]),
    ).toEqual(['ok', 'missing', 'fenced', 'ok'])
    expect((await logs.reader.state(one))?.number).toBe(2)
  })

  test.each(['\n', '\r'])('rejects an entry whose JSON has a line break (%j), because it could pass for another entry', async lineBreak => {
    const logs = openLogs()
    const [before, broken] = [await openTurn(logs), await openTurn(logs)]
    const { json } = encodeEvent({ type: 'custom', task: broken, turn: 1, attempt: 1, at: 1, name: 'a', data: 1 })
    const forged = {
      task: broken,
      epoch: 2,
      first: 1,
      entries: [
        { index: null, json },
        { index: null, json: `${json}${lineBreak}2-9${lineBreak}${json}` },
      ],
    }
    await expect(logs.writer.append([notes(before, 2, 1, 'a'), forged])).rejects.toThrow('an entry has a line break')
    expect((await logs.reader.state(before))?.number).toBe(1)
    expect((await logs.reader.state(broken))?.number).toBe(0)
    expect(await logs.writer.append([{ ...forged, entries: [{ index: null, json }] }])).toEqual(['ok'])
  })

  test('keeps every character, including line breaks in pushes', async () => {
    const logs = openLogs()
    const task = await openTurn(logs)
    const { heard: received } = await logs.listen(task)
    const text = 'line\nbreak \u2028 "quoted" \\ 😀'
    await logs.writer.append([notes(task, 2, 1, text)])
    const [push] = await received(1)
    expect(eventOf(push?.entries[0]).data).toBe(text)
    expect(eventOf((await logs.reader.read(task, '2-2', 1))[0]).data).toBe(text)
  })
})

test('each push carries the cursor before it, so that pushes follow each other without a gap', async () => {
  const logs = openLogs()
  const task = newTask()
  const { heard: received } = await logs.listen(task)
  await openTurn(logs, task)
  await logs.writer.append([notes(task, 2, 1, 'a', 'b')])
  await logs.writer.append([notes(task, 2, 2, 'b', 'c')])
  await logs.announcer.announce({ task, epoch: 3, running: true, entries: [started(task, 3)] })
  await logs.writer.append([notes(task, 3, 1, 'd')])
  const pushes = await received(6)
  expect(pushes.map(({ previous, entries }) => [previous, entries.map(({ cursor }) => cursor)])).toEqual([
    ['0-0', ['1-1']],
    ['1-1', ['2-1']],
    ['2-1', ['2-2', '2-3']],
    ['2-3', ['2-4']],
    ['2-4', ['3-1']],
    ['3-1', ['3-2']],
  ])
  const stored = await logs.reader.read(task, '0-0', 100)
  expect(pushes.flatMap(({ entries }) => entries)).toEqual(stored)
})

function eventOf(entry: Pick<LogEntry, 'json'> | undefined) {
  return JSON.parse(entry ? decodeByteText(entry.json) : 'null')
}
