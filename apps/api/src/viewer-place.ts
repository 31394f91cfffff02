/** Where a viewer begins: at the cursor it brings, if everything after it can still be told, and otherwise with a snapshot. */
import type { LogReader } from '@rivulet/broker'
import { type Cursor, compareCursors, origin } from '@rivulet/protocol'
import type { Feed } from './feed.ts'
import type { Hub } from './hub.ts'
import type { ViewerStart } from './viewer.ts'

export type Wish = {
  /** What it has heard last; null for whoever has heard nothing. */
  cursor: Cursor | null
  /** Stay when the task has ended. */
  isFollowing: boolean
}

/** Null when it has heard everything there will be. */
export async function findPlace(
  hub: Pick<Hub, 'open'>,
  log: LogReader,
  task: string,
  wish: Wish,
): Promise<{ feed: Feed; begin: ViewerStart } | null> {
  const { cursor, isFollowing } = wish
  const feed = await hub.open(task)
  // Before anybody is told that nothing is left to come, the log is asked: a push may be on its way.
  if (feed.isSettled()) await feed.check().then(feed.ready)
  if (cursor === null) return { feed, begin: { kind: 'snapshot', reason: 'join' } }
  const isKnown = await holds(feed, log, cursor)
  if (cursor === feed.position() && !isFollowing && feed.isSettled()) return null
  return { feed, begin: isKnown ? { kind: 'after', cursor } : { kind: 'snapshot', reason: 'gap' } }
}

/** Whether everything after a cursor can still be told. */
async function holds(feed: Feed, log: LogReader, cursor: Cursor): Promise<boolean> {
  if (cursor === feed.position() || feed.ring.holds(cursor)) return true
  const known = await log.state(feed.task)
  if (cursor === origin) return known?.isWhole ?? false
  if (!known || (known.begin && compareCursors(cursor, known.begin) < 0)) return false
  const [entry] = await log.read(feed.task, cursor, 1, known.cursor)
  return entry?.cursor === cursor
}
