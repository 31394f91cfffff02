/** What a worker says of its end is believed only as far as the log bears it out, whenever the log is lost. */
import { encodeByteText, type LogReader } from '@rivulet/broker'
import { type Event, formatCursor } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import type { TurnEndingDeps } from './turn-canceling.ts'
import { createTurnEnding } from './turn-ending.ts'

const task = '01890000-0000-7000-8000-000000000000'
const turn = { task, id: 'a turn', number: 1, attempt: 1, epoch: 2 }
const said: Event[] = [
  {
    type: 'message.started',
    task,
    turn: 1,
    attempt: 1,
    at: 1,
    index: 0,
    author: 'agent',
    content: { type: 'text', text: '', format: 'plain' },
  },
  { type: 'message.delta', task, turn: 1, attempt: 1, at: 1, index: 0, offset: 0, delta: { type: 'text', text: 'word' } },
  { type: 'message.finished', task, turn: 1, attempt: 1, at: 1, index: 0, status: 'complete' },
]

test.each([0, 1])('a log that is wiped after %i of the questions about it is a gap: nothing is committed', async questions => {
  expect(await finish(wipedAfter(questions), said.length)).toBe('gap')
})

test('so is one that has less than the worker appended', async () => {
  expect(await finish(wipedAfter(Number.POSITIVE_INFINITY), said.length + 1)).toBe('gap')
})

test('a log that holds everything is committed', async () => {
  await expect(finish(wipedAfter(Number.POSITIVE_INFINITY), said.length)).rejects.toThrow('commit')
})

function wipedAfter(questions: number): LogReader {
  let asked = 0
  const isThere = () => ++asked <= questions
  return {
    state: async () => {
      const cursor = formatCursor(turn.epoch, said.length)
      return isThere() ? { cursor, epoch: turn.epoch, number: said.length, isWhole: true, isStale: false } : null
    },
    read: async () =>
      isThere() ? said.map((event, i) => ({ cursor: formatCursor(turn.epoch, i + 1), json: encodeByteText(JSON.stringify(event)) })) : [],
  }
}

/** Only the log exists: a call to the database, to commit, fails. */
async function finish(reader: LogReader, appended: number): Promise<string> {
  const db = new Proxy(
    {},
    {
      get() {
        throw new Error('This would commit')
      },
    },
  )
  const spilling = { spill: async (_: string, messages: unknown[]) => ({ messages, spills: [] }) }
  const ending = createTurnEnding({ db, reader, spilling, usage: { fold: async () => {} } } as unknown as TurnEndingDeps)
  const request = { turn, epoch: turn.epoch, outcome: { status: 'completed' }, appended }
  return (await ending.finish(request as Parameters<typeof ending.finish>[0])).result
}
