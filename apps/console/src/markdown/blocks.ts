/**
 * Growing markdown, cut into blocks that can be parsed and drawn one by one, so that a delta costs the same however long the text is.
 *
 * `growBlocks` looks only at what may still change. A block that is closed keeps its identity for as long as the text only grows; closed blocks
 * come in pages, which keep theirs too. Whatever was decided on an unfinished line is not closed. Blocks together are the whole text.
 * A list with blank lines in it stays one block, and what is longer than `maxBlock` is cut all the same: a link that is defined in another
 * block is not found.
 */
export type Block = {
  /** Where it begins in the text. */
  at: number
  text: string
  /** Set for what lies inside a code fence: where that fence begins, its language, and whether this is its first piece and its last. */
  fence?: { at: number; language: string; isFirst: boolean; isLast: boolean }
}

export type Blocks = Readonly<{
  source: string
  pages: readonly (readonly Block[])[]
  /** Closed, but less than a page. */
  rest: readonly Block[]
  /** What may still change. */
  tail: readonly Block[]
  /** Where the next look begins. */
  resume: Resume
}>

type Fence = { at: number; language: string; mark: string; isFirst: boolean }
type Resume = { at: number; fence: Fence | null }

export const maxBlock = 8_192
const pageSize = 32

const nothing: Blocks = { source: '', pages: [], rest: [], tail: [], resume: { at: 0, fence: null } }

export function growBlocks(before: Blocks | null, source: string): Blocks {
  const known = before && source.length >= before.source.length && source.startsWith(before.source) ? before : nothing
  if (known.source === source && known !== nothing) return known
  const { closed, tail, resume } = cut(source, known.resume)
  // Copy the piece, because a slice keeps the whole string in memory, and each delta creates a new whole string.
  for (const block of closed) block.text = structuredClone(block.text)
  let { pages } = known
  let rest = closed.length > 0 ? [...known.rest, ...closed] : known.rest
  while (rest.length >= pageSize) {
    pages = [...pages, rest.slice(0, pageSize)]
    rest = rest.slice(pageSize)
  }
  return { source, pages, rest, tail, resume }
}

function cut(source: string, from: Resume): { closed: Block[]; tail: Block[]; resume: Resume } {
  const found: Block[] = []
  let resume = from
  let closedCount = 0
  let { at, fence } = from
  let position = at
  let isAfterBlank = false
  /** A fence inside a list or a quote, which is part of that block. */
  let innerFence: string | null = null

  while (position < source.length) {
    const newline = source.indexOf('\n', position)
    const isWhole = newline >= 0
    const end = isWhole ? newline + 1 : source.length
    if (end - at > maxBlock) {
      close(position > at ? position : breakIn(source, at), isWhole || position === at)
      position = at
      continue
    }
    const line = source.slice(position, end)
    if (fence) {
      position = end
      if (closesFence(line, fence.mark)) {
        found.push(piece(end, true))
        fence = null
        at = end
        settle(isWhole)
      }
      continue
    }
    const opening = innerFence === null ? openingFence(line) : null
    if (opening) {
      if (position > at) close(position, isWhole)
      fence = { at, ...opening, isFirst: true }
      position = end
      continue
    }
    if (isAfterBlank && position > at && innerFence === null && beginsBlock(line, isWhole)) close(position, isWhole)
    innerFence = innerFenceAfter(innerFence, line)
    isAfterBlank = line.trim() === ''
    position = end
  }
  if (at < source.length) found.push(piece(source.length, false))
  return { closed: found.slice(0, closedCount), tail: found.slice(closedCount), resume }

  function close(end: number, isSure: boolean): void {
    found.push(piece(end, false))
    if (fence) fence = { ...fence, isFirst: false }
    at = end
    settle(isSure)
  }

  /** Keeps the blocks found so far, except those that end on an unfinished line. */
  function settle(isSure: boolean): void {
    isAfterBlank = false
    innerFence = null
    if (!isSure) return
    closedCount = found.length
    resume = { at, fence }
  }

  function piece(end: number, isLast: boolean): Block {
    const text = source.slice(at, end)
    return fence ? { at, text, fence: { at: fence.at, language: fence.language, isFirst: fence.isFirst, isLast } } : { at, text }
  }

  /** Whether a line after a blank line begins a new block. */
  function beginsBlock(line: string, isWhole: boolean): boolean {
    if (/^(\s{2,}|\t|\s*$)/.test(line)) return false
    if (!isListItem(source.slice(at, at + 16))) return true
    return !isListItem(line) && (isWhole || !/^(\d{1,9}[.)]?|[-*+])?$/.test(line))
  }
}

function openingFence(line: string): { mark: string; language: string } | null {
  const [, mark, language] = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)\n?$/.exec(line) ?? []
  return mark ? { mark, language: language?.trim().split(/\s/)[0] ?? '' } : null
}

function closesFence(line: string, mark: string): boolean {
  const [, closing] = /^ {0,3}(`{3,}|~{3,})[ \t]*\n?$/.exec(line) ?? []
  return closing !== undefined && closing[0] === mark[0] && closing.length >= mark.length
}

function innerFenceAfter(inner: string | null, line: string): string | null {
  const [, mark] = /^[\s>]*(?:[-*+]\s+|\d{1,9}[.)]\s+)?(`{3,}|~{3,})[^`\n]*\n?$/.exec(line) ?? []
  if (!mark) return inner
  if (inner === null) return mark
  return mark[0] === inner[0] && mark.length >= inner.length ? null : inner
}

function isListItem(line: string): boolean {
  return /^ {0,3}([-*+]|\d{1,9}[.)])([ \t]|$)/.test(line)
}

/** Where a line that is too long is broken: after a space if there is one, and never inside a character. */
function breakIn(source: string, at: number): number {
  const space = source.lastIndexOf(' ', at + maxBlock - 1)
  if (space > at + maxBlock / 2) return space + 1
  const end = at + maxBlock
  const code = source.charCodeAt(end - 1)
  return code >= 0xd800 && code <= 0xdbff ? end - 1 : end
}
