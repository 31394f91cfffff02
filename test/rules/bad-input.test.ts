/** docs/bad-input.md has all its rows, each has its response, and each is shown: by requests that are sent, or by a file of tests that it links to. */
import { type ErrorRow, errorTable } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { badInputs } from '../support/texts/bad-inputs.ts'
import { rowsUnder } from './markdown-table.ts'
import { exists, readText } from './repository.ts'

const page = readText('docs/bad-input.md')
const rows = rowsUnder(page, '#').map(([number = '', , gets = '', shownBy = '']) => ({ number: Number(number), gets, shownBy }))
const filesIn = (cell: string) => Array.from(cell.matchAll(/\]\(\.\.\/([^)]+)\)/g), ([, path = '']) => path)
const repliesIn = (cell: string) =>
  Array.from(cell.matchAll(/\b([1-5]\d\d)(?: `([a-z_\d]+)`)?/g), ([, status, code]) => `${status} ${code ?? ''}`.trim())

test('the rows are numbered from 1, without a hole', () => {
  expect(rows.length).toBeGreaterThanOrEqual(50)
  expect(rows.map(({ number }) => number)).toEqual(rows.map((_, i) => i + 1))
})

describe.each(rows)('row $number', ({ number, gets, shownBy }) => {
  const sent = badInputs.filter(({ row }) => row === number)

  test('is shown by requests, or by files of tests that exist', () => {
    const files = filesIn(shownBy)
    expect(files.filter(path => !exists(path) || !path.endsWith('.test.ts'))).toEqual([])
    expect(shownBy.startsWith('requests')).toBe(sent.length > 0)
    expect(files.length > 0 || sent.length > 0 || /^none: \S/.test(shownBy)).toBe(true)
  })

  test('says what is answered', () => {
    const received = new Set(sent.map(({ status, code }) => `${status} ${code ?? ''}`.trim()))
    const told = repliesIn(gets)
    expect([...received].filter(reply => !told.includes(reply))).toEqual([])
    // Where requests are all there is, nothing else is promised.
    if (filesIn(shownBy).length === 0) expect(told.filter(reply => !received.has(reply))).toEqual([])
    for (const [status = '', code] of told.map(reply => reply.split(' ')))
      if (code) expect([code, statusOf(code)]).toEqual([code, Number(status)])
  })
})

test('every limit has a code that the table of errors has', () => {
  for (const [, , , beyond = ''] of rowsUnder(page, 'limit'))
    for (const [status = '', code] of repliesIn(beyond).map(reply => reply.split(' ')))
      expect([code, statusOf(code ?? '')]).toEqual([code, Number(status)])
})

function statusOf(code: string): number | undefined {
  return Object.entries<ErrorRow>(errorTable).find(([name]) => name === code)?.[1].status
}
