/** Writes a report to docs/performance.md, between its bench markers. */
import { readFileSync, writeFileSync } from 'node:fs'

const page = new URL('../../docs/performance.md', import.meta.url)
const marks = /(<!-- bench: begin -->)[\s\S]*(<!-- bench: end -->)/

export function writeReport(report: string): void {
  const text = readFileSync(page, 'utf8')
  if (!marks.test(text)) throw new Error('docs/performance.md has no bench markers')
  writeFileSync(
    page,
    text.replace(marks, (_, begin, end) => `${begin}\n\n${report}\n\n${end}`),
  )
}
