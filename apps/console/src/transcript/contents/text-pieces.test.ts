import fc from 'fast-check'
import { expect, test } from 'vitest'
import { growPieces, type Pieces } from './text-pieces.ts'

const all = ({ whole, last }: Pieces) => [...whole, last]

test('pieces are the whole text, the same however it came, and none is endless', () => {
  const line = fc.oneof(fc.constantFrom('word '.repeat(300), '', 'x'.repeat(20_000), 'a b', '😀'.repeat(9_000)))
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), fc.integer({ min: 500, max: 9_000 }), (lines, step) => {
      const source = lines.join('\n')
      let grown: Pieces | null = null
      for (let end = step; end < source.length; end += step) grown = growPieces(grown, source.slice(0, end))
      const pieces = all(growPieces(grown, source))
      expect(pieces).toEqual(all(growPieces(null, source)))
      expect(pieces.map(({ text }) => text).join('')).toBe(source)
      for (const { text } of pieces) expect(text.length).toBeLessThanOrEqual(16_385)
      for (const { text } of pieces) expect(text.isWellFormed()).toBe(true)
    }),
    { numRuns: 100 },
  )
})

test('a piece that is whole stays the same object', () => {
  const long = 'line\n'.repeat(5_000)
  const before = growPieces(null, long)
  const after = growPieces(before, `${long}more`)
  expect(after.whole.length).toBeGreaterThan(3)
  expect(before.whole.every((piece, place) => piece === after.whole[place])).toBe(true)
})
