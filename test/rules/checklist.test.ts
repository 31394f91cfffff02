/** test/checklist.md and the tests agree: each item is proven where its line says, or its line says why no test proves it. */
import { describe, expect, test } from 'vitest'
import { type Checklist, checklistFaults, itemsNamedIn, readChecklist } from './checklist.ts'
import { filesUnder, readText } from './repository.ts'

const expected = [...Array.from({ length: 146 }, (_, i) => `${i + 1}`), ...Array.from({ length: 58 }, (_, i) => `B${i + 1}`)]

test('every item of this repository has a test that names it, or a reason for having none', () => {
  const tests = ['packages', 'apps', 'test'].flatMap(filesUnder).filter(path => /\.test\.tsx?$/.test(path) && path !== self)
  const named = new Map(tests.map(path => [path, itemsNamedIn(readText(path))]))
  expect(checklistFaults({ items: expected, lines: readChecklist(readText('test/checklist.md')), named })).toEqual([])
})

describe('it is a fault', () => {
  const fine: Checklist = {
    items: ['1', '2', 'B1'],
    lines: readChecklist(
      '| 1 | what | [a](../a.test.ts) |\n| 2 | what | no test: nothing to hold |\n| B1 | what | [b](flow/b.test.ts), [a](../a.test.ts) |',
    ),
    named: new Map([
      ['a.test.ts', ['1', 'B1']],
      ['test/flow/b.test.ts', ['B1']],
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
      'that a line says neither where nor why',
      { lines: [...fine.lines.slice(1), ...readChecklist('| 1 | what | soon |')] },
      '1 says neither where nor why',
    ],
    [
      'that a reason is empty',
      { lines: [...fine.lines.slice(1), ...readChecklist('| 1 | what | no test: |')] },
      '1 says neither where nor why',
    ],
    ['that a file is not there', { named: new Map([['a.test.ts', ['1', 'B1']]]) }, 'B1 is not named in test/flow/b.test.ts'],
    ['that a test no longer names it', { named: new Map([...fine.named, ['a.test.ts', ['B1']]]) }, '1 is not named in a.test.ts'],
    [
      'that there is a test after all',
      { named: new Map([...fine.named, ['c.test.ts', ['2']]]) },
      '2 has no test, and is named in c.test.ts',
    ],
    [
      'that a test names an item that there is not',
      { named: new Map([...fine.named, ['c.test.ts', ['99']]]) },
      'c.test.ts names 99, which is no item',
    ],
  ] satisfies [string, Partial<Checklist>, string][])('%s', (_, change, fault) => {
    expect(checklistFaults({ ...fine, ...change })).toContain(fault)
  })
})

describe('a test names an item', () => {
  test('in its title, however many', () => {
    expect(itemsNamedIn("test('[item 4] [B12] holds', () => {})\n  ['a row [item 7]', 1],\n")).toEqual(['4', 'B12', '7'])
  })

  test('not where it does not run, and not in passing', () => {
    expect(itemsNamedIn("test.skip('[item 4] holds')\ntest.todo('[B1] holds')\n// see item 5 and [5]\n")).toEqual([])
  })
})

const self = 'test/rules/checklist.test.ts'
