import { createTurnComposer, delta, done, full, reasoning, start, text, toolRequest, type Update } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTranscript } from './transcript.ts'

const words = fc.string({ unit: fc.constantFrom('a', '\ud83c', '\udf0d', '\0', '', '{}'), maxLength: 4 })
const update: fc.Arbitrary<Update> = fc.oneof(
  fc.tuple(fc.nat(2), words).map(([index, text]) => delta(index, text)),
  fc.tuple(fc.nat(2), fc.nat(1), words).map(([index, part, text]) => delta(index, { type: 'reasoning_content', index: part, text })),
  fc.tuple(fc.nat(2), words).map(([index, text]) => delta(index, { type: 'tool_request', text })),
  fc.nat(2).map(index => start(index, index === 0 ? text() : index === 1 ? reasoning() : toolRequest('a', 'f'))),
  fc.nat(2).map(index => done(index)),
  fc.nat(2).map(index => full(index, 'whole')),
)

test('after any update, a transcript has the messages of a composer with the same updates, and rejects the same updates', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(update, fc.boolean()), { maxLength: 30 }), steps => {
      const transcript = createTranscript()
      const composer = createTurnComposer({ task: '', turn: 1, attempt: 1, firstIndex: 0 })
      for (const [given, isCompared] of steps) {
        expect(outcome(() => transcript.add(given))).toBe(outcome(() => void composer.compose(given)))
        if (isCompared) compare()
      }
      compare()

      function compare(): void {
        expect(transcript.messages()).toEqual(composer.messages().map(message => expect.objectContaining(pick(message))))
        expect(transcript.nextIndex()).toBe(composer.nextIndex())
      }
    }),
    { numRuns: 500 },
  )
})

test('a transcript rejects more text than a turn may hold, however small the pieces', () => {
  const transcript = createTranscript()
  const piece = delta(0, 'x'.repeat(10_000))
  expect(() => {
    for (let at = 0; at < 2_000; at += 1) transcript.add(piece)
  }).toThrow('at most 16777216 bytes')
  transcript.add(done(0, { status: 'failed' }))
  expect(transcript.messages()).toMatchObject([{ status: 'failed' }])
})

function outcome(act: () => void): string {
  try {
    act()
    return 'accepted'
  } catch (error) {
    return String(error)
  }
}

function pick({ index, content, status, error }: { index: number; content: unknown; status: string; error?: unknown }) {
  return { index, content, status, ...(error !== undefined && { error }) }
}
