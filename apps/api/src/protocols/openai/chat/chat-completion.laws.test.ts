/** Laws of chat completions: whatever an agent emits, the chunks are the text that is stored, or end with an error. */
import { type Event, messagesOf, type Turn } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { askingLog } from '../../../../../../test/support/logs/asking-log.ts'
import { cursorOf, type Entry, logOf, snapshotOf, stateOf, take, task } from '../../../../../../test/support/logs/log-entries.ts'
import { randomLog } from '../../../../../../test/support/logs/random-log.ts'
import { headOf } from '../responses/response-object.ts'
import { segmentAfter, segmentOf } from '../responses/segment.ts'
import { type ChatChunk, chatCompletion, openChatStream } from './chat-completion.ts'

const now = new Date(1).toISOString()
const about = { id: task, agent: 'a', status: 'completed' as const, params: null, metadata: {}, createdAt: now, updatedAt: now }

const always = (logs: fc.Arbitrary<Entry[]>, law: (log: Entry[]) => Promise<void>, numRuns: number) =>
  fc.assert(fc.asyncProperty(logs, law), { numRuns })

/** Every question is a call of a function of the client. */
const callingLog = askingLog.map(log =>
  log.map(({ cursor, event }) => {
    if (event.type !== 'turn.waiting') return { cursor, event }
    const asked: Event = { ...event, wait: { ...event.wait, kind: 'tool', tool: 'gps', arguments: { a: 1 } } }
    return { cursor, event: asked }
  }),
)

test('the chunks are the stored completion, or end with an error that says why: text was taken back, or the turn did not complete', async () => {
  await always(
    randomLog,
    async log => {
      const read = readChunks(await listen(log))
      const stored = choiceOf(log)
      switch (read.error?.message) {
        case undefined:
          expectStored(read, log)
          break
        case 'The agent begins again; its text so far does not count':
          expect([read.text !== '', isTriedAgain(log)]).toEqual([true, true])
          break
        case 'The agent replaced its text':
          expect(stored ?? expect.fail('The turn did not complete')).not.toMatchObject({ text: read.text })
          break
        default:
          expect(stored).toBeNull()
      }
    },
    200,
  )
})

test('a turn whose second attempt died before its `turn.started` ends with its own error', async () => {
  const ids = { task, turn: 1, at: 1 }
  const content = { type: 'text' as const, text: 'a', format: 'plain' as const }
  const error = { code: 'worker_lost', message: 'The worker was lost' }
  const events: Event[] = [
    { type: 'turn.queued', ...ids, attempt: 0 },
    { type: 'turn.started', ...ids, attempt: 1, firstIndex: 0 },
    { type: 'message.started', ...ids, attempt: 1, index: 0, author: 'agent', content },
    { type: 'turn.finished', ...ids, attempt: 2, status: 'failed', stopReason: 'error', error },
  ]
  const read = readChunks(await listen(logOf(events)))
  expect(read).toMatchObject({ text: 'a', error: { message: 'The worker was lost' } })
})

test('a gap anywhere ends the stream with an error only if a text was replaced or an attempt failed', async () => {
  await always(
    randomLog,
    async log => {
      const isCertain = !log.some(({ event }) => event.type === 'message.replaced') && !isTriedAgain(log)
      for (let place = 1; place < log.length - 2; place += 1) {
        const stream = await openChatStream(headFor(log), { includesUsage: false, hidesRetries: false })
        const before = take(stream, log.slice(0, place))
        const gap = stream.take(cursorOf(log, place + 2), snapshotOf(log.slice(0, place + 2), 'gap'))
        const read = readChunks([...before, ...gap, ...take(stream, log.slice(place + 2))])
        expect(stream.hasEnded()).toBe(true)
        if (!read.error || (isCertain && choiceOf(log))) expectStored(read, log)
      }
    },
    60,
  )
})

test('without retries, they are the stored completion of every turn that completes, also joined by a snapshot or with a gap anywhere', async () => {
  await always(
    randomLog,
    async log => {
      for (let place = 0; place < log.length; place += 1) {
        for (const known of new Set([0, Math.max(0, place - 2)])) {
          const stream = await openChatStream(headFor(log), { includesUsage: false, hidesRetries: true })
          const before = take(stream, log.slice(0, known))
          const gap = place === 0 ? [] : stream.take(cursorOf(log, place), snapshotOf(log.slice(0, place), 'gap'))
          const read = readChunks([...before, ...gap, ...take(stream, log.slice(place))])
          expect(stream.hasEnded()).toBe(true)
          const stored = choiceOf(log)
          if (stored) expect(read).toMatchObject(stored)
          else expect(read.error).toBeDefined()
        }
      }
    },
    60,
  )
})

test('a call of the client ends a completion, and the next one has what follows', async () => {
  await always(
    callingLog,
    async log => {
      const { waits = [] } = foldOf(log).turn
      const numbers = [1, ...new Set(waits.map(wait => segmentAfter(waits, wait)))]
      for (const number of numbers) {
        const stream = await openChatStream(headFor(log, number), { includesUsage: false, hidesRetries: true })
        const read = readChunks(take(stream, log))
        const stored = choiceOf(log, number)
        if (stored) expect(read).toMatchObject(stored)
        else expect(read.error).toBeDefined()
        expect(read.finish_reason === 'tool_calls').toBe(number !== numbers.at(-1))
      }
    },
    100,
  )
})

/** The reasoning, too, unless what the client had of it was replaced. */
function expectStored({ thought, ...read }: Read, log: Entry[]): void {
  const { thought: stored, ...certain } = choiceOf(log) ?? expect.fail('The turn did not complete')
  expect(read).toMatchObject(certain)
  if (!isRethought(log)) expect(thought).toBe(stored)
}

type Read = { text: string; thought: string; calls: object[]; finish_reason?: unknown; error?: { message: string } }

/** As OpenAI's SDK joins them. */
function readChunks(chunks: readonly ChatChunk[]): Read {
  const read: Read = { text: '', thought: '', calls: [] }
  for (const { choices, error } of chunks) {
    if (read.error !== undefined || read.finish_reason) throw new Error('A chunk comes after the end')
    if (error !== undefined) read.error = error as { message: string }
    const [choice] = (choices ?? []) as { delta: Partial<StoredChoice['message']>; finish_reason: unknown }[]
    read.text += choice?.delta.content ?? ''
    read.thought += choice?.delta.reasoning_content ?? ''
    read.calls.push(...(choice?.delta.tool_calls ?? []))
    if (choice?.finish_reason) read.finish_reason = choice.finish_reason
  }
  return read
}

/** Null for a turn that did not complete. */
function choiceOf(log: Entry[], number = 1): Read | null {
  const { turn, messages } = foldOf(log)
  const stored = chatCompletion(headFor(log, number), turn, messages) as { choices: StoredChoice[] } | null
  const [choice] = stored?.choices ?? []
  if (!choice) return null
  const { content, reasoning_content: thought = '', tool_calls: calls = [] } = choice.message
  return { text: content ?? '', thought, calls: calls.map((call, index) => ({ index, ...call })), finish_reason: choice.finish_reason }
}

type StoredChoice = { message: { content: string | null; reasoning_content?: string; tool_calls?: object[] }; finish_reason: string }

function isTriedAgain(log: Entry[]): boolean {
  return log.some(({ event }) => event.type === 'turn.started' && event.attempt > 1)
}

/** Whether an attempt failed, a message was replaced, or a part of a reasoning grew after a later one had begun. */
function isRethought(log: Entry[]): boolean {
  const last = new Map<number, number>()
  return log.some(({ event }) => {
    if (event.type === 'message.replaced' || (event.type === 'turn.started' && event.attempt > 1)) return true
    if (event.type !== 'message.delta') return false
    const { index, delta } = event
    if (delta.type !== 'reasoning_summary' && delta.type !== 'reasoning_content') return false
    const [before = 0, part] = [last.get(index), delta.index + (delta.type === 'reasoning_summary' ? 0 : 1_000)]
    last.set(index, Math.max(before, part))
    return part < before
  })
}

async function listen(log: Entry[]): Promise<ChatChunk[]> {
  return take(await openChatStream(headFor(log), { includesUsage: false, hidesRetries: false }), log)
}

function headFor(log: Entry[], number = 1) {
  const { turn } = foldOf(log)
  const segment = segmentOf(turn.waits, number)
  if (!segment) throw new Error('There is no such segment')
  return headOf(about, turn, segment)
}

function foldOf(log: Entry[]): { turn: Turn; messages: ReturnType<typeof messagesOf> } {
  const state = stateOf(log)
  const [turn] = state.turns
  if (!turn) throw new Error('There is no turn')
  return { turn: { ...turn, id: task, task, queuedAt: now }, messages: messagesOf(state) }
}
