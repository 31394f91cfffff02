/** Where a viewer begins: at the cursor it brings, if everything after it can still be told, and otherwise with a snapshot. */
import type { LogReader } from '@rivulet/broker'
import { type Cursor, compareCursors, origin } from '@rivulet/protocol'
import type { Tenant } from '../store/connection/tenant.ts'
import type { Feed } from './feed.ts'
import type { Hub } from './hub.ts'
import type { ViewerStart } from './viewer.ts'

export type StreamRequest = {
  /** What it has heard last; null for whoever has heard nothing. */
  cursor: Cursor | null
  /** It has a part of the event at the cursor, and not all of it: it gets a snapshot. */
  isInside?: boolean
  /** Stay when the task has ended. */
  isFollowing: boolean
}

/** Null when it has heard everything there will be. */
export async function findPlace(
  hub: Pick<Hub, 'open'>,
  log: LogReader,
  { tenant, task }: { tenant: Tenant; task: string },
  request: StreamRequest,
): Promise<{ feed: Feed; begin: ViewerStart } | null> {
  const { cursor, isFollowing, isInside = false } = request
  const feed = await hub.open(tenant, task)
  // Before anybody is told that nothing is left to come, or who has heard more elsewhere is answered, the log is asked: a push may be on its way.
  const isAhead = cursor !== null && compareCursors(cursor, feed.position()) > 0
  if (feed.isSettled() || isAhead) await feed.check().then(feed.ready)
  if (cursor === null) return { feed, begin: { kind: 'snapshot', reason: 'join' } }
  const loads = feed.loads()
  const isKnown = !isInside && (await holds(feed, log, cursor))
  if (!isInside && !isFollowing && feed.isSettled() && feed.placeOf(cursor) === cursor) return null
  if (isKnown) return { feed, begin: { kind: 'after', cursor, loads } }
  // It may have heard more elsewhere than this feed has: a snapshot must not take it back to what it knows.
  await feed.check().then(feed.ready)
  return { feed, begin: { kind: 'snapshot', reason: 'gap', heard: cursor } }
}

/** Whether everything after a cursor can still be told. */
async function holds(feed: Feed, log: LogReader, cursor: Cursor): Promise<boolean> {
  if (feed.isAt(cursor) || feed.ring.holds(cursor)) return true
  const known = await log.state(feed.task)
  // A feed that does not stand on a log of another life has found that it lacks something.
  if (!known || (known.isStale && known.cursor !== feed.position())) return false
  if (cursor === origin) return known.isWhole
  if (known.begin && compareCursors(cursor, known.begin) < 0) return false
  const [entry] = await log.read(feed.task, cursor, 1, known.cursor)
  return entry?.cursor === cursor
}
