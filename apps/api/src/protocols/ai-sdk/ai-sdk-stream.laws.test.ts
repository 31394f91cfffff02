/** Whatever an agent emits, and wherever its reader joins, resumes or misses events: what the SDK has in the end is what is stored. */
import { messagesOf } from '@rivulet/protocol'
import { toUiMessages, type UiChunk } from '@rivulet/views/ai-sdk'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Entry, framesOf, snapshotOf, stateOf, take, task } from '../../../../../test/support/logs/log-entries.ts'
import { randomLog } from '../../../../../test/support/logs/random-log.ts'
import { pastOf, readChunks } from '../../../test/ui-reader.ts'
import { createAiSdkStream } from './ai-sdk-stream.ts'

const always = (law: (log: Entry[]) => void) => fc.assert(fc.property(randomLog, law), { numRuns: 60 })

test('from the start on, and from any event on', () => {
  always(log => {
    expect(partsOf(take(createAiSdkStream({ task }), log))).toEqual(storedParts(log))
    for (let place = 1; place < log.length; place += 1) {
      const [past, rest] = [log.slice(0, place), log.slice(place)]
      const stream = createAiSdkStream({ task })
      const joined = stream.take(past.at(-1)?.cursor ?? '0-0', snapshotOf(past, 'join'))
      expect(partsOf([...joined, ...take(stream, rest)])).toEqual(storedParts(log))
    }
  })
})

test('resumed after any chunk', () => {
  always(log => {
    const said = framesOf(createAiSdkStream({ task }), log)
    for (let cutAt = 1; cutAt < said.length; cutAt += 1) {
      const got = said.slice(0, cutAt)
      const cursor = got.findLast(({ id }) => id)?.id
      const place = log.findIndex(entry => entry.cursor === cursor) + 1
      if (place === 0) continue
      const rest = framesOf(createAiSdkStream({ task, past: pastOf(log.slice(0, place)) }), log.slice(place))
      expect(partsOf([...got, ...rest].map(({ chunk }) => chunk))).toEqual(storedParts(log))
    }
  })
})

test('with a gap anywhere', () => {
  always(log => {
    for (let place = 1; place < log.length - 2; place += 1) {
      const stream = createAiSdkStream({ task })
      const head = take(stream, log.slice(0, place))
      const gap = stream.take(log[place + 1]?.cursor ?? '0-0', snapshotOf(log.slice(0, place + 2), 'gap'))
      const rest = take(stream, log.slice(place + 2))
      expect(partsOf([...head, ...gap, ...rest])).toEqual(storedParts(log))
    }
  })
})

/** The order of parts is that in which they were heard of, which is not always that of the messages. */
function partsOf(chunks: UiChunk[]): string[] {
  return comparable(readChunks(chunks))
}

function storedParts(log: Entry[]): string[] {
  return comparable(toUiMessages(messagesOf(stateOf(log))).flatMap(({ parts }) => parts))
}

function comparable(parts: Record<string, unknown>[]): string[] {
  const named = parts.map(({ id: _, ...part }) => Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))))
  return named.map(part => JSON.stringify(part)).sort()
}
