/**
 * The fenced blocks of a document, in order. A block in a list is read without its indent, one that is never closed goes on to the end, and a
 * fence inside a longer fence is text.
 */
export interface FencedBlock {
  /** What stands behind the fence: `sh`, `ts`, or nothing. */
  language: string
  text: string
}

export function blocksOf(markdown: string): FencedBlock[] {
  const blocks: FencedBlock[] = []
  let open: { fence: string; indent: string; language: string; lines: string[] } | null = null
  for (const line of markdown.split(/\r?\n/)) {
    if (!open) {
      const [, indent = '', fence, language = ''] = line.match(/^(\s*)(`{3,}|~{3,})\s*([\w-]*)[^`]*$/) ?? []
      if (fence) open = { fence, indent, language, lines: [] }
    } else if (isClosing(line, open.fence)) {
      blocks.push({ language: open.language, text: open.lines.join('\n') })
      open = null
    } else {
      open.lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line.trimStart())
    }
  }
  return open ? [...blocks, { language: open.language, text: open.lines.join('\n') }] : blocks
}

function isClosing(line: string, fence: string): boolean {
  const mark = line.trim()
  return mark.startsWith(fence) && mark === fence.charAt(0).repeat(mark.length)
}
