/** The feed: every change of the tenant's tasks and turns, in order, page by page or as it happens. */
import type { FeedEntry, FeedEntryType, FeedPage } from '@rivulet/contract/feed'
import type { CallOptions, Http, Query } from './http/http.ts'
import { readFields, toEntity } from './http/responses.ts'
import type { ConnectionStatus } from './stream/connection-status.ts'
import { leavable } from './stream/leavable.ts'
import type { StreamDeps } from './stream/reconnecting.ts'
import { resumedFrames } from './stream/resumed-frames.ts'

export type FeedFilter = { agent?: string | undefined; types?: readonly FeedEntryType[] | undefined }

/** At most 100 a page. `after` is `next` of the page before, or `seq` of an entry; without it the page begins with the oldest entry that is kept. */
export type FeedListQuery = FeedFilter & { after?: string | undefined; limit?: number | undefined }

/** Without `after`, with the next change. */
export type FollowOptions = FeedFilter & {
  after?: string | undefined
  signal?: AbortSignal | undefined
  /** `live`: connected. `waiting`: cut off, and reconnecting. */
  onStatus?: ((status: 'live' | 'waiting') => void) | undefined
}

export type FeedCalls = {
  list(query?: FeedListQuery, options?: CallOptions): Promise<FeedPage>
  /** Reconnects by itself, and resumes exactly. Ends when it is left, or when its signal aborts. */
  follow(options?: FollowOptions): AsyncIterableIterator<FeedEntry, void, void>
}

const path = '/v1/feed'

export function createFeedCalls(deps: StreamDeps): FeedCalls {
  const { call }: Http = deps.http
  return {
    list: (query, own) => call({ path, query: queryOf(query), ...own, read: readFields<FeedPage>('data:feedEntry[] next') }),
    follow: ({ after, signal, onStatus: tell, ...filter } = {}) =>
      leavable(signal, async function* (leaving) {
        const onStatus = (status: ConnectionStatus) => {
          if (status === 'live' || status === 'waiting') tell?.(status)
        }
        for await (const { event, data } of resumedFrames(deps, { path, query: queryOf(filter), after, onStatus, signal: leaving })) {
          if (event !== 'open') yield toEntity<FeedEntry>(JSON.parse(data), 'feedEntry')
        }
      }),
  }
}

function queryOf({ types, ...query }: FeedListQuery = {}): Query {
  return { ...query, types: types?.join(',') }
}
