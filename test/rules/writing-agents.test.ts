/** docs/writing-agents.md shows examples as they are, code that type-checks, and numbers that hold. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defaultLimits, errorTable, isErrorCode } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { blocksOf } from './fenced-blocks.ts'
import { exists, filesUnder, readText } from './repository.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readText('docs/writing-agents.md')

/** By path: what the page shows under a link to an example. */
const shownFiles = new Map(
  Array.from(page.matchAll(/^\[(examples\/[\w.-]+)\]\(\.\.\/\1\):\n\n(```ts\n[\s\S]*?\n```)$/gm), ([, path = '', block = '']) => [
    path,
    block,
  ]),
)

test('every example is shown as it is', () => {
  const files = filesUnder('examples').filter(path => path.endsWith('.ts'))
  expect([...shownFiles.keys()].toSorted()).toEqual(files)
  for (const [path, block] of shownFiles) expect(block).toBe(`\`\`\`ts\n${readText(path)}\`\`\``)
})

test('all other code type-checks', { timeout: 60_000 }, () => {
  const examples = [...shownFiles.values()].flatMap(blocksOf).map(({ text }) => text)
  const snippets = blocksOf(page).filter(({ language, text }) => language === 'ts' && !examples.includes(text))
  expect(snippets.length).toBeGreaterThan(0)
  expect(typeErrorsIn(snippets.map(({ text }) => text))).toBe('')
})

test('code that does not type-check would be noticed', { timeout: 60_000 }, () => {
  expect(
    typeErrorsIn([`import { defineAgent } from '@rivulet/worker'\nexport default defineAgent('a', turn => turn.shout('b'))`]),
  ).toContain('shout')
})

test.each(rowsUnder('tried again'))('%s: is tried again or not, as the page says', (codes = '', again) => {
  const named = Array.from(codes.matchAll(/`(\w+)`/g), ([, code]) => code)
  expect(named.length).toBeGreaterThan(0)
  for (const code of named) expect(isErrorCode(code) && errorTable[code].retry).toBe(again === 'yes')
})

test.each([
  ['what one turn says', `${defaultLimits.turnBytes / 2 ** 20} MiB`],
  ['what the steps of one turn remember', `${defaultLimits.stepsBytes / 2 ** 20} MiB`],
  ['one delta', `${defaultLimits.deltaBytes / 2 ** 10} KiB`],
  ['depth of a JSON value', `${defaultLimits.jsonDepth}`],
  ['turns of one task that wait', `${defaultLimits.queuedTurns}`],
])('the limit of %s is %s', (what, limit) => {
  expect(rowsUnder('limit').find(([name]) => name === what)?.[1]).toBe(limit)
})

test.each(['docs/writing-agents.md', 'examples/README.md'])('%s links to what is there', document => {
  const targets = Array.from(readText(document).matchAll(/\]\((?!\w+:)([^)#]+)/g), ([, target = '']) => target)
  expect(targets.length).toBeGreaterThan(3)
  expect(targets.filter(target => !exists(posix.join(posix.dirname(document), target)))).toEqual([])
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

/** What the compiler says of these files, each a module of its own, as if they lay in this repository. */
function typeErrorsIn(snippets: string[]): string {
  mkdirSync(join(root, '.rivulet'), { recursive: true })
  const folder = mkdtempSync(join(root, '.rivulet', 'snippets-'))
  try {
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include: ['*.ts'] }))
    for (const [i, text] of snippets.entries()) writeFileSync(join(folder, `snippet-${i}.ts`), text)
    const { stdout, stderr, error } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', folder], { cwd: root, encoding: 'utf8' })
    return `${stdout}${stderr}${error ?? ''}`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
