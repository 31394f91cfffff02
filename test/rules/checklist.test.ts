/** test/checklist.md maps every item to tests that exist, or gives the reason why no test proves it. */
import { describe, expect, test } from 'vitest'
import { type Checklist, checklistFaults, readChecklist, titlesIn } from './checklist.ts'
import { filesUnder, readText } from './repository.ts'

const expected = [...Array.from({ length: 146 }, (_, i) => `${i + 1}`), ...Array.from({ length: 58 }, (_, i) => `B${i + 1}`)]
const files = ['packages', 'apps', 'test'].flatMap(filesUnder).filter(path => /\.test\.tsx?$/.test(path))
const titles = new Map(files.map(path => [path, titlesIn(path, readText(path))]))
const lines = readChecklist(readText('test/checklist.md'))

test('every item of this repository is mapped to tests that exist, or has a reason for having none', () => {
  expect(checklistFaults({ items: expected, lines, titles })).toEqual([])
})

test('only one item has no test', () => {
  expect(lines.flatMap(({ item, whyNot }) => (whyNot === null ? [] : [item]))).toHaveLength(1)
})

test('no title carries the number of an item', () => {
  const tagged = [...titles].flatMap(([path, texts]) =>
    [...texts].filter(text => /\[(item \d+|B\d+)\]/.test(text)).map(text => `${path}: ${text}`),
  )
  expect(tagged).toEqual([])
})

describe('it is a fault', () => {
  const fine: Checklist = {
    items: ['1', '2', 'B1'],
    lines: readChecklist(
      '| 1 | what | [a](../a.test.ts) › a \\| b |\n| 2 | what | no test: nothing to hold |\n| B1 | what | [b](flow/b.test.ts) › c<br>[a](../a.test.ts) › d |',
    ),
    titles: new Map([
      ['a.test.ts', new Set(['a | b', 'd'])],
      ['test/flow/b.test.ts', new Set(['c'])],
    ]),
  }

  test('to have none in a list that is fine', () => {
    expect(checklistFaults(fine)).toEqual([])
  })

  test.each([
    ['that an item has no line', { items: [...fine.items, '3'] }, '3 has no line'],
    ['that a line is about nothing', { items: ['1', '2'] }, 'B1 is no item'],
    ['that an item has two lines', { lines: [...fine.lines, ...readChecklist('| 1 | what | no test: again |')] }, '1 has two lines'],
    [
      'that a line has neither a test nor a reason',
      { lines: [...fine.lines.slice(1), ...readChecklist('| 1 | what | soon |')] },
      '1 has neither a test nor a reason',
    ],
    [
      'that a reason is empty',
      { lines: [...fine.lines.slice(1), ...readChecklist('| 1 | what | no test: |')] },
      '1 has neither a test nor a reason',
    ],
    [
      'that a file does not exist',
      { titles: new Map([['a.test.ts', new Set(['a | b', 'd'])]]) },
      'B1: there is no test "c" in test/flow/b.test.ts',
    ],
    [
      'that a file has no such test',
      { titles: new Map([...fine.titles, ['a.test.ts', new Set(['d'])]]) },
      '1: there is no test "a | b" in a.test.ts',
    ],
  ] satisfies [string, Partial<Checklist>, string][])('%s', (_, change, fault) => {
    expect(checklistFaults({ ...fine, ...change })).toContain(fault)
  })
})

test('a title is a text of a test that runs', () => {
  const source = "test('one', run)\ntest.each([['two', 1]])(`three`, run)\ntest.skip('four', run)\ntest.todo('five')\n// 'six'"
  expect([...titlesIn('a.test.ts', source)]).toEqual(['one', 'two', 'three'])
})
