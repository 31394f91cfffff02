/** Named characters, such as `&nbsp;`: the parser leaves them for a browser to read, and we show text, not HTML. */
const known = new Map<string, string>()

export function decodeEntities(text: string): string {
  return text.includes('&') ? text.replace(/&(#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,31});/gi, decode) : text
}

function decode(entity: string): string {
  const before = known.get(entity)
  if (before !== undefined) return before
  const decoded = new DOMParser().parseFromString(entity, 'text/html').body.textContent ?? entity
  known.set(entity, decoded)
  return decoded
}
