/** Where a viewer begins: at the cursor it brings, if everything after it can still be sent, and otherwise with a snapshot. */
import type { LogReader } from '@rivulet/broker'
import { type Cursor, compareCursors, origin, type TaskId } from '@rivulet/protocol'
import { isBeforeLog } from '../../log/log-fold.ts'
import type { Tenant } from '../../store/connection/tenant.ts'
import type { Feed } from '../feed.ts'
import type { Hub } from '../hub.ts'
import type { ViewerStart } from './viewer.ts'

export type StreamRequest = {
  /**
   * The last event that it has; null for a viewer that has nothing, and gets a snapshot. `log`: it has nothing either, and gets the events of the log
   * after its first entry, if there is a log.
   */
  cursor: Cursor | 'log' | null
  /** It has a part of the event at the cursor, and not all of it: it gets a snapshot. */
  isInside?: boolean
  /** Stay when the task has ended. */
  isFollowing: boolean
}

/** Null when it has everything there will be. */
export async function findPlace(
  hub: Pick<Hub, 'open'>,
  log: LogReader,
  { tenant, task }: { tenant: Tenant; task: TaskId },
  request: StreamRequest,
): Promise<{ feed: Feed; begin: ViewerStart } | null> {
  const { isFollowing, isInside = false } = request
  const feed = await hub.open(tenant, task)
  const cursor = request.cursor === 'log' ? await firstCursor(log, task) : request.cursor
  // Asked first, because a push may be on its way, and because the ring counts only for a log that still lives.
  if (cursor !== null || feed.isSettled()) await feed.check().then(feed.known)
  if (cursor === null) return { feed, begin: { kind: 'snapshot', reason: 'join' } }
  const loads = feed.loads()
  const isKnown = !isInside && (await holds(feed, log, cursor))
  if (!isInside && !isFollowing && feed.isAtEnd(cursor)) return null
  return { feed, begin: isKnown ? { kind: 'after', cursor, loads } : { kind: 'snapshot', reason: 'gap', clientCursor: cursor } }
}

async function firstCursor(log: LogReader, task: TaskId): Promise<Cursor | null> {
  const known = await log.state(task)
  if (!known || known.isStale) return null
  const [entry] = await log.read(task, known.begin ?? origin, 1, known.cursor)
  return entry?.cursor ?? null
}

/** Whether everything after a cursor can still be sent. */
export async function holds(feed: Feed, log: LogReader, cursor: Cursor): Promise<boolean> {
  if (feed.isAt(cursor) || feed.ring().holds(cursor)) return true
  const known = await log.state(feed.task)
  // A feed that does not stand on a stale log has found that it lacks something.
  if (!known || (known.isStale && known.cursor !== feed.position())) return false
  if (isBeforeLog(cursor)) return known.isWhole
  if (known.begin && compareCursors(cursor, known.begin) < 0) return false
  const [entry] = await log.read(feed.task, cursor, 1, known.cursor)
  return entry?.cursor === cursor
}
