/** docs/architecture.md and CONTRIBUTING.md describe the repository as it is: its packages, the folders of the API, and the files of each step. */
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { blocksOf } from '../support/texts/fenced-blocks.ts'
import { apiSource, everyPackage, mayKnow, rooms } from './import-rules.ts'
import { namesIn, rowsUnder, tablesOf } from './markdown-table.ts'
import { exists, filesUnder, readText, workspaceFolders } from './repository.ts'

const page = readText('docs/architecture.md')
const guide = readText('CONTRIBUTING.md')

test('every package has a row, with the packages that it may import', () => {
  const rows = rowsUnder(page, 'package').map(([name, allowed]) => [namesIn(name)[0], allowedIn(allowed)])
  expect(rows.map(([name]) => name).sort()).toEqual(workspaceFolders().sort())
  for (const [name, allowed] of rows) expect([name, allowed]).toEqual([name, mayKnow[String(name)]])
})

test('every folder of the API has a row and a place in the picture, with the folders that it may import', () => {
  const rows = rowsUnder(page, 'folder of `apps/api/src`').map(([name, , allowed]) => [namesIn(name)[0] ?? '', namesIn(allowed)])
  expect(Object.fromEntries(rows)).toEqual(rooms)
  expect(Object.keys(rooms).sort()).toEqual(foldersOf(apiSource))
  const picture = blocksOf(page).map(({ text }) => text)
  for (const room of Object.keys(rooms)) expect(picture.some(text => new RegExp(`\\b${room}\\b`).test(text))).toBe(true)
})

test.each(['CONTRIBUTING.md', 'docs/architecture.md'])('every path in %s exists', document => {
  const paths = Array.from(
    readText(document).matchAll(/`((?:apps|packages|test|docs|ops|scripts|migrations)\/[^`\s<]+)`/g),
    ([, path = '']) => path,
  )
  expect(paths.length).toBeGreaterThan(10)
  expect(paths.filter(path => !exists(path))).toEqual([])
})

test('the guide lists every place that the compiler finds for a new content type', () => {
  const [, list = ''] = /### A new content type\n[\s\S]*?\n3\. ([\s\S]*?)\n4\. /.exec(guide) ?? []
  const listed = Array.from(list.matchAll(/`((?:apps|packages)\/[^`]+)`/g), ([, path = '']) => path)
  const sources = ['apps', 'packages'].flatMap(filesUnder).filter(path => /\.tsx?$/.test(path))
  const closed = sources.filter(path => /\bcontent satisfies never|Record<Content(Type|\['type'\])/.test(readText(path)))
  expect(listed.sort()).toEqual(closed.sort())
})

describe('the steps of a turn and of a delta', () => {
  test.each(stepsOf(page))('$what: $name is made in the file that is named', ({ files, name }) => {
    expect(files.some(file => has(file, name))).toBe(true)
  })

  test('a file that only uses a function does not make it', () => {
    expect(has('apps/api/src/http/requests/accept-work.ts', 'createAcceptWork')).toBe(true)
    expect(has('apps/api/src/http/requests/accept-work.ts', 'createTask')).toBe(false)
  })
})

/** Whether the file declares a function of this name. A route, and a command of Redis, only has to be in it. */
function has(file: string, name: string): boolean {
  const text = readText(file)
  return /^[a-z]\w+$/.test(name) ? new RegExp(`\\bfunction\\*? ${name}\\b`).test(text) : text.includes(name)
}

/** The rows of tables whose first column is a number and whose last is a function: the files are in the column before. */
function stepsOf(markdown: string): { what: string; files: string[]; name: string }[] {
  const rows = tablesOf(markdown).flatMap(({ columns, rows }) => (columns[0] === '#' ? rows : []))
  const steps = rows.map(([, what = '', where = '', name = '']) => ({
    what,
    files: namesIn(where),
    name: namesIn(name)[0]?.replace(/^[A-Z]+ \/v1/, '') ?? '',
  }))
  return steps.filter(({ files }) => files.length > 0)
}

function allowedIn(cell = ''): string[] {
  return [...(cell.startsWith('every package') ? everyPackage : []), ...namesIn(cell)]
}

function foldersOf(path: string): string[] {
  const entries = readdirSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), { withFileTypes: true })
  return entries.flatMap(entry => (entry.isDirectory() ? [entry.name] : [])).sort()
}
