/** The feed as an endless sequence of pages: from a place to its end, and then what follows. */
import type { Cursor } from '@rivulet/protocol'
import type { Readable } from '../store/connection/tenant.ts'
import type { FeedFilter, FeedRead, FeedRequest, TenantEntry } from '../store/feed/read-feed.ts'
import type { FeedTail, TailPage } from './feed-tail.ts'

export type FollowRequest = FeedFilter & Readable & { after: Cursor; signal: AbortSignal }

const pageSize = 500

export async function* followFeed(
  { read, tail }: { read(request: FeedRequest): Promise<FeedRead>; tail: FeedTail },
  { tenant, agents = null, after, signal, agent, types }: FollowRequest,
): AsyncGenerator<TailPage, never, void> {
  let place = after
  for (;;) {
    const page = await read({ after: place, limit: pageSize, agent, types })
    place = page.next
    yield { entries: page.entries, place }
    if (page.isFull) continue
    for (;;) {
      const live = await tail.next(tenant, place, signal)
      if (!live) break
      place = live.place
      yield { entries: live.entries.filter(isWanted), place }
    }
  }

  /** The tail is of all agents: the database has not filtered it. */
  function isWanted(entry: TenantEntry): boolean {
    if (agents !== null && !agents.includes(entry.agent)) return false
    return (agent === undefined || entry.agent === agent) && (types === undefined || types.includes(entry.type))
  }
}
