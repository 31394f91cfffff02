import fc from 'fast-check'
import { expect, test } from 'vitest'
import { play } from '../../test/histories.ts'
import { composed, fold, overTheWire, statesOf } from '../../test/logs.ts'
import { taskPlans } from '../../test/plans.ts'
import type { Message } from '../entities/entities.ts'
import { delta, done } from '../events/update.ts'
import { digestOf } from './digest.ts'
import { messagesOf } from './task-fold.ts'

test('digests are equal exactly when index, status, content and metadata are equal', () => {
  fc.assert(
    fc.property(taskPlans, plans => {
      const { log, attempts } = play(plans)
      const seen = statesOf(log).map(state => ({ digest: digestOf(messagesOf(state)), what: whatCounts(messagesOf(state)) }))
      const pairs = new Set(seen.map(({ digest, what }) => `${digest} ${what}`))
      expect(pairs.size).toBe(new Set(seen.map(({ digest }) => digest)).size)
      expect(pairs.size).toBe(new Set(seen.map(({ what }) => what)).size)
      const stored = messagesOf(fold(overTheWire(log)))
      for (const { composer, firstIndex, isLast } of attempts) {
        const own = composer.messages()
        if (isLast) expect(digestOf(stored.slice(firstIndex, firstIndex + own.length))).toBe(digestOf(own))
      }
    }),
    { numRuns: 100 },
  )
})

test('a digest is sixteen hexadecimal digits; it changes with each of these fields but not with times', () => {
  const [message] = composed(delta(0, 'a'), done(0)).messages
  const digest = (change: Partial<Message>) => digestOf(message ? [{ ...message, ...change }] : [])
  expect(digest({})).toMatch(/^[0-9a-f]{16}$/)
  const changes: Partial<Message>[] = [
    { index: 1 },
    { status: 'failed' },
    { content: { type: 'text', text: 'b', format: 'plain' } },
    { metadata: { a: 1 } },
  ]
  expect(new Set([{}, ...changes].map(digest)).size).toBe(5)
  expect(digest({ createdAt: '2000-01-01T00:00:00.000Z', attempt: 9 })).toBe(digest({}))
  expect(digestOf([])).toMatch(/^[0-9a-f]{16}$/)
})

function whatCounts(messages: readonly Message[]): string {
  return JSON.stringify(messages.map(({ index, status, content, metadata }) => [index, status, content, metadata]))
}
