/**
 * The end of the feed, read once for all followers of this process: while at least one waits, one query a poll reads the new entries of all tenants.
 *
 * A follower that stands where the tail stood gets the new entries from it. One that is further behind, because its socket was full, reads pages of its
 * own until it is back.
 */
import { type Cursor, compareCursors } from '@rivulet/protocol'
import type { Tenant } from '../store/connection/tenant.ts'
import type { FeedRead, TenantEntry } from '../store/feed/read-feed.ts'

export type FeedTail = {
  /** The next entries behind `place`, and the place behind them; null when the follower has to read by itself. Rejects with the signal's reason. */
  next(tenant: Tenant, place: Cursor, signal: AbortSignal): Promise<TailPage | null>
  close(): void
}

type FeedTailDeps = {
  /** Entries of all tenants behind a place. */
  read(after: Cursor): Promise<FeedRead>
  pollMs: number
  onError: (error: unknown) => void
}

export type TailPage = { entries: TenantEntry[]; place: Cursor }

type Waiting = { tenant: Tenant; place: Cursor; resolve(page: TailPage | null): void }

/** Whether a poll is due. */
type Polling = { at: 'idle' } | { at: 'waiting'; timer: NodeJS.Timeout } | { at: 'reading' } | { at: 'closed' }

export function createFeedTail({ read, pollMs, onError }: FeedTailDeps): FeedTail {
  const waiting = new Set<Waiting>()
  let polling: Polling = { at: 'idle' }
  /** Where the last poll ended; null after a time without followers, when entries may have been missed. */
  let end: Cursor | null = null
  return { next, close }

  function next(tenant: Tenant, place: Cursor, signal: AbortSignal): Promise<TailPage | null> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const one: Waiting = { tenant, place, resolve: settle }
      waiting.add(one)
      signal.addEventListener('abort', abort)
      schedule()

      function settle(page: TailPage | null): void {
        leave()
        resolve(page)
      }
      function abort(): void {
        leave()
        reject(signal.reason)
      }
      function leave(): void {
        waiting.delete(one)
        signal.removeEventListener('abort', abort)
      }
    })
  }

  function schedule(): void {
    if (polling.at === 'idle') polling = { at: 'waiting', timer: setTimeout(poll, pollMs) }
  }

  async function poll(): Promise<void> {
    polling = { at: 'reading' }
    const asked = [...waiting]
    if (asked.length === 0) end = null
    try {
      if (asked.length > 0) hand(asked, end === null ? null : await read(end))
    } catch (error) {
      onError(error)
    }
    if ((polling as Polling).at === 'closed') return
    polling = { at: 'idle' }
    if (waiting.size > 0 || end !== null) schedule()
  }

  function hand(asked: readonly Waiting[], found: FeedRead | null): void {
    const from = end
    // Without a poll before this one, the tail begins at the place of the follower that is furthest.
    end = found?.next ?? latestOf(asked)
    for (const one of asked) {
      if (!found || from === null || compareCursors(one.place, from) < 0) {
        if (compareCursors(one.place, end) < 0) one.resolve(null)
        continue
      }
      const entries = found.entries.filter(({ tenant, seq }) => tenant === one.tenant && compareCursors(seq, one.place) > 0)
      if (compareCursors(one.place, end) < 0) one.place = end
      if (entries.length > 0) one.resolve({ entries, place: one.place })
    }
  }

  function close(): void {
    if (polling.at === 'waiting') clearTimeout(polling.timer)
    polling = { at: 'closed' }
  }
}

function latestOf(asked: readonly Waiting[]): Cursor {
  return asked.reduce((latest, { place }) => (compareCursors(place, latest) > 0 ? place : latest), asked[0]?.place ?? '0-0')
}
