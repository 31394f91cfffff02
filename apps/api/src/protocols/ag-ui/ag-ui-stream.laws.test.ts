/** Laws of the dialect of AG-UI: whatever an agent emits, and wherever a client joins, resumes or misses events. */
import { messagesOf } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cursorOf, type Entry, framesOf, replay, snapshotOf, stateOf, take, task } from '../../../../../test/support/logs/log-entries.ts'
import { randomLog } from '../../../../../test/support/logs/random-log.ts'
import { comparable, type ReadMessage, readRun, run, viewer } from '../../../test/ag-ui-reader.ts'
import { agUiMessages } from './ag-ui-message.ts'
import { openAgUiStream } from './ag-ui-stream.ts'
import type { AgUiChunk } from './sent-messages.ts'

const always = (law: (log: Entry[]) => Promise<void>, numRuns = 60) => fc.assert(fc.asyncProperty(randomLog, law), { numRuns })

test('from the start on, the reader has what is stored', async () => {
  await always(async log => {
    const chunks = take(await openAgUiStream(run, undefined), log)
    expect(comparable(readRun(chunks))).toEqual(comparable(stored(log)))
    expectOutcome(chunks, log)
  }, 300)
})

test('joined at any event by a snapshot, and with a gap anywhere', async () => {
  await always(async log => {
    for (let place = 1; place < log.length; place += 1) {
      const stream = await openAgUiStream(viewer, undefined)
      const first = stream.take(cursorOf(log, place), snapshotOf(log.slice(0, place), 'join'))
      expect(comparable(readRun([...first, ...take(stream, log.slice(place))]))).toEqual(comparable(stored(log)))
    }
    for (let place = 1; place < log.length - 2; place += 1) {
      const stream = await openAgUiStream(run, undefined)
      const before = take(stream, log.slice(0, place))
      const gap = stream.take(cursorOf(log, place + 2), snapshotOf(log.slice(0, place + 2), 'gap'))
      expect(comparable(readRun([...before, ...gap, ...take(stream, log.slice(place + 2))]))).toEqual(comparable(stored(log)))
    }
  }, 40)
})

test('cut after any chunk and resumed at the cursor it has, the reader has what is stored', async () => {
  await always(async log => {
    const frames = framesOf(await openAgUiStream(run, undefined), log)
    for (let cut = 1; cut < frames.length; cut += 1) {
      const got = frames.slice(0, cut)
      const had = readRun(
        got.map(({ chunk }) => chunk),
        [],
        true,
      )
      const cursor = got.findLast(({ id }) => id !== null)?.id
      const place = log.findIndex(entry => entry.cursor === cursor) + 1
      if (place === 0) continue
      const stream = await openAgUiStream({ ...viewer, isBack: true }, replay(log.slice(0, place)))
      const rest = [...take(stream, log.slice(place)), ...stream.take(cursorOf(log, log.length), { type: 'caught_up', task })]
      expect(comparable(readRun(rest, had))).toEqual(comparable(stored(log)))
    }
  })
})

test('a reader that comes back with everything gets the outcome again', async () => {
  await always(async log => {
    const stream = await openAgUiStream({ ...viewer, isBack: true }, replay(log))
    const chunks = stream.take(cursorOf(log, log.length), { type: 'caught_up', task })
    expect(comparable(readRun(chunks))).toEqual(comparable(stored(log)))
    expectOutcome(chunks, log)
  }, 20)
})

function expectOutcome(chunks: AgUiChunk[], log: Entry[]): void {
  const end = log.at(-1)?.event
  const last = chunks.at(-1)
  const outcomes = { completed: { type: 'success' }, canceled: { type: 'cancelled' }, failed: undefined }
  if (end?.type !== 'turn.finished') throw new Error('The log has no end')
  expect([last?.type, last?.outcome]).toEqual([end.status === 'failed' ? 'RUN_ERROR' : 'RUN_FINISHED', outcomes[end.status]])
}

function stored(log: Entry[]): ReadMessage[] {
  return agUiMessages(messagesOf(stateOf(log)))
}
