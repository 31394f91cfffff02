/**
 * The rows of the event list: those events that the filter lets through, with neighbouring deltas of one message as one row. A log that has only grown
 * costs what was added to it.
 */
import type { Entry, EventLog } from '../event-log.ts'

export const filters = ['all', 'turns', 'messages', 'tools', 'others'] as const
export type EventFilter = (typeof filters)[number]

export type EventRow = {
  /** The last one. */
  entry: Entry
  /** How many events are in this row. */
  count: number
  /** Of all of them. */
  size: number
  /** Place of the first one in the log. */
  number: number
}

export type EventRows = Readonly<{
  rows: readonly EventRow[]
  filter: EventFilter
  isFolding: boolean
  base: number
  end: number
  tools: Set<number>
}>

export function growRows(before: EventRows | null, { entries }: EventLog, filter: EventFilter, isFolding: boolean): EventRows {
  const base = entries[0]?.number ?? 0
  const end = (entries.at(-1)?.number ?? -1) + 1
  const isSame = before !== null && before.filter === filter && before.isFolding === isFolding && before.base === base && before.end <= end
  if (isSame && before.end === end) return before
  const rows = isSame ? [...before.rows] : []
  const tools = isSame ? before.tools : new Set<number>()
  for (const entry of entries.slice(isSame ? before.end - base : 0)) {
    noteTool(tools, entry)
    if (!passes(entry, filter, tools)) continue
    const last = rows.at(-1)
    if (isFolding && last && isSameMessage(last.entry, entry))
      rows[rows.length - 1] = { ...last, entry, count: last.count + 1, size: last.size + entry.size }
    else rows.push({ entry, count: 1, size: entry.size, number: entry.number })
  }
  return { rows, filter, isFolding, base, end, tools }
}

/** The row that holds an event; -1 if none does. */
export function rowWith(rows: readonly EventRow[], number: number): number {
  const place = rows.findLastIndex(row => row.number <= number)
  return place >= 0 && number <= (rows[place]?.entry.number ?? -1) ? place : -1
}

function passes({ event }: Entry, filter: EventFilter, tools: Set<number>): boolean {
  if (filter === 'all') return true
  const isMessage = event.type.startsWith('message.')
  const isTool = isMessage && 'index' in event && event.index !== undefined && tools.has(event.index)
  if (filter === 'turns') return event.type.startsWith('turn.')
  if (filter === 'tools') return isTool
  if (filter === 'messages') return isMessage && !isTool
  return !isMessage && !event.type.startsWith('turn.')
}

/** A delta does not tell of what its message is, so that is noted when the message starts. */
function noteTool(tools: Set<number>, { event }: Entry): void {
  if (event.type !== 'message.started' && event.type !== 'message.replaced') return
  if (event.content.type === 'tool_request' || event.content.type === 'tool_response') tools.add(event.index)
  else tools.delete(event.index)
}

function isSameMessage({ event: one }: Entry, { event: other }: Entry): boolean {
  return one.type === 'message.delta' && other.type === 'message.delta' && one.index === other.index && one.attempt === other.attempt
}
