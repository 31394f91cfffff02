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

test('the composer takes a text of any number of deltas in two pieces, and once more before it is read in between', () => {
  let composed = 0
  const composer = createTurnComposer({ task: '', turn: 1, attempt: 1, firstIndex: 0 })
  const compose = (...given: Parameters<typeof composer.compose>) => {
    composed += 1
    return composer.compose(...given)
  }
  const transcript = createTranscript({ ...composer, compose })
  for (let at = 0; at < 100_000; at += 1) transcript.add(delta(0, 'word '))
  expect(composed).toBe(1)
  expect(transcript.messageAt(0)).toMatchObject({ content: { text: 'word '.repeat(100_000) } })
  expect(composed).toBe(2)
  for (let at = 0; at < 1_000; at += 1) transcript.add(delta(0, 'word '))
  transcript.add(done(0))
  expect(composed).toBe(4)
  expect(transcript.messageAt(0)).toMatchObject({ content: { text: 'word '.repeat(101_000) }, status: 'complete' })
})

test('a transcript has all text that it accepted, up to the limit of a turn', () => {
  const transcript = createTranscript()
  let accepted = 0
  const add = () => {
    for (; ; accepted += 1) transcript.add(delta(0, 'x'.repeat(9_999)))
  }
  expect(add).toThrow('at most 16777216 bytes')
  expect(transcript.messageAt(0)).toMatchObject({ content: { text: 'x'.repeat(accepted * 9_999) } })
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
