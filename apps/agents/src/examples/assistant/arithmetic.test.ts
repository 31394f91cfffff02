import fc from 'fast-check'
import { expect, test } from 'vitest'
import { evaluate } from './arithmetic.ts'

test.each([
  ['2 * (3 + 4)', 14],
  ['2+3*4', 14],
  ['10 - 4 - 3', 3],
  ['2 ^ 3 ^ 2', 512],
  ['2 ** 10', 1024],
  ['-2 ^ 2', -4],
  ['2 ^ -1', 0.5],
  ['7 % 4', 3],
  ['12 ÷ 4 × 2 − 1', 5],
  ['0.1 + 0.2', 0.3],
  ['.5 * 4', 2],
  ['--3', 3],
])('%s is %s', (expression, result) => {
  expect(evaluate(expression)).toBe(result)
})

test.each([
  ['', 'Unexpected end of the expression'],
  ['2 +', 'Unexpected end of the expression'],
  ['2 3', 'Did not expect "3" there'],
  ['(2', 'Missing closing bracket'],
  ['1 / 0', 'not finite'],
  ['process.exit()', 'Did not expect "p" there'],
  ['('.repeat(201), 'at most 200'],
])('%s is refused: %s', (expression, reason) => {
  expect(() => evaluate(expression)).toThrow(reason)
})

test('for any input it returns a number or throws with a reason', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'0123456789.+-*/%^() x') }), expression => {
      try {
        expect(Number.isFinite(evaluate(expression))).toBe(true)
      } catch (error) {
        expect(error).toMatchObject({ message: expect.stringMatching(/expect|end of|closing|finite|characters/) })
      }
    }),
  )
})
