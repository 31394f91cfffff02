/** Tables of a document, by the words in their first row. */

export type Table = { columns: string[]; rows: string[][] }

export function tablesOf(markdown: string): Table[] {
  const blocks = markdown.split(/\n\n+/).filter(block => block.startsWith('|'))
  return blocks.map(block => {
    const [columns = [], , ...rows] = block.trim().split('\n').map(cellsOf)
    return { columns, rows }
  })
}

/** The rows of all tables with this first column. */
export function rowsUnder(markdown: string, column: string): string[][] {
  return tablesOf(markdown)
    .filter(({ columns }) => columns[0] === column)
    .flatMap(({ rows }) => rows)
}

/** What stands in backticks. A `?` after it is kept: it says that a field may be absent. */
export function namesIn(cell = ''): string[] {
  return Array.from(cell.matchAll(/`([^`]+)`(\??)/g), ([, name = '', mark = '']) => name + mark)
}

function cellsOf(line: string): string[] {
  const cells = line.split('|').slice(1, -1)
  return cells.map(cell => cell.trim())
}
