/**
 * Followers of the feed over SSE. Each has a place and no queue: what follows is read only when its socket has room, so a slow client holds one page.
 */
import type { Cursor } from '@rivulet/protocol'
import type { Readable } from '../store/connection/tenant.ts'
import { encodeRetry, idLine, pieceOf } from '../stream/sse-frame.ts'
import { share } from '../stream/sse-response.ts'
import type { SseWriter } from '../stream/sse-writer.ts'
import type { TailPage } from './feed-tail.ts'
import { type FollowRequest, followFeed } from './follow-feed.ts'

type FeedFollower = {
  drained(): void
  /** Ends the response, so that its client comes back to another process. */
  leave(): void
  gone(): void
}

export type FeedFollowers = {
  follow(response: SseWriter, request: Omit<FollowRequest, 'signal'>): FeedFollower
  /** Ends all responses. */
  close(): void
}

type FeedFollowersDeps = Omit<Parameters<typeof followFeed>[0], 'read'> & {
  readFor(whose: Readable): Parameters<typeof followFeed>[0]['read']
  onError: (error: unknown) => void
}

export function createFeedFollowers({ readFor, tail, onError }: FeedFollowersDeps): FeedFollowers {
  const followers = new Set<FeedFollower>()
  return { follow, close }

  function close(): void {
    for (const follower of followers) follower.leave()
    tail.close()
  }

  function follow(response: SseWriter, request: Omit<FollowRequest, 'signal'>): FeedFollower {
    const leaving = new AbortController()
    let { after: place } = request
    // It moves the client's place past entries that its filter leaves out, so that they are not read again after a cut.
    response.heartbeat = () => share([pieceOf(Buffer.from(`: hb${idLine(place)}`))])
    const follower: FeedFollower = { drained: () => {}, leave, gone }
    followers.add(follower)
    run().catch(error => {
      if (leaving.signal.aborted) return
      onError(error)
      response.destroy()
    })
    return follower

    async function run(): Promise<void> {
      response.send(`${encodeRetry()}${openFrame(place)}`)
      const pages = followFeed({ read: readFor(request), tail }, { ...request, signal: leaving.signal })
      for await (const page of pages) {
        if (leaving.signal.aborted) return
        if (page.entries.length > 0) response.send(framesOf(page))
        place = page.place
        await response.room()
      }
    }

    function leave(): void {
      response.leave()
      gone()
    }

    function gone(): void {
      followers.delete(follower)
      leaving.abort(new Error('The follower has left'))
    }
  }
}

/** The first frame says where the feed begins for this client, so that a client without an entry yet can resume, too. */
function openFrame(place: Cursor): string {
  return `event: open\ndata: ${JSON.stringify({ type: 'open', seq: place })}${idLine(place)}`
}

function framesOf({ entries }: TailPage): string {
  return entries.map(({ tenant: _, ...entry }) => `event: ${entry.type}\ndata: ${JSON.stringify(entry)}${idLine(entry.seq)}`).join('')
}
