/** Laws of the dialect of OpenAI's Responses: whatever an agent emits, and wherever a client joins, resumes or misses events. */
import { compareCursors, type Event, type Message, messagesOf, origin, type Turn } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cursorOf, type Entry, logOf, replay, snapshotOf, stateOf, take, task } from '../../../../../../test/support/logs/log-entries.ts'
import { randomLog } from '../../../../../../test/support/logs/random-log.ts'
import { readResponse } from '../../../../test/openai-reader.ts'
import { outputOf } from './output-item.ts'
import { placeOfNumber } from './response-id.ts'
import { headOf, responseOf, storedResponse } from './response-object.ts'
import { openResponseStream, type ResponseChunk } from './response-stream.ts'
import { firstSegment } from './segment.ts'

const now = new Date(1).toISOString()
const about = { id: task, agent: 'a', status: 'completed' as const, params: null, metadata: {}, createdAt: now, updatedAt: now }
const head = headOf(about, { id: task, task, number: 1, status: 'queued', attempt: 0, queuedAt: now }, firstSegment)

const always = (law: (log: Entry[]) => Promise<void>, numRuns = 60) => fc.assert(fc.asyncProperty(randomLog, law), { numRuns })

test.each([false, true])(
  'from the start on, the reader has what is stored, and its numbers only grow (hidesRetries: %s)',
  async hidesRetries => {
    await always(async log => {
      const chunks = await listen(log, hidesRetries)
      expectGrowth(chunks)
      expect(chunks[0]?.type).toBe('response.created')
      expect(readResponse(chunks)).toEqual(readResponse(bare(log)))
      expect(chunks.at(-1)?.response).toEqual(stored(log))
      expectSameItems(chunks, log, hidesRetries)
    }, 300)
  },
)

test('without retries, the deltas of each item are its text, up to where a message was replaced', async () => {
  await always(async log => {
    const chunks = await listen(log)
    for (const item of closedItems(chunks).filter(({ type, status }) => type === 'message' && status === 'completed')) {
      const heard = deltasOf(chunks, item.id)
      const wasReplaced = log.some(({ event }) => event.type === 'message.replaced' && item.id.includes(`.${event.index}.`))
      if (!wasReplaced) expect(heard).toBe(item.content?.[0]?.text)
    }
  }, 100)
})

test('with hidesRetries, nothing of a later attempt comes before the end, and texts that it repeats come once', async () => {
  await always(async log => {
    const whole = repeated(log)
    const chunks = await listen(whole, true)
    const { messages } = foldOf(whole)
    const said = messages.flatMap(({ content }) => (content.type === 'text' ? [content.text] : []))
    const texts = chunks.filter(({ item_id: id }) => String(id).startsWith('msg_') && isText(messages, String(id)))
    const joined = texts.flatMap(({ type, delta }) => (type === 'response.output_text.delta' ? [delta] : []))
    expect(joined.join('')).toHaveLength(said.join('').length)
    expect([...joined.join('')].sort()).toEqual([...said.join('')].sort())
    const retry = whole.findLast(({ event }) => event.type === 'turn.started')?.cursor ?? origin
    const place = ({ sequence_number: number }: ResponseChunk) => compareCursors(placeOfNumber(number).cursor, retry)
    // The first attempt that says something is live.
    if (!chunks.some(chunk => place(chunk) < 0 && chunk.type === 'response.output_item.added')) return
    expect(new Set(chunks.filter(chunk => place(chunk) > 0).map(chunk => placeOfNumber(chunk.sequence_number).cursor)).size).toBe(1)
  }, 100)
})

test('with hidesRetries, the items of an attempt whose log is opened anew come at once', async () => {
  const ids = { task, turn: 1, at: 1, attempt: 1 }
  const started: Event = { type: 'turn.started', ...ids, firstIndex: 0 }
  const opened: Event = {
    type: 'message.started',
    ...ids,
    index: 0,
    author: 'agent',
    content: { type: 'text', text: 'a', format: 'plain' },
  }
  const grown: Event = { type: 'message.delta', ...ids, index: 0, offset: 1, delta: { type: 'text', text: 'b' } }
  const events: Event[] = [{ type: 'turn.queued', ...ids, attempt: 0 }, started, opened, started, opened, grown]
  const chunks = await listen(logOf(events), true)
  expect(chunks.flatMap(({ type, delta }) => (type === 'response.output_text.delta' ? [delta] : []))).toEqual(['a', 'b'])
})

test('with hidesRetries and a gap anywhere, nothing of a later attempt comes before the end either', async () => {
  await always(async log => {
    const whole = repeated(log)
    const retry = whole.findLastIndex(({ event }) => event.type === 'turn.started')
    for (let place = 1; place < whole.length - 2; place += 1) {
      const stream = await openResponseStream({ head, after: null, hidesRetries: true })
      const before = whole.slice(0, place).map(entry => take(stream, [entry]))
      const gap = stream.take(cursorOf(whole, place + 2), snapshotOf(whole.slice(0, place + 2), 'gap'))
      // The chunks of each entry; the snapshot stands for the last of those that it has.
      const chunks = [...before, [], gap, ...whole.slice(place + 2).map(entry => take(stream, [entry]))]
      // Where the gap has the retry, nothing shows how much of the first attempt was sent in it.
      const isSent = chunks.slice(0, Math.min(retry, place)).flat().some(isOutput)
      if (isSent) expect(chunks.slice(retry, -1).flat().filter(isOutput)).toEqual([])
      expect(readResponse(chunks.flat())).toEqual(readResponse(bare(whole)))
    }
  }, 60)
})

test.each([false, true])('joined at any event by a snapshot, and with a gap anywhere (hidesRetries: %s)', async hidesRetries => {
  await always(async log => {
    for (let place = 1; place < log.length; place += 1) {
      const joined = await openResponseStream({ head, after: null, hidesRetries })
      const first = joined.take(cursorOf(log, place), snapshotOf(log.slice(0, place), 'join'))
      const chunks = [...first, ...take(joined, log.slice(place))]
      expectGrowth(chunks)
      expect(readResponse(chunks)).toEqual(readResponse(bare(log)))
    }
    for (let place = 1; place < log.length - 2; place += 1) {
      const stream = await openResponseStream({ head, after: null, hidesRetries })
      const before = take(stream, log.slice(0, place))
      const gap = stream.take(cursorOf(log, place + 2), snapshotOf(log.slice(0, place + 2), 'gap'))
      const chunks = [...before, ...gap, ...take(stream, log.slice(place + 2))]
      expectGrowth(chunks)
      expect(readResponse(chunks)).toEqual(readResponse(bare(log)))
    }
  }, 40)
})

test.each([false, true])('resumed after any chunk, exactly the chunks after it come (hidesRetries: %s)', async hidesRetries => {
  await always(async log => {
    const whole = await listen(log, hidesRetries)
    for (let cut = 1; cut < whole.length; cut += 1) {
      const after = whole[cut - 1]?.sequence_number ?? 0
      const { cursor, isAfterGap } = placeOfNumber(after)
      expect(isAfterGap).toBe(false)
      const place = log.findIndex(entry => entry.cursor === cursor) + 1
      const stream = await openResponseStream({ head, after, hidesRetries, received: replay(log.slice(0, place)) })
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

/** Whether a chunk adds an item, or text to one. */
function isOutput({ type }: ResponseChunk): boolean {
  return type === 'response.output_item.added' || type.endsWith('.delta')
}

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

async function listen(log: Entry[], hidesRetries = false): Promise<ResponseChunk[]> {
  return take(await openResponseStream({ head, after: null, hidesRetries }), log)
}

/** The last attempt of a log without replaced messages, cut somewhere, and again as a further attempt. */
function repeated(log: Entry[]): Entry[] {
  const events = log.map(({ event }) => event)
  const begun = events.findLastIndex(({ type }) => type === 'turn.started')
  const attempt = events.slice(begun).filter(({ type }) => type !== 'message.replaced' && type !== 'turn.finished')
  const [queued, end] = [events[0], events.at(-1)]
  if (!queued || !end) throw new Error('There is no turn')
  const again = [...attempt, end].map(event => ({ ...event, attempt: 2 }) as Event)
  const first = attempt.slice(0, 1 + Math.floor(attempt.length / 2)).map(event => ({ ...event, attempt: 1 }) as Event)
  return logOf([queued, ...first, ...again])
}

type AnyItem = { id: string; type: string; status: string; content?: { text: string }[] }

function closedItems(chunks: ResponseChunk[]): AnyItem[] {
  return chunks.flatMap(({ type, item }) => (type === 'response.output_item.done' ? [item as AnyItem] : []))
}

function deltasOf(chunks: ResponseChunk[], id: string): string {
  return chunks.flatMap(({ type, item_id, delta }) => (item_id === id && type === 'response.output_text.delta' ? [delta] : [])).join('')
}

/** Data and media are messages of JSON, which come whole. */
function isText(messages: readonly Message[], id: string): boolean {
  return messages.some(({ index, content }) => content.type === 'text' && id.includes(`.${index}.`))
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
function expectSameItems(chunks: ResponseChunk[], log: Entry[], hidesRetries: boolean): void {
  if (log.some(({ event }) => event.type === 'message.replaced')) return
  const { output = [] } = (chunks.at(-1)?.response ?? {}) as { output?: { id: string; content?: { text: string }[] }[] }
  for (const item of output) {
    const done = chunks.filter(chunk => chunk.type === 'response.output_item.done' && (chunk.item as { id: string }).id === item.id)
    expect(done.map(chunk => chunk.item)).toEqual([item])
    const deltas = chunks.filter(chunk => chunk.item_id === item.id && /text\.delta$/.test(chunk.type) && !/summary/.test(chunk.type))
    const texts = item.content?.map((_, place) => deltas.flatMap(chunk => (chunk.content_index === place ? [chunk.delta] : [])).join(''))
    // What a failed attempt has told is not repeated.
    if (hidesRetries) expect(item.content?.every(({ text }, place) => text.endsWith(texts?.[place] ?? ''))).not.toBe(false)
    else expect(texts).toEqual(item.content?.map(({ text }) => text))
  }
}

function expectGrowth(chunks: ResponseChunk[]): void {
  const numbers = chunks.map(chunk => chunk.sequence_number)
  expect(numbers.every((number, place) => Number.isSafeInteger(number) && number > (numbers[place - 1] ?? -1))).toBe(true)
}
