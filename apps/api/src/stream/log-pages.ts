/**
 * The log of a task, page by page, for viewers that catch up. Viewers that need the same page at the same time share one read. The parts of a page are
 * kept for viewers that come a little later or have slower sockets, so the log is read, checked and framed once for a crowd.
 */
import { randomUUID } from 'node:crypto'
import { setImmediate as nextRound } from 'node:timers/promises'
import type { LogEntry, LogReader } from '@rivulet/broker'
import { type Cursor, compareCursors, type TaskId } from '@rivulet/protocol'
import { LRUCache } from 'lru-cache'
import { isBeforeLog, nextCount } from '../log/log-fold.ts'
import { frameEntry } from './entry-frame.ts'
import type { Frame } from './sse-frame.ts'
import { type Shared, share } from './sse-response.ts'

/** The part of a log that is in memory while it is sent. */
const pageBytes = 256 * 1024
/** The most that is handed to a socket at a time. */
const writeBytes = 64 * 1024
/** The pages that all logs of a process keep together, and for how long after they were read. */
const keeping = { bytes: 32 * 1024 * 1024, ms: 30_000 }

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

/** The parts that were used last, by the log that they are from and the cursor that they follow. */
export type KeptParts = LRUCache<string, Part>

export type LogPages = ReturnType<typeof createLogPages>

export function createKeptParts(): KeptParts {
  return new LRUCache({ maxSize: keeping.bytes, sizeCalculation: bytesOf, ttl: keeping.ms, ttlAutopurge: true })
}

/** For one life of a log: what is kept of it is never taken for that of another. */
export function createLogPages({ log, task, kept }: { log: LogReader; task: TaskId; kept: KeptParts }) {
  const life = randomUUID()
  const reading = new Map<Cursor, Promise<Page>>()
  return { after }

  /** The entries after a cursor, about `count` entries of it, up to `to` at most. */
  async function after(cursor: Cursor, count: number, to: Cursor): Promise<Page> {
    const parts = keptAfter(cursor)
    if (parts.length > 0) {
      // Others come in between, as they do while Redis is asked.
      await nextRound()
      return { follows: true, parts, next: count }
    }
    const page = reading.get(cursor) ?? read(cursor, count, to).finally(() => reading.delete(cursor))
    reading.set(cursor, page)
    return page
  }

  function keptAfter(cursor: Cursor): Part[] {
    const parts: Part[] = []
    for (let part = kept.get(keyOf(cursor)); part && parts.length < pageBytes / writeBytes; part = kept.get(keyOf(part.to)))
      parts.push(part)
    return parts
  }

  async function read(cursor: Cursor, count: number, to: Cursor): Promise<Page> {
    const entries = await log.read(task, cursor, count, to)
    const follows = isBeforeLog(cursor) ? Boolean((await log.state(task))?.isWhole) : entries[0]?.cursor === cursor
    const fresh = entries.filter(entry => compareCursors(entry.cursor, cursor) > 0)
    const parts = follows ? partsOf(fresh) : []
    keep(cursor, parts)
    return { follows, parts, next: nextCount(entries, pageBytes) }
  }

  function partsOf(entries: readonly LogEntry[]): Part[] {
    const parts: Part[] = []
    let frames: Frame[] = []
    let bytes = 0
    for (const [i, entry] of entries.entries()) {
      const framed = frameEntry(task, entry)
      // Without its event, because the room for what is kept is counted in bytes.
      if (framed) frames.push(framed.event ? framed.frame.copied(null) : framed.frame)
      bytes += entry.json.length
      if (bytes < writeBytes && i < entries.length - 1) continue
      parts.push({ to: entry.cursor, shared: frames.length > 0 ? share(frames) : null })
      frames = []
      bytes = 0
    }
    return parts
  }

  function keep(cursor: Cursor, parts: readonly Part[]): void {
    let from = cursor
    for (const part of parts) {
      kept.set(keyOf(from), part)
      from = part.to
    }
  }

  function keyOf(cursor: Cursor): string {
    return `${life} ${cursor}`
  }
}

/** About what it takes to keep a part: a small buffer holds Node's pool, which it was cut from. */
function bytesOf({ shared }: Part): number {
  return Math.max(shared?.chunked.length ?? 0, Buffer.poolSize)
}
