/** The programs in the document about other protocols type-check with the SDKs that they are for. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { blocksOf } from '../support/texts/fenced-blocks.ts'
import { typeErrorsIn } from '../support/texts/type-errors.ts'

const page = readFileSync(new URL('../../docs/dialects.md', import.meta.url), 'utf8')

test('every program of docs/dialects.md type-checks', () => {
  const programs = blocksOf(page).filter(({ language }) => language === 'ts')
  expect(programs.length).toBeGreaterThan(3)
  expect(typeErrorsIn(programs, 'test/sdks')).toBe('')
  const [first = { language: 'ts', text: '' }] = programs
  expect(typeErrorsIn([{ ...first, text: first.text.replace('.responses.stream(', '.responses.shout(') }], 'test/sdks')).toContain('shout')
})
