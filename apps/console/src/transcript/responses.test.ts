import type { Message } from '@rivulet/client'
import { expect, test } from 'vitest'
import { factsOf } from './message-facts.ts'
import { beginsOf } from './responses.ts'

const message = (index: number, type: string, seconds: number, more: object = {}) =>
  ({
    ...{ index, turn: 1, attempt: 1, author: 'agent', content: { type } },
    ...{ createdAt: new Date(seconds * 1_000).toISOString(), ...more },
  }) as unknown as Message
const usage = { outputTokens: 2_200 }
const messages = [
  message(1, 'text', 1, { author: 'user' }),
  message(2, 'reasoning', 2),
  message(3, 'tool_request', 20, { usage }),
  message(4, 'tool_response', 30),
  message(5, 'reasoning', 40),
  message(6, 'text', 60, { usage }),
  message(7, 'text', 70),
]

test('a response begins with its reasoning, and its usage is on its last message', () => {
  expect([...beginsOf(messages, true)]).toEqual([
    [3, 2_000],
    [6, 40_000],
  ])
})

test('the rate is that of the whole response, not of its last message', () => {
  const last = { ...messages[5], finishedAt: new Date(62_000).toISOString(), response: { model: 'm-1' } } as Message
  const begins = beginsOf(messages, true)
  expect(factsOf(last, begins.get(6) ?? null).slice(1)).toEqual(['m-1', '2,200 tokens', '100 tokens/s'])
  expect(factsOf(last, null).slice(1)).toEqual(['m-1', '2,200 tokens'])
})

test('where a response began is not known if messages before it are not there', () => {
  expect([...beginsOf(messages.slice(2), false)]).toEqual([[6, 40_000]])
  expect([...beginsOf(messages.slice(5), false)]).toEqual([])
})
