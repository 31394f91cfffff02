import { expect, test } from 'vitest'
import { formatTable } from './table.ts'
import { fitLine, widthOf } from './text-width.ts'

test('columns line up, whatever stands in them', () => {
  expect(
    formatTable(
      ['name', 'says'],
      [
        ['a', 'x'],
        ['日本', 'y\nz'],
        ['longer name', ''],
      ],
    ),
  ).toBe('name         says\na            x\n日本         y z\nlonger name\n')
})

test('a cell cannot leave its line', () => {
  expect(formatTable(['name', 'says'], [['\u001b[2Jx\ny', 'z']])).toBe('name  says\nx y   z\n')
})

test('a line that does not fit is cut, by columns and not by letters', () => {
  expect(fitLine('hello', 5)).toBe('hello')
  expect(fitLine('hello!', 5)).toBe('hell…')
  expect(fitLine('日本語', 5)).toBe('日本…')
  expect(widthOf('é')).toBe(1)
  expect(['✅', '⌚', '🀄', '１', '한', '𗀀'].map(widthOf)).toEqual([2, 2, 2, 2, 2, 2])
  expect(['✓', '⠋', '→', 'ß'].map(widthOf)).toEqual([1, 1, 1, 1])
})
