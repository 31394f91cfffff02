/**
 * A growing text as pieces that can be drawn one by one: cut at line ends, or, where a line is endless, at a space. Pieces that are whole
 * keep their identity for as long as the text only grows.
 */
export type Piece = { at: number; text: string }
export type Pieces = Readonly<{ source: string; whole: readonly Piece[]; last: Piece }>

const pieceLength = 4_096
const longestLine = 16_384

export function growPieces(before: Pieces | null, source: string): Pieces {
  const known = before && source.length >= before.source.length && source.startsWith(before.source) ? before : null
  const whole = known ? [...known.whole] : []
  let at = known?.last.at ?? 0
  for (;;) {
    const end = endOf(source, at)
    if (end === null) return { source, whole, last: { at, text: source.slice(at) } }
    // Copy the piece, because a slice keeps the whole string in memory, and each delta creates a new whole string.
    whole.push({ at, text: structuredClone(source.slice(at, end)) })
    at = end
  }
}

function endOf(source: string, at: number): number | null {
  if (source.length - at < pieceLength) return null
  const newline = source.indexOf('\n', at + pieceLength - 1)
  if (newline >= 0 && newline - at < longestLine) return newline + 1 < source.length ? newline + 1 : null
  if (source.length - at <= longestLine) return null
  const space = source.lastIndexOf(' ', at + longestLine - 1)
  if (space > at) return space + 1
  const code = source.charCodeAt(at + longestLine - 1)
  return code >= 0xd800 && code <= 0xdbff ? at + longestLine - 1 : at + longestLine
}
