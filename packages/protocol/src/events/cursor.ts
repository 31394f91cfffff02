/**
 * A position in a task's log: `<epoch>-<seq>`. The same text is the Redis stream id, the SSE id, `Last-Event-ID` and `?after=`.
 * Both halves are compared as numbers, so '10-1' is after '9-2'.
 */
import { RivuletError } from '../errors.ts'

export type Cursor = `${number}-${number}`

/** The position before the first event. */
export const origin: Cursor = '0-0'

const pattern = /^(\d{1,15})-(\d{1,15})$/
/** The canonical spelling. */
const ownPattern = /^(?:0|[1-9]\d{0,14})-(?:0|[1-9]\d{0,14})$/

export function formatCursor(epoch: number, seq: number): Cursor {
  return `${epoch}-${seq}`
}

/** The cursor in its canonical spelling, or null when the text is not a cursor. */
export function parseCursor(text: string): Cursor | null {
  if (ownPattern.test(text)) return text as Cursor
  const match = pattern.exec(text)
  return match ? formatCursor(Number(match[1]), Number(match[2])) : null
}

/** Throws `bad_cursor`. `given` may be a header or a query parameter, which may be there twice. */
export function requireCursor(given: string | readonly string[]): Cursor {
  const cursor = typeof given === 'string' ? parseCursor(given) : null
  if (cursor === null) throw new RivuletError('bad_cursor', cursorSyntax)
  return cursor
}

export const cursorSyntax = 'A cursor must be <epoch>-<seq>, two whole numbers'

export function epochOf(cursor: Cursor): number {
  return Number(cursor.slice(0, cursor.indexOf('-')))
}

export function seqOf(cursor: Cursor): number {
  return Number(cursor.slice(cursor.indexOf('-') + 1))
}

/** Negative, zero or positive, as for `Array.sort`. */
export function compareCursors(a: Cursor, b: Cursor): number {
  if (a === b) return 0
  // Fast path, because every reader compares for every delta: with equal numbers of digits, text order is number order.
  if (a.length === b.length && a.indexOf('-') === b.indexOf('-')) return a < b ? -1 : 1
  return epochOf(a) - epochOf(b) || seqOf(a) - seqOf(b)
}
