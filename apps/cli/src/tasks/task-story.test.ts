import type { MessageQuery, TaskEvent } from '@rivulet/client'
import { type Message, messagesOf, text } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { tellTask } from './task-story.ts'

const id = '0198c0de-0000-7000-8000-000000000001'
const at = '2026-01-01T00:00:00.000Z'
const stored = [0, 1, 2].map(
  (index): Message => ({
    ...{ task: id, index, turn: 1, attempt: 1, author: 'agent', content: text(`${index}`), metadata: {}, status: 'complete' },
    ...{ createdAt: at, finishedAt: at },
  }),
)

test.each([0, 1, 2, 3])('what a snapshot leaves out, the first %i messages, is read from those that are stored', async messagesFrom => {
  const asked: MessageQuery[] = []
  const snapshot: TaskEvent = {
    ...{ type: 'snapshot', reason: 'gap', cursor: '3-0', turns: [], messages: stored.slice(messagesFrom), messagesFrom },
    task: { id, agent: 'a', status: 'completed', params: null, metadata: {}, createdAt: at, updatedAt: at },
  }
  const task = { events: () => iterate([snapshot]), messages: pageOf }
  const told: Message[][] = []
  for await (const { state } of tellTask(task)) told.push(messagesOf(state))
  expect(told).toEqual([stored])
  // One a page, and none more than is needed.
  expect(asked).toHaveLength(messagesFrom)

  async function pageOf(query: MessageQuery = {}) {
    asked.push(query)
    const next = (query.after ?? -1) + 1
    return { data: stored.slice(next, next + 1), nextCursor: next < 2 ? next : null }
  }
})

async function* iterate(events: TaskEvent[]): AsyncGenerator<TaskEvent, void, void> {
  yield* events
}
