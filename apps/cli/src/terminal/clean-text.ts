/**
 * Makes the text of an agent harmless for a terminal: removes escape sequences, control characters and marks that reorder text, and keeps line
 * breaks and tabs. Text in pieces is cleaned like the whole text, so a sequence that is cut in two is removed too.
 *
 * A sequence that is never closed removes the rest of its line, and no more.
 */
export type TextCleaner = (piece: string) => string

export function createTextCleaner(): TextCleaner {
  let place: Place = 'text'
  return clean

  function clean(piece: string): string {
    if (place === 'text' && !needsCleaning(piece)) return piece
    let kept = ''
    for (const char of piece) {
      const code = char.codePointAt(0) ?? 0
      const isText = takeIn(code)
      if (isText) kept += char
    }
    return kept
  }

  function takeIn(code: number): boolean {
    const next = nextPlace(place, code)
    const wasText = place === 'text' || next === 'again'
    place = next === 'again' ? nextOfText(code) : next
    return wasText && place === 'text' && isPrintable(code)
  }
}

export function cleanText(text: string): string {
  return createTextCleaner()(text)
}

/** The same on one line: for what stands in a table or a status line. */
export function cleanLine(text: string): string {
  return cleanText(text.replaceAll(/\s+/g, ' ')).trim()
}

/** Where in a sequence we are: after ESC, in its parameters (CSI), in a string (OSC, DCS …), or after ESC in a string. */
type Place = 'text' | 'escape' | 'parameters' | 'string' | 'string-escape'

/** `again`: this character is no part of the sequence, which it has ended. */
function nextPlace(place: Place, code: number): Place | 'again' {
  switch (place) {
    case 'text':
      return nextOfText(code)
    case 'escape':
      if (code === 0x5b) return 'parameters'
      if (stringOpeners.has(code)) return 'string'
      if (code >= 0x20 && code <= 0x2f) return 'escape'
      return code >= 0x30 && code <= 0x7e ? 'text' : 'again'
    case 'parameters':
      if (code >= 0x20 && code <= 0x3f) return 'parameters'
      return code >= 0x40 && code <= 0x7e ? 'text' : 'again'
    case 'string':
      if (code === 0x07 || code === 0x9c) return 'text'
      if (code === 0x0a) return 'again'
      return code === 0x1b ? 'string-escape' : 'string'
    case 'string-escape':
      return code === 0x5c ? 'text' : nextPlace('escape', code)
    default:
      return place satisfies never
  }
}

function nextOfText(code: number): Place {
  if (code === 0x1b) return 'escape'
  if (code === 0x9b) return 'parameters'
  return stringControls.has(code) ? 'string' : 'text'
}

/** `]`, `P`, `X`, `^` and `_` after ESC, and the single characters that stand for them. */
const stringOpeners = new Set([0x5d, 0x50, 0x58, 0x5e, 0x5f])
const stringControls = new Set([0x9d, 0x90, 0x98, 0x9e, 0x9f])

function isPrintable(code: number): boolean {
  if (code === 0x0a || code === 0x09) return true
  const isControl = code < 0x20 || (code >= 0x7f && code <= 0x9f)
  const reorders = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)
  return !isControl && !reorders
}

function needsCleaning(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (!isPrintable(text.charCodeAt(at))) return true
  return false
}
