/** docs/what-happens-when.md promises only what a test holds, and names only what is there. */
import { describe, expect, test } from 'vitest'
import { exists, filesUnder, readText } from './repository.ts'

const page = readText('docs/what-happens-when.md')
const sources = ['apps', 'packages'].flatMap(filesUnder).filter(path => path.endsWith('.ts') && !path.endsWith('.test.ts'))
const code = sources.map(readText).join('\n')

/** The rows of the tables with this last column. */
function rowsUnder(lastColumn: string): string[][] {
  const tables = page.split(/\n\n+/).filter(block => block.startsWith('|') && cellsOf(block.split('\n')[0] ?? '').at(-1) === lastColumn)
  return tables.flatMap(table => table.split('\n').slice(2).map(cellsOf))
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
    const files = Array.from(row.at(-1)?.matchAll(/\]\(\.\.\/(test\/[\w/.-]+\.test\.ts)\)/g) ?? [], ([, path]) => path ?? '')
    expect(files.length).toBeGreaterThan(0)
    expect(files.filter(path => !exists(path))).toEqual([])
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
