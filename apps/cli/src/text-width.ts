/** How many columns of a terminal a text takes: nearly right for every script, and never too little by more than a joined emoji. */
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
  const isWide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) || (code >= 0xac00 && code <= 0xd7a3)
  return isWide || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xff00 && code <= 0xff60) || code >= 0x1f300 ? 2 : 1
}
