/** Formats a value as one line of JSON in which everything that a terminal could interpret is escaped. */
export function toJsonLine(value: unknown): string {
  const text = JSON.stringify(value)
  return `${text.replaceAll(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu, spellOut)}\n`
}

function spellOut(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}
