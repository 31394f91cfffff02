/** Splits one delta into deltas that each stay within the limit. Never cuts within a character or a base64 group. */
import type { Delta } from '../events/delta.ts'
import { isTextDelta } from '../events/delta.ts'

export function splitDelta(delta: Delta, maxBytes: number): Delta[] {
  if (isTextDelta(delta)) return fits(delta.text, maxBytes) ? [delta] : splitText(delta.text, maxBytes).map(text => ({ ...delta, text }))
  if (delta.type === 'media') return splitBase64(delta.bytes, maxBytes).map(bytes => ({ type: 'media', bytes }))
  return [delta]
}

/** The length of a well-formed text in UTF-8 bytes. */
export function utf8Length(text: string): number {
  let bytes = text.length
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i)
    // A surrogate pair is four bytes: two for each of its halves.
    if (unit > 0x7f) bytes += unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1
  }
  return bytes
}

/** A quick test without counting: one UTF-16 unit takes at most three bytes. */
function fits(text: string, maxBytes: number): boolean {
  return text.length * 3 <= maxBytes
}

function splitText(text: string, maxBytes: number): string[] {
  const pieces: string[] = []
  let begin = 0
  let bytes = 0
  for (let i = 0; i < text.length; ) {
    const point = text.codePointAt(i) ?? 0
    const size = point > 0xffff ? 4 : point > 0x7ff ? 3 : point > 0x7f ? 2 : 1
    if (bytes + size > maxBytes && i > begin) {
      pieces.push(text.slice(begin, i))
      begin = i
      bytes = 0
    }
    bytes += size
    i += point > 0xffff ? 2 : 1
  }
  pieces.push(text.slice(begin))
  return pieces
}

function splitBase64(bytes: string, maxBytes: number): string[] {
  const size = Math.max(1, Math.floor(maxBytes / 3)) * 4
  const pieces: string[] = []
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.slice(at, at + size))
  return pieces
}
