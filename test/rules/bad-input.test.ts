/** docs/bad-input.md has all its rows, each says what it gets, and each is shown: by requests that are sent, or by a test that names the row. */
import { type ErrorRow, errorTable } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { badInputs } from '../support/texts/bad-inputs.ts'
import { rowsUnder } from './markdown-table.ts'
import { filesUnder, readText } from './repository.ts'

const page = readText('docs/bad-input.md')
const rows = rowsUnder(page, '#').map(([number = '', , gets = '', shownBy = '']) => ({ number: Number(number), gets, shownBy }))
const tests = ['packages', 'apps', 'test/flow'].flatMap(filesUnder).filter(path => path.endsWith('.test.ts'))
const naming = new Map(tests.map(path => [path, rowsNamedIn(readText(path))]))

function rowsNamedIn(source: string): number[] {
  const lines = source.split('\n').filter(line => !/\.(skip|todo)\(/.test(line))
  return lines.flatMap(line => Array.from(line.matchAll(/\[input (\d+)\]/g), ([, number]) => Number(number)))
}

const filesIn = (cell: string) => Array.from(cell.matchAll(/\]\(\.\.\/([^)]+)\)/g), ([, path = '']) => path)
const repliesIn = (cell: string) =>
  Array.from(cell.matchAll(/\b([1-5]\d\d)(?: `([a-z_\d]+)`)?/g), ([, status, code]) => `${status} ${code ?? ''}`.trim())

test('the rows are numbered from 1, without a hole', () => {
  expect(rows.length).toBeGreaterThanOrEqual(50)
  expect(rows.map(({ number }) => number)).toEqual(rows.map((_, i) => i + 1))
})

describe.each(rows)('row $number', ({ number, gets, shownBy }) => {
  const sent = badInputs.filter(({ row }) => row === number)

  test('is shown by the requests or by the tests that it says, and by all of those', () => {
    const shown = [...naming].flatMap(([path, numbers]) => (numbers.includes(number) ? [path] : []))
    expect(filesIn(shownBy).sort()).toEqual(shown.sort())
    expect(shownBy.startsWith('requests')).toBe(sent.length > 0)
    expect(shown.length > 0 || sent.length > 0 || /^none: \S/.test(shownBy)).toBe(true)
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

test('no test names a row that there is not', () => {
  expect([...naming.values()].flat().filter(number => number < 1 || number > rows.length)).toEqual([])
})

test('every limit has a code that the table of errors has', () => {
  for (const [, , , beyond = ''] of rowsUnder(page, 'limit'))
    for (const [status = '', code] of repliesIn(beyond).map(reply => reply.split(' ')))
      expect([code, statusOf(code ?? '')]).toEqual([code, Number(status)])
})

function statusOf(code: string): number | undefined {
  return Object.entries<ErrorRow>(errorTable).find(([name]) => name === code)?.[1].status
}
