/** docs/what-happens-when.md promises only what a test holds, and names only what is there. */
import { describe, expect, test } from 'vitest'
import { faults } from '../faults/catalog.ts'
import { exists, filesUnder, readText } from './repository.ts'

const page = readText('docs/what-happens-when.md')
const sources = ['apps', 'packages'].flatMap(filesUnder).filter(path => path.endsWith('.ts') && !path.endsWith('.test.ts'))
const code = sources.map(readText).join('\n')

/** The rows of the tables with this last column. */
function rowsUnder(lastColumn: string): string[][] {
  const tables = page.split(/\n\n+/).filter(block => block.startsWith('|') && cellsOf(block.split('\n')[0] ?? '').at(-1) === lastColumn)
  return tables.flatMap(table => table.split('\n').slice(2).map(cellsOf))
}

function faultRows(lastColumn: string): string[][] {
  return rowsUnder(lastColumn).filter(([number = '']) => /^\d+$/.test(number))
}

function filesIn(cell: string): string[] {
  return Array.from(cell.matchAll(/\]\(\.\.\/((?:test|apps|packages)\/[\w/.-]+\.test\.ts)\)/g), ([, path]) => path ?? '')
}

function cellsOf(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map(cell => cell.trim())
}

describe('what happens when', () => {
  const promises = rowsUnder('tested in')

  test('says something', () => {
    expect(promises.length).toBeGreaterThan(40)
  })

  test.each(promises.map(row => [row[0] ?? '', row]))('%s: is tested in a file that exists', (_, row) => {
    const files = filesIn(row.at(-1) ?? '')
    expect(files.length).toBeGreaterThan(0)
    expect(files.filter(path => !exists(path))).toEqual([])
  })

  test('has a row for every fault of the catalog, with its tests, or with the reason for having no test', () => {
    const tested = faultRows('tested in').map(([number, name, , where = '']) => [Number(number), name, filesIn(where)])
    const untested = faultRows('why not').map(([number, name]) => [Number(number), name, []])
    const rows = [...tested, ...untested].sort(([a], [b]) => Number(a) - Number(b))
    expect(rows).toEqual(faults.map(({ name, tests }, i) => [i + 1, name, tests]))
  })

  test('names settings that there are', () => {
    const settings = new Set(Array.from(page.matchAll(/`([A-Z]+_MS)`/g), ([, name]) => name ?? ''))
    expect([...settings].filter(name => !code.includes(name))).toEqual([])
  })

  test.each(rowsUnder('line in the log').map(([metric = '', , lines = '']) => [metric, lines]))(
    '%s is counted and logged',
    (metric, lines) => {
      expect(code).toContain(
        `'${metric
          .replaceAll('`', '')
          .replace(/^rivulet_/, '')
          .replace(/_total$/, '')}'`,
      )
      for (const [, line] of lines.matchAll(/`([^`]+)`/g)) expect(code.includes(`'${line}'`) || line === 'turn lost').toBe(true)
    },
  )
})
