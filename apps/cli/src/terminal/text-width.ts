/** The width of a text in terminal columns: nearly right for every script, and never too small by more than a joined emoji. */
export function widthOf(text: string): number {
  let width = 0
  for (const char of text) width += widthOfChar(char)
  return width
}

/** As much of a line as fits, with a mark where something is missing. */
export function fitLine(line: string, columns: number): string {
  if (widthOf(line) <= columns) return line
  let fitting = ''
  let width = 1
  for (const char of line) {
    width += widthOfChar(char)
    if (width > columns) break
    fitting += char
  }
  return `${fitting}…`
}

function widthOfChar(char: string): number {
  if (/^\p{M}$/u.test(char)) return 0
  const code = char.codePointAt(0) ?? 0
  const isWide = code >= 0x1f300 || /^\p{Emoji_Presentation}$/u.test(char) || wide.some(([first, last]) => code >= first && code <= last)
  return isWide ? 2 : 1
}

/** Blocks whose characters take two columns: Hangul, Chinese, Japanese, Tangut, and Latin in their width. */
const wide = [
  [0x1100, 0x115f],
  [0x2e80, 0xa4cf],
  [0xa960, 0xa97c],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x1b2ff],
] as const
