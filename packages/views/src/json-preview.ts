/**
 * A preview of incomplete JSON text, for example of a call whose arguments still stream. For display only; do not act on it.
 *
 * `successful-parse` is the value of the whole text. `repaired-parse` is the value after the unfinished end was closed or dropped.
 */
import type { Json } from '@rivulet/protocol'

export type JsonPreview =
  | { state: 'undefined-input' | 'failed-parse'; value: undefined }
  | { state: 'successful-parse' | 'repaired-parse'; value: Json }

export function previewJson(text: string | undefined): JsonPreview {
  if (text === undefined) return { state: 'undefined-input', value: undefined }
  const parsed = parse(text)
  if (parsed !== undefined) return { state: 'successful-parse', value: parsed }
  const { whole, upToLast } = repairsOf(text)
  const value = parse(whole) ?? parse(upToLast)
  return value === undefined ? { state: 'failed-parse', value } : { state: 'repaired-parse', value }
}

/** The text with all open strings, lists and objects closed, and the same without its last member or item. Escapes raw control characters. */
function repairsOf(text: string): { whole: string; upToLast: string } {
  let repaired = ''
  let closers = ''
  let upToLast = ''
  let isString = false
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (isString && character === '\\') {
      repaired += character + text.charAt(at + 1)
      at += 1
    } else if (character === '"') {
      isString = !isString
      repaired += character
    } else if (isString) {
      repaired += character < ' ' ? escapeOf(character) : character
    } else {
      if (character === ',') upToLast = repaired + closers
      repaired += character
      if (character === '{' || character === '[') {
        closers = (character === '{' ? '}' : ']') + closers
        upToLast = repaired + closers
      } else if (character === '}' || character === ']') closers = closers.slice(1)
    }
  }
  // Drop an incomplete escape sequence.
  const ended = isString ? `${repaired.replace(/\\(u[\da-fA-F]{0,3})?$/, '')}"` : repaired
  return { whole: ended + closers, upToLast }
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
