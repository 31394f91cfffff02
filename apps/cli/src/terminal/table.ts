/** Formats rows of text in columns, each as wide as its widest cell. The last column is not padded. */
import { cleanLine } from './clean-text.ts'
import { widthOf } from './text-width.ts'

export function formatTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [headings, ...rows].map(row => row.map(cleanLine))
  const widths = headings.map((_, column) => Math.max(...cells.map(row => widthOf(row[column] ?? ''))))
  return cells
    .map(row => row.map((cell, column) => pad(cell, widths[column] ?? 0)).join('  '))
    .map(line => `${line.trimEnd()}\n`)
    .join('')
}

function pad(cell: string, width: number): string {
  return cell + ' '.repeat(Math.max(0, width - widthOf(cell)))
}
