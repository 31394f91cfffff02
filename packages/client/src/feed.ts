/** The feed: every change of the tenant's tasks and turns, in order, page by page or as it happens. */
import type { FeedEntry, FeedEntryType, FeedPage } from '@rivulet/protocol'
import { type CallOptions, type Http, readEntity, readJson } from './http/http.ts'
import { leavable } from './stream/leavable.ts'
import { resumedFrames } from './stream/resumed-frames.ts'
import type { StreamDeps } from './stream/task-stream.ts'

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

export function createFeedCalls(deps: StreamDeps): FeedCalls {
  const { call }: Http = deps.http
  return {
    list: (query = {}, own) => call({ method: 'GET', path: '/v1/feed', query: paramsOf(query), ...own, read: readPage }),
    follow: ({ after, signal, onStatus, ...filter } = {}) =>
      leavable(signal, async function* (leaving) {
        const pathAfter = (place: string | undefined) => `/v1/feed?${new URLSearchParams(paramsOf({ ...filter, after: place }))}`
        for await (const { event, data } of resumedFrames(deps, { pathAfter, after, onStatus, signal: leaving })) {
          if (event !== 'open') yield readEntry(JSON.parse(data))
        }
      }),
  }
}

function paramsOf({ agent, types, after, limit }: FeedListQuery): Record<string, string> {
  return {
    ...(after !== undefined && { after }),
    ...(agent !== undefined && { agent }),
    ...(types !== undefined && { types: types.join(',') }),
    ...(limit !== undefined && { limit: String(limit) }),
  }
}

function readPage(response: Response): Promise<FeedPage> {
  return readJson(response, ({ data, next }) => {
    if (!Array.isArray(data) || typeof next !== 'string') throw new Error('The response is not a page of the feed')
    return { data: data.map(readEntry), next }
  })
}

function readEntry(value: unknown): FeedEntry {
  return readEntity<FeedEntry>(value, 'feedEntry')
}
