/**
 * Followers of the feed over SSE. Each has a place and no queue: what follows is read only when its socket has room, so a slow client holds one page.
 * A client that takes nothing for too long is cut.
 */
import type { Cursor } from '@rivulet/protocol'
import type { Readable } from '../store/connection/tenant.ts'
import { encodeRetry, idLine, pieceOf } from '../stream/sse-frame.ts'
import { type SseResponse, share } from '../stream/sse-response.ts'
import type { TailPage } from './feed-tail.ts'
import { type FollowRequest, followFeed } from './follow-feed.ts'

export type FeedFollower = {
  drained(): void
  /** Ends the response, so that its client comes back to another process. */
  leave(): void
  gone(): void
}

export type FeedFollowers = {
  follow(response: SseResponse, request: Omit<FollowRequest, 'signal'>): FeedFollower
  /** Ends all responses. */
  close(): void
}

export type FeedFollowersDeps = Omit<Parameters<typeof followFeed>[0], 'read'> & {
  readFor(whose: Readable): Parameters<typeof followFeed>[0]['read']
  stallMs: number
  onError: (error: unknown) => void
}

const heartbeatSeconds = 15

/** Whether the socket takes more. `unsent` bytes have not changed since `movedAt`. */
type Socket = { at: 'open' } | { at: 'full'; unsent: number; movedAt: number; onRoom: () => void }

export function createFeedFollowers({ readFor, tail, stallMs, onError }: FeedFollowersDeps): FeedFollowers {
  const followers = new Map<FeedFollower, { tick(second: number): void }>()
  let second = 0
  const clock = setInterval(() => {
    second += 1
    for (const { tick } of followers.values()) tick(second)
  }, 1_000)
  clock.unref()
  return { follow, close }

  function close(): void {
    clearInterval(clock)
    for (const follower of followers.keys()) follower.leave()
    tail.close()
  }

  function follow(response: SseResponse, request: Omit<FollowRequest, 'signal'>): FeedFollower {
    const leaving = new AbortController()
    const beatSecond = followers.size % heartbeatSeconds
    let { after: place } = request
    let socket: Socket = { at: 'open' }
    const follower: FeedFollower = { drained, leave, gone }
    followers.set(follower, { tick })
    run().catch(error => {
      if (leaving.signal.aborted) return
      onError(error)
      response.destroy()
    })
    return follower

    async function run(): Promise<void> {
      write(`${encodeRetry()}${openFrame(place)}`)
      const pages = followFeed({ read: readFor(request), tail }, { ...request, signal: leaving.signal })
      for await (const page of pages) {
        if (leaving.signal.aborted) return
        if (page.entries.length > 0) write(framesOf(page))
        place = page.place
        await room()
      }
    }

    function write(text: string): void {
      if (response.write(share([pieceOf(Buffer.from(text))])) || socket.at === 'full') return
      socket = { at: 'full', unsent: response.unsentBytes(), movedAt: performance.now(), onRoom: () => {} }
    }

    /** Resolves when the socket takes more. */
    function room(): Promise<void> | undefined {
      const full = socket
      if (full.at === 'full') return new Promise(resolve => Object.assign(full, { onRoom: resolve }))
    }

    function drained(): void {
      const before = socket
      socket = { at: 'open' }
      if (before.at === 'full') before.onRoom()
    }

    function tick(at: number): void {
      if (socket.at === 'open') {
        if (at % heartbeatSeconds === beatSecond) write(beat(place))
        return
      }
      const unsent = response.unsentBytes()
      if (unsent !== socket.unsent) Object.assign(socket, { unsent, movedAt: performance.now() })
      else if (performance.now() - socket.movedAt > stallMs) response.destroy()
    }

    function leave(): void {
      if (leaving.signal.aborted) return
      write(encodeRetry().toString())
      response.end()
      gone()
    }

    function gone(): void {
      followers.delete(follower)
      leaving.abort(new Error('The follower has left'))
      drained()
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

/** A heartbeat moves the client's place past entries that its filter leaves out, so that they are not read again after a cut. */
function beat(place: Cursor): string {
  return `: hb${idLine(place)}`
}
