/** docs/threat-model.md: every boundary of the picture has a row, and every row a test that exists. */
import { dirname, join } from 'node:path/posix'
import { expect, test } from 'vitest'
import { blocksOf } from '../support/texts/fenced-blocks.ts'
import { rowsUnder } from './markdown-table.ts'
import { exists, readText } from './repository.ts'

const path = 'docs/threat-model.md'
const page = readText(path)
const boundaries = rowsUnder(page, '#')

test('every boundary of the picture has its row, and no other row is there', () => {
  const drawn = blocksOf(page).flatMap(({ text }) => Array.from(text.matchAll(/\bB\d+\b/g), ([name]) => name))
  expect(drawn.length).toBeGreaterThan(5)
  expect(boundaries.map(([name]) => name).sort()).toEqual([...new Set(drawn)].sort())
})

test.each([...boundaries, ...rowsUnder(page, 'what')])('%s is held by tests that exist', (...cells) => {
  const tests = Array.from((cells.at(-1) ?? '').matchAll(/\]\(([^)]+)\)/g), ([, link = '']) => join(dirname(path), link))
  // Those of a browser are skipped on a machine without one.
  expect(tests.filter(file => !file.startsWith('test/browser/')).length).toBeGreaterThan(0)
  expect(tests.filter(file => !/\.test\.ts$/.test(file) || !exists(file))).toEqual([])
})

test('SECURITY.md and the security model lead to it', () => {
  expect(readText('SECURITY.md')).toContain('docs/threat-model.md')
  expect(readText('docs/security.md')).toContain('threat-model.md')
})
