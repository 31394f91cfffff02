/** Puts a report where the documentation keeps the latest one. */
import { readFileSync, writeFileSync } from 'node:fs'

const page = new URL('../docs/performance.md', import.meta.url)
const marks = /(<!-- bench: begin -->)[\s\S]*(<!-- bench: end -->)/

export function writeReport(report: string): void {
  const text = readFileSync(page, 'utf8')
  if (!marks.test(text)) throw new Error('docs/performance.md has no place for a report')
  writeFileSync(
    page,
    text.replace(marks, (_, begin, end) => `${begin}\n\n${report}\n\n${end}`),
  )
}
