/**
 * The state of a feed: the source of its events, and whether it reads that source now. `nextFeedState` makes every change of it, so that no path of a feed
 * can take a push during a reading, or keep the end of a log that it has left.
 */
import type { Push } from '@rivulet/broker'
import type { Cursor } from '@rivulet/protocol'

/**
 * A feed has its events from a log that goes on (`live`), from a log before a restart of Redis, which is right as far as it goes but may have lost its end
 * (`stale`), or from the rows of Postgres (`rows`).
 */
export type Ground = 'live' | 'stale' | 'rows'

/** If no log goes on, Postgres has the cursor of an ended task's last end; null until the feed has compared itself with the rows. */
type FeedSource = { ground: 'live' } | { ground: 'stale' | 'rows'; endCursor: Cursor | null }

export type FeedState =
  | { at: 'rest'; source: FeedSource }
  /** Reading the log or the rows. The feed takes what is `pushed` meanwhile afterwards. */
  | { at: 'reading'; source: FeedSource; done: Promise<void>; pushed: Push[] }

export type FeedChange =
  /** A reading has begun; one that is under way goes on instead. */
  | { kind: 'reading'; done: Promise<void>; pushed: Push[] }
  | { kind: 'read' }
  /** Everything was replaced. */
  | { kind: 'loaded'; ground: Ground }
  /** The log goes on where the feed stands. */
  | { kind: 'log continues' }
  /** There is no log that goes on, and the rows say what the feed says. */
  | { kind: 'rows agree'; endCursor: Cursor | null }

export function nextFeedState(state: FeedState, change: FeedChange): FeedState {
  switch (change.kind) {
    case 'reading':
      return state.at === 'reading' ? state : { at: 'reading', source: state.source, done: change.done, pushed: change.pushed }
    case 'read':
      return { at: 'rest', source: state.source }
    case 'loaded':
      return { ...state, source: change.ground === 'live' ? { ground: 'live' } : { ground: change.ground, endCursor: null } }
    case 'log continues':
      return { ...state, source: { ground: 'live' } }
    case 'rows agree':
      return { ...state, source: { ground: state.source.ground === 'rows' ? 'rows' : 'stale', endCursor: change.endCursor } }
    default:
      throw change satisfies never
  }
}
