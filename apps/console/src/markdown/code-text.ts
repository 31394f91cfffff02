/** The code in a piece of a fence: without the lines that open and close it. */
import type { Block } from './blocks.ts'

export function codeOf({ text, fence }: Block): string {
  const from = fence?.isFirst ? text.indexOf('\n') + 1 || text.length : 0
  const code = text.slice(from)
  return fence?.isLast ? code.replace(/\n? {0,3}(`{3,}|~{3,})[ \t]*\n?$/, '') : code
}
