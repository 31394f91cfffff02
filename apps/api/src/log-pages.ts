/**
 * A task's log for those who catch up from it, page by page. Who asks for the same page at the same time shares it, read, checked and framed
 * once: a crowd that comes together goes through the log together. A page is kept no longer than until it has been read.
 */
import type { LogEntry, LogReader } from '@rivulet/broker'
import { type Cursor, compareCursors, origin } from '@rivulet/protocol'
import { decodeEntry } from './log-fold.ts'
import { encodeEntry } from './sse-frame.ts'
import { type Shared, share } from './sse-response.ts'

/** Of the log, in memory while it is sent. Entries differ in size by a thousand: a page is as long as the one before it suggests. */
const pageBytes = 256 * 1024
/** What is handed to a socket at a time. */
const writeBytes = 64 * 1024

export type Page = {
  /** Whether nothing is missing between the cursor and the page. */
  follows: boolean
  /** Empty when there is nothing after the cursor. */
  parts: readonly Part[]
  /** How many entries to ask for next. */
  next: number
}

/** Some entries, up to a cursor; null where none of them is an event. */
export type Part = { to: Cursor; shared: Shared | null }

export type LogPages = ReturnType<typeof createLogPages>

export function createLogPages(log: LogReader, task: string) {
  const reading = new Map<string, Promise<Page>>()
  return { after }

  /** What stands after a cursor, `count` entries of it at most, up to `to`. */
  function after(cursor: Cursor, count: number, to: Cursor): Promise<Page> {
    const name = `${cursor} ${count} ${to}`
    const page = reading.get(name) ?? read(cursor, count, to).finally(() => reading.delete(name))
    reading.set(name, page)
    return page
  }

  async function read(cursor: Cursor, count: number, to: Cursor): Promise<Page> {
    const entries = await log.read(task, cursor, count, to)
    const follows = cursor === origin ? Boolean((await log.state(task))?.isWhole) : entries[0]?.cursor === cursor
    const fresh = entries.filter(entry => compareCursors(entry.cursor, cursor) > 0)
    return { follows, parts: follows ? partsOf(fresh) : [], next: nextCount(entries) }
  }

  function partsOf(entries: readonly LogEntry[]): Part[] {
    const parts: Part[] = []
    let frames: Buffer[] = []
    let bytes = 0
    for (const [i, entry] of entries.entries()) {
      const event = decodeEntry(task, entry)
      if (event) frames.push(encodeEntry(entry, event).bytes)
      bytes += entry.json.length
      if (bytes < writeBytes && i < entries.length - 1) continue
      parts.push({ to: entry.cursor, shared: frames.length > 0 ? share(frames) : null })
      frames = []
      bytes = 0
    }
    return parts
  }
}

function nextCount(page: readonly LogEntry[]): number {
  const bytes = page.reduce((sum, { json }) => sum + json.length, 1)
  return Math.min(1_000, Math.max(10, Math.floor((page.length * pageBytes) / bytes)))
}
