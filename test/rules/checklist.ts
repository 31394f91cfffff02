/** The lines of test/checklist.md, the items that tests name, and what is wrong between them. Pure: sentences come out, in the order of the items. */
import { posix } from 'node:path'

export type ChecklistLine = { item: string; where: string[]; whyNot: string | null }

export type Checklist = {
  /** Every item that there is. */
  items: readonly string[]
  lines: readonly ChecklistLine[]
  /** By the path of each test file. */
  named: ReadonlyMap<string, readonly string[]>
}

/** The rows of its tables: the item, what it says, and links to tests or `no test:` and a reason. */
export function readChecklist(page: string): ChecklistLine[] {
  return Array.from(page.matchAll(/^\| (B?\d+) \|.*\| (.*) \|$/gm), ([, item = '', cell = '']) => ({
    item,
    where: Array.from(cell.matchAll(/\]\(([^)]+)\)/g), ([, path = '']) => posix.join('test', path)),
    whyNot: /^no test: *(\S.*)$/.exec(cell)?.[1] ?? null,
  }))
}

/** `[item 89]` and `[B12]`, wherever they stand in a test that is run. */
export function itemsNamedIn(source: string): string[] {
  const lines = source.split('\n').filter(line => !/\.(skip|todo)\(/.test(line))
  return lines.flatMap(line => Array.from(line.matchAll(/\[(?:item (\d+)|(B\d+))\]/g), ([, number, beyond]) => number ?? beyond ?? ''))
}

export function checklistFaults({ items, lines, named }: Checklist): string[] {
  return [
    ...items.flatMap(faultsOf),
    ...lines.filter(({ item }) => !items.includes(item)).map(({ item }) => `${item} is no item`),
    ...unknown(),
  ]

  function faultsOf(item: string): string[] {
    const [line, second] = lines.filter(each => each.item === item)
    if (!line) return [`${item} has no line`]
    if (second) return [`${item} has two lines`]
    if (line.where.length === 0 && line.whyNot === null) return [`${item} says neither where nor why`]
    if (line.whyNot !== null) return filesNaming(item).map(path => `${item} has no test, and is named in ${path}`)
    return line.where.filter(path => !named.get(path)?.includes(item)).map(path => `${item} is not named in ${path}`)
  }

  function filesNaming(item: string): string[] {
    return Array.from(named).flatMap(([path, names]) => (names.includes(item) ? [path] : []))
  }

  function unknown(): string[] {
    return Array.from(named).flatMap(([path, names]) =>
      names.filter(name => !items.includes(name)).map(name => `${path} names ${name}, which is no item`),
    )
  }
}
