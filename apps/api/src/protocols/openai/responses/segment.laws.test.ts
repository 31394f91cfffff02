/** Laws of the segments of a turn as OpenAI's responses: whatever an agent emits, and wherever it asks for something. */
import { messagesOf, type Turn } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { askingLog } from '../../../../../../test/support/logs/asking-log.ts'
import { cursorOf, type Entry, replay, snapshotOf, stateOf, take, task } from '../../../../../../test/support/logs/log-entries.ts'
import { readResponse } from '../../../../test/openai-reader.ts'
import { outputOf } from './output-item.ts'
import { placeOfNumber } from './response-id.ts'
import { headOf, type OpenAiResponse, storedResponse } from './response-object.ts'
import { openResponseStream, type ResponseChunk } from './response-stream.ts'
import { segmentOf } from './segment.ts'

const now = new Date(1).toISOString()
const about = { id: task, agent: 'a', status: 'completed' as const, params: null, metadata: {}, createdAt: now, updatedAt: now }

const always = (law: (log: Entry[]) => Promise<void>, numRuns: number) => fc.assert(fc.asyncProperty(askingLog, law), { numRuns })

test('every segment is what is stored of it, and every item is in one of them', async () => {
  await always(async log => {
    const responses: OpenAiResponse[] = []
    for (const number of segmentsOf(log)) {
      const chunks = await listen(log, number)
      expect(readResponse(chunks)).toEqual(stored(log, number))
      responses.push(stored(log, number))
    }
    const { turn, messages } = foldOf(log)
    expect(turn.waits?.length).toBeGreaterThan(0)
    const said = responses.flatMap(({ output }) => output).filter(({ type }) => type !== 'mcp_approval_request')
    expect(said.map(({ id }) => id).sort()).toEqual(
      outputOf(messages, { from: 0, to: null }, true)
        .map(({ id }) => id)
        .sort(),
    )
    expect(responses.slice(0, -1).every(({ status }) => status === 'completed')).toBe(true)
  }, 60)
})

test('resumed after any chunk, exactly the chunks after it come; joined by a snapshot, the same response', async () => {
  await always(async log => {
    for (const number of segmentsOf(log)) {
      const whole = await listen(log, number)
      for (let cut = 1; cut < whole.length; cut += 1) {
        const after = whole[cut - 1]?.sequence_number ?? 0
        const { cursor } = placeOfNumber(after)
        const place = log.findIndex(entry => entry.cursor === cursor) + 1
        const stream = await openResponseStream({ head: headFor(log, number), after, received: replay(log.slice(0, place)) })
        const rest = [...stream.take(cursor, { type: 'caught_up', task }), ...take(stream, log.slice(place))]
        expect(rest).toEqual(whole.slice(cut))
      }
      for (let place = 1; place < log.length; place += 2) {
        const last = log[place - 1]?.event
        // The API writes questions that are asked together in one batch, so no snapshot stands between them.
        if (last?.type === 'turn.waiting' && last.more) continue
        const stream = await openResponseStream({ head: headFor(log, number), after: null })
        const first = stream.take(cursorOf(log, place), snapshotOf(log.slice(0, place), 'join'))
        expect(readResponse([...first, ...take(stream, log.slice(place))])).toEqual(stored(log, number))
      }
    }
  }, 15)
})

function segmentsOf(log: Entry[]): number[] {
  const { waits = [] } = foldOf(log).turn
  return [1, ...waits.map((_, place) => place + 2)].filter(number => segmentOf(waits, number) !== null)
}

function headFor(log: Entry[], number: number) {
  const { turn } = foldOf(log)
  const segment = segmentOf(turn.waits, number)
  if (!segment) throw new Error('There is no such segment')
  return headOf(about, turn, segment)
}

async function listen(log: Entry[], number: number): Promise<ResponseChunk[]> {
  return take(await openResponseStream({ head: headFor(log, number), after: null }), log)
}

function stored(log: Entry[], number: number): OpenAiResponse {
  const { turn, messages } = foldOf(log)
  return storedResponse(headFor(log, number), turn, messages)
}

function foldOf(log: Entry[]): { turn: Turn; messages: ReturnType<typeof messagesOf> } {
  const state = stateOf(log)
  const [turn] = state.turns
  if (!turn) throw new Error('There is no turn')
  return { turn: { ...turn, id: task, task, queuedAt: now }, messages: messagesOf(state) }
}
