/** Laws of the dialect of OpenAI's Responses: whatever an agent emits, and wherever a client joins, resumes or misses events. */
import { type Message, messagesOf, type Turn } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cursorOf, type Entry, replay, snapshotOf, stateOf, take, task } from '../../../../test/log-entries.ts'
import { readResponse } from '../../../../test/openai-reader.ts'
import { randomLog } from '../../../../test/random-log.ts'
import { outputOf } from './output-item.ts'
import { placeOfNumber } from './response-id.ts'
import { headOf, responseOf, storedResponse } from './response-object.ts'
import { openResponseStream, type ResponseChunk } from './response-stream.ts'
import { firstSegment } from './segment.ts'

const now = new Date(1).toISOString()
const about = { id: task, agent: 'a', status: 'completed' as const, params: null, metadata: {}, createdAt: now, updatedAt: now }
const head = headOf(about, { id: task, task, number: 1, status: 'queued', attempt: 0, queuedAt: now }, firstSegment)

const always = (law: (log: Entry[]) => Promise<void>, numRuns = 60) => fc.assert(fc.asyncProperty(randomLog, law), { numRuns })

test('from the start on, the reader has what is stored, and its numbers only grow', async () => {
  await always(async log => {
    const chunks = await listen(log)
    expectGrowth(chunks)
    expect(chunks[0]?.type).toBe('response.created')
    expect(readResponse(chunks)).toEqual(readResponse(bare(log)))
    expect(chunks.at(-1)?.response).toEqual(stored(log))
    expectSameItems(chunks, log)
  }, 300)
})

test('joined at any event by a snapshot, and with a gap anywhere', async () => {
  await always(async log => {
    for (let place = 1; place < log.length; place += 1) {
      const joined = await openResponseStream({ head, after: null })
      const first = joined.take(cursorOf(log, place), snapshotOf(log.slice(0, place), 'join'))
      const chunks = [...first, ...take(joined, log.slice(place))]
      expectGrowth(chunks)
      expect(readResponse(chunks)).toEqual(readResponse(bare(log)))
    }
    for (let place = 1; place < log.length - 2; place += 1) {
      const stream = await openResponseStream({ head, after: null })
      const before = take(stream, log.slice(0, place))
      const gap = stream.take(cursorOf(log, place + 2), snapshotOf(log.slice(0, place + 2), 'gap'))
      const chunks = [...before, ...gap, ...take(stream, log.slice(place + 2))]
      expectGrowth(chunks)
      expect(readResponse(chunks)).toEqual(readResponse(bare(log)))
    }
  }, 40)
})

test('resumed after any chunk, exactly the chunks after it come', async () => {
  await always(async log => {
    const whole = await listen(log)
    for (let cut = 1; cut < whole.length; cut += 1) {
      const after = whole[cut - 1]?.sequence_number ?? 0
      const { cursor, isAfterGap } = placeOfNumber(after)
      expect(isAfterGap).toBe(false)
      const place = log.findIndex(entry => entry.cursor === cursor) + 1
      const stream = await openResponseStream({ head, after, heard: replay(log.slice(0, place)) })
      const rest = [...stream.take(cursor, { type: 'caught_up', task }), ...take(stream, log.slice(place))]
      expect(rest).toEqual(whole.slice(cut))
      expect(stream.hasEnded()).toBe(true)
    }
  }, 60)
})

test('resumed where the log does not have the place any more, the final object comes, and nothing that was sent before', async () => {
  await always(async log => {
    const whole = await listen(log)
    for (let cut = 1; cut < whole.length; cut += 3) {
      const after = whole[cut - 1]?.sequence_number ?? 0
      const { cursor } = placeOfNumber(after)
      const place = Math.min(log.findIndex(entry => entry.cursor === cursor) + 2, log.length)
      const stream = await openResponseStream({ head, after })
      const rest = [...stream.take(cursorOf(log, place), snapshotOf(log.slice(0, place), 'gap')), ...take(stream, log.slice(place))]
      expect(rest.map(({ type }) => type)).toEqual([whole.at(-1)?.type])
      expect(rest[0]?.response).toEqual(stored(log))
      expect(rest[0]?.sequence_number).toBeGreaterThan(after)
      const reader = [...whole.slice(0, cut), ...rest]
      if (whole.at(-1)?.type === 'response.completed' && isFree(whole.slice(0, cut), rest)) readResponse(reader)
    }
  }, 20)
})

/** A reader that was cut inside an item of an attempt that was replaced cannot be told that the item is gone. */
function isFree(got: ResponseChunk[], rest: ResponseChunk[]): boolean {
  const open = new Set<unknown>()
  for (const { type, item } of got) {
    if (type === 'response.output_item.added') open.add((item as { id: string }).id)
    if (type === 'response.output_item.done') open.delete((item as { id: string }).id)
  }
  const { output = [] } = (rest.at(-1)?.response ?? {}) as { output?: { id: string }[] }
  return [...open].every(id => output.some(item => item.id === id))
}

async function listen(log: Entry[]): Promise<ResponseChunk[]> {
  return take(await openResponseStream({ head, after: null }), log)
}

function stored(log: Entry[]): object {
  const { messages, turn } = foldOf(log)
  return storedResponse(head, { ...turn, id: task, task, queuedAt: now }, messages)
}

/** The shortest stream there can be: created, and the final object. */
function bare(log: Entry[]): ResponseChunk[] {
  const { messages, turn } = foldOf(log)
  const response = responseOf(head, turn, outputOf(messages, { from: 0, to: null }, true))
  const type = response.status === 'cancelled' ? 'response.incomplete' : `response.${response.status}`
  return [
    { type: 'response.created', sequence_number: 0, response: responseOf(head, { status: 'queued' }, []) },
    { type, sequence_number: 1, response },
  ]
}

function foldOf(log: Entry[]): { messages: Message[]; turn: Omit<Turn, 'id' | 'task' | 'queuedAt'> } {
  const state = stateOf(log)
  const [turn] = state.turns
  if (!turn) throw new Error('There is no turn')
  return { messages: messagesOf(state), turn }
}

/** Each item is closed as it is stored, and its deltas are its text, but where the agent replaced a message. */
function expectSameItems(chunks: ResponseChunk[], log: Entry[]): void {
  if (log.some(({ event }) => event.type === 'message.replaced')) return
  const { output = [] } = (chunks.at(-1)?.response ?? {}) as { output?: { id: string; content?: { text: string }[] }[] }
  for (const item of output) {
    const done = chunks.filter(chunk => chunk.type === 'response.output_item.done' && (chunk.item as { id: string }).id === item.id)
    expect(done.map(chunk => chunk.item)).toEqual([item])
    const deltas = chunks.filter(chunk => chunk.item_id === item.id && /text\.delta$/.test(chunk.type) && !/summary/.test(chunk.type))
    const texts = item.content?.map((_, place) => deltas.flatMap(chunk => (chunk.content_index === place ? [chunk.delta] : [])).join(''))
    expect(texts).toEqual(item.content?.map(({ text }) => text))
  }
}

function expectGrowth(chunks: ResponseChunk[]): void {
  const numbers = chunks.map(chunk => chunk.sequence_number)
  expect(numbers.every((number, place) => Number.isSafeInteger(number) && number > (numbers[place - 1] ?? -1))).toBe(true)
}
