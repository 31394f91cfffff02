/** docs/writing-agents.md shows examples as they are, and numbers that hold. */
import { defaultLimits, errorTable, isErrorCode } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { filesUnder, readText } from './repository.ts'

const page = readText('docs/writing-agents.md')

/** By path: what the page shows under a link to an example. */
const shownFiles = new Map(
  Array.from(page.matchAll(/^\[(examples\/[\w.-]+)\]\(\.\.\/\1\):\n\n(```ts\n[\s\S]*?\n```)$/gm), ([, path = '', block = '']) => [
    path,
    block,
  ]),
)

test('every example is shown as it is', () => {
  const files = filesUnder('examples').filter(path => /^examples\/[\w.-]+\.ts$/.test(path))
  expect([...shownFiles.keys()].toSorted()).toEqual(files)
  for (const [path, block] of shownFiles) expect(block).toBe(`\`\`\`ts\n${readText(path)}\`\`\``)
})

test.each(rowsUnder('tried again'))('%s: is tried again or not, as the page says', (codes = '', again) => {
  const named = Array.from(codes.matchAll(/`(\w+)`/g), ([, code]) => code)
  expect(named.length).toBeGreaterThan(0)
  for (const code of named) expect(isErrorCode(code) && errorTable[code].retry).toBe(again === 'yes')
})

test.each([
  ['output of one turn', `${defaultLimits.turnBytes / 2 ** 20} MiB`],
  ["stored results of one turn's steps", `${defaultLimits.stepsBytes / 2 ** 20} MiB`],
  ['one delta', `${defaultLimits.deltaBytes / 2 ** 10} KiB`],
  ['depth of a JSON value', `${defaultLimits.jsonDepth}`],
  ['queued turns of one task', `${defaultLimits.queuedTurns}`],
])('the limit of %s is %s', (what, limit) => {
  expect(rowsUnder('limit').find(([name]) => name === what)?.[1]).toBe(limit)
})

/** The rows of the table with this second column. */
function rowsUnder(column: string): string[][] {
  const [table = ''] = page.split(/\n\n+/).filter(block => cellsOf(block.split('\n')[0] ?? '')[1] === column)
  return table.split('\n').slice(2).map(cellsOf)
}

function cellsOf(line: string): string[] {
  const cells = line.split('|').slice(1, -1)
  return cells.map(cell => cell.trim())
}
