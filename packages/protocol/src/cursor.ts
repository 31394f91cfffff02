/**
 * A position in a task's log: `<epoch>-<seq>`. It is the Redis stream id, the SSE id, `Last-Event-ID` and `?after=`; nothing translates it.
 * Both halves are compared as numbers, so '10-1' comes after '9-2'.
 */
export type Cursor = `${number}-${number}`

/** Before everything. */
export const origin: Cursor = '0-0'

const pattern = /^(\d{1,15})-(\d{1,15})$/
/** How we write them ourselves. */
const ownPattern = /^(?:0|[1-9]\d{0,14})-(?:0|[1-9]\d{0,14})$/

export function formatCursor(epoch: number, seq: number): Cursor {
  return `${epoch}-${seq}`
}

/** The cursor in its one spelling, or null for anything that is not one. */
export function parseCursor(text: string): Cursor | null {
  if (ownPattern.test(text)) return text as Cursor
  const match = pattern.exec(text)
  return match ? formatCursor(Number(match[1]), Number(match[2])) : null
}

export function epochOf(cursor: Cursor): number {
  return Number(cursor.slice(0, cursor.indexOf('-')))
}

export function seqOf(cursor: Cursor): number {
  return Number(cursor.slice(cursor.indexOf('-') + 1))
}

/** Negative, zero or positive, as for `Array.sort`. */
export function compareCursors(a: Cursor, b: Cursor): number {
  if (a === b) return 0
  // Every delta of every reader is compared: where both halves have as many digits, the order of the texts is the order of the numbers.
  if (a.length === b.length && a.indexOf('-') === b.indexOf('-')) return a < b ? -1 : 1
  return epochOf(a) - epochOf(b) || seqOf(a) - seqOf(b)
}
