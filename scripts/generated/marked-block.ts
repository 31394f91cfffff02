/** A part of a page between two comments that name it. */
export function withBlock(page: string, name: string, text: string): string {
  const [start, end] = [`<!-- ${name}: npm run generate -->`, `<!-- end of ${name} -->`]
  const [before, after] = [page.indexOf(start), page.indexOf(end)]
  if (before < 0 || after < before) throw new Error(`The page has no place for it: ${start} … ${end}`)
  return `${page.slice(0, before)}${start}\n\n${text}\n\n${page.slice(after)}`
}

export function tableOf(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [columns, columns.map(() => '---'), ...rows]
  return lines.map(cells => (cells[0] === '---' ? `|${cells.join('|')}|` : `| ${cells.join(' | ')} |`)).join('\n')
}

export function code(text: string): string {
  return `\`${text}\``
}
