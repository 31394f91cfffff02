/** The lines of test/checklist.md, the titles of the tests, and the faults between them, in the order of the items. */
import { posix } from 'node:path'
import { parseSync, Visitor } from 'vite'

type MappedTest = { path: string; title: string }

type ChecklistLine = { item: string; tests: MappedTest[]; whyNot: string | null }

export type Checklist = {
  /** Every item that there is. */
  items: readonly string[]
  lines: readonly ChecklistLine[]
  /** The titles of each test file, by its path. */
  titles: ReadonlyMap<string, ReadonlySet<string>>
}

/** The rows of its tables: the item, its meaning, and `[file](path) › title` for each test, or `no test:` and a reason. */
export function readChecklist(page: string): ChecklistLine[] {
  const rows = Array.from(page.matchAll(/^\| (B?\d+) \| (.*) \|$/gm), ([, item = '', cells = '']) => ({ item, cell: lastCellOf(cells) }))
  return rows.map(({ item, cell }) => ({
    item,
    tests: cell.split('<br>').flatMap(entry => {
      const [, path = '', title = ''] = /^\[[^\]]+\]\(([^)]+)\) › (.+)$/.exec(entry) ?? []
      return title ? [{ path: posix.join('test', path), title: title.replaceAll('\\|', '|') }] : []
    }),
    whyNot: /^no test: *(\S.*)$/.exec(cell)?.[1] ?? null,
  }))
}

function lastCellOf(cells: string): string {
  return cells.split(/(?<!\\) \| /).at(-1) ?? ''
}

/** The texts of a test file, except the titles of tests that do not run. A title may be a row of `test.each`, so every text counts. */
export function titlesIn(path: string, source: string): Set<string> {
  const titles = new Set<string>()
  const skipped = new Set<string>()
  new Visitor({
    Literal: ({ value }) => void (typeof value === 'string' && titles.add(value)),
    TemplateLiteral: ({ start, end }) => void titles.add(source.slice(start + 1, end - 1)),
    CallExpression({ callee, arguments: [title] }) {
      const isSkipped =
        callee.type === 'MemberExpression' && callee.property.type === 'Identifier' && /^(skip|todo)$/.test(callee.property.name)
      if (isSkipped && title?.type === 'Literal' && typeof title.value === 'string') skipped.add(title.value)
    },
  }).visit(parseSync(path, source).program)
  return new Set([...titles].filter(title => !skipped.has(title)))
}

export function checklistFaults({ items, lines, titles }: Checklist): string[] {
  return [...items.flatMap(faultsOf), ...lines.filter(({ item }) => !items.includes(item)).map(({ item }) => `${item} is no item`)]

  function faultsOf(item: string): string[] {
    const [line, second] = lines.filter(each => each.item === item)
    if (!line) return [`${item} has no line`]
    if (second) return [`${item} has two lines`]
    if (line.tests.length === 0 && line.whyNot === null) return [`${item} has neither a test nor a reason`]
    const missing = line.tests.filter(({ path, title }) => !titles.get(path)?.has(title))
    return missing.map(({ path, title }) => `${item}: there is no test "${title}" in ${path}`)
  }
}
