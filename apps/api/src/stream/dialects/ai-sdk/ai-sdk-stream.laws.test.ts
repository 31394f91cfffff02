/** Whatever an agent says, and wherever its reader comes, leaves or misses something: what the SDK has in the end is what is stored. */
import {
  applyEvent,
  type Content,
  createTurnComposer,
  data,
  delta,
  done,
  type Event,
  emptyState,
  formatCursor,
  full,
  media,
  messagesOf,
  type OutcomeStatus,
  reasoning,
  start,
  text,
  toolRequest,
  toolResponse,
  type Update,
} from '@rivulet/protocol'
import { toUiMessages, type UiChunk } from '@rivulet/views/ai-sdk'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Entry, heardOf, readChunks, snapshotOf, task } from '../../../../test/ui-reader.ts'
import { createAiSdkStream } from './ai-sdk-stream.ts'

const always = (law: (log: Entry[]) => void) => fc.assert(fc.property(randomLog, law), { numRuns: 60 })

test('from the start on, and from any event on', () => {
  always(log => {
    expect(partsOf(listen(log))).toEqual(storedParts(log))
    for (let place = 1; place < log.length; place += 1) {
      const [past, rest] = [log.slice(0, place), log.slice(place)]
      const stream = createAiSdkStream({ task })
      const joined = stream.take(past.at(-1)?.cursor ?? '0-0', snapshotOf(past, 'join'))
      expect(partsOf([...joined, ...rest.flatMap(({ cursor, event }) => stream.take(cursor, event))])).toEqual(storedParts(log))
    }
  })
})

test('resumed after any chunk', () => {
  always(log => {
    const said = framesOf(log)
    for (let cutAt = 1; cutAt < said.length; cutAt += 1) {
      const got = said.slice(0, cutAt)
      const cursor = got.findLast(({ id }) => id)?.id
      const place = log.findIndex(entry => entry.cursor === cursor) + 1
      if (place === 0) continue
      const rest = framesOf(log.slice(place), createAiSdkStream({ task, heard: heardOf(log.slice(0, place)) }))
      expect(partsOf([...got, ...rest].map(({ chunk }) => chunk))).toEqual(storedParts(log))
    }
  })
})

test('with a gap anywhere', () => {
  always(log => {
    for (let place = 1; place < log.length - 2; place += 1) {
      const stream = createAiSdkStream({ task })
      const head = log.slice(0, place).flatMap(({ cursor, event }) => stream.take(cursor, event))
      const gap = stream.take(log[place + 1]?.cursor ?? '0-0', snapshotOf(log.slice(0, place + 2), 'gap'))
      const rest = log.slice(place + 2).flatMap(({ cursor, event }) => stream.take(cursor, event))
      expect(partsOf([...head, ...gap, ...rest])).toEqual(storedParts(log))
    }
  })
})

function listen(log: Entry[]): UiChunk[] {
  return framesOf(log).map(({ chunk }) => chunk)
}

/** As on the wire: the cursor stands at the last chunk of an event. */
function framesOf(log: Entry[], stream = createAiSdkStream({ task })) {
  return log.flatMap(({ cursor, event }) => {
    const chunks = stream.take(cursor, event)
    return chunks.map((chunk, place) => ({ id: place === chunks.length - 1 ? cursor : null, chunk }))
  })
}

/** The order of parts is that in which they were heard of, which is not always that of the messages. */
function partsOf(chunks: UiChunk[]): string[] {
  return comparable(readChunks(chunks))
}

function storedParts(log: Entry[]): string[] {
  const state = log.reduce((known, { cursor, event }) => applyEvent(known, event, cursor), emptyState)
  return comparable(toUiMessages(messagesOf(state)).flatMap(({ parts }) => parts))
}

function comparable(parts: Record<string, unknown>[]): string[] {
  const named = parts.map(({ id: _, ...part }) => Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))))
  return named.map(part => JSON.stringify(part)).sort()
}

const choice = fc.record({ kind: fc.nat(15), place: fc.nat(5), words: fc.constantFrom('a', 'b', 'ab', 'abc', ' ') })
const ends = { completed: 'complete', canceled: 'aborted', failed: 'failed' } as const

/** One or two attempts at a turn, in which anything may happen that a worker's rules allow, and how it ends. */
const randomLog: fc.Arbitrary<Entry[]> = fc
  .tuple(
    fc.array(fc.array(choice, { maxLength: 14 }), { minLength: 1, maxLength: 2 }),
    fc.constantFrom<OutcomeStatus>('completed', 'canceled', 'failed'),
  )
  .map(([attempts, status]) => {
    const ids = { task, turn: 1, at: 1 }
    const events = attempts.flatMap((choices, place): Event[] => {
      const composer = createTurnComposer({ ...ids, attempt: place + 1, firstIndex: 0 }, { now: () => 1 })
      const said = choices.flatMap(({ kind, place: at, words }) => composer.compose(updateOf(kind, at, words, composer.messages())))
      const closed = composer.closeAll(place === attempts.length - 1 ? ends[status] : 'failed')
      return [{ type: 'turn.started', ...ids, attempt: place + 1, firstIndex: 0 }, ...said, ...closed]
    })
    const end: Event = { type: 'turn.finished', ...ids, attempt: attempts.length, status, stopReason: 'stop' }
    const queued: Event = { type: 'turn.queued', ...ids, attempt: 0 }
    return [queued, ...events, end].map((event, place) => ({ cursor: formatCursor(1, place + 1), event }))
  })

function updateOf(kind: number, place: number, words: string, messages: { index: number; status: string; content: Content }[]): Update {
  const open = messages.filter(({ status }) => status === 'streaming')
  const { index, content } = open[place % Math.max(open.length, 1)] ?? {}
  if (kind < 6 || index === undefined || !content) return start(messages.length, contentOf(kind, words), citing(words))
  if (kind === 6) return full(messages.length, contentOf(place, words))
  if (kind === 7) return full(index, content.type === 'text' ? text(content.text + words) : contentOf(place, words))
  if (kind === 8) return delta(index, { type: 'metadata', metadata: citing(words) })
  if (kind === 9) return done(index, place === 0 ? { status: 'aborted' } : {})
  return extension(index, content, kind, words)
}

function contentOf(kind: number, words: string): Content {
  const callId = words === ' ' ? '' : (words[0] ?? '')
  const kinds = [text(words), reasoning([words], []), toolRequest(callId, words), toolResponse(callId, words), data(), media('image/png')]
  return kinds[kind % kinds.length] ?? text(words)
}

function citing(words: string) {
  return { citations: Array.from(words, word => ({ url: `https://${word}.example` })) }
}

function extension(index: number, content: Content, kind: number, words: string): Update {
  switch (content.type) {
    case 'text':
      return delta(index, words)
    case 'reasoning':
      return delta(index, { type: kind % 2 ? 'reasoning_summary' : 'reasoning_content', index: kind % 3, text: words })
    case 'tool_request':
      return delta(index, { type: 'tool_request', text: content.raw ? '}' : '{' })
    case 'tool_response':
      return delta(index, typeof content.content === 'string' ? { type: 'tool_response', text: words } : { type: 'data', value: words })
    case 'data':
      return delta(index, kind % 2 && content.raw === undefined ? { type: 'data', value: words } : { type: 'data_json', text: '1' })
    case 'media':
      return delta(index, { type: 'media', bytes: 'AAEC' })
    default:
      return content satisfies never
  }
}
