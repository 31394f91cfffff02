/** Where a viewer of one message begins: at the message's first event, at the cursor it brings, or with the message as Postgres has it. */
import type { LogReader } from '@rivulet/broker'
import { type Cursor, compareCursors, type Message, origin, RivuletError, type Snapshot, type TaskId } from '@rivulet/protocol'
import type { Tenant } from '../../store/connection/tenant.ts'
import type { Feed } from '../feed.ts'
import type { Hub } from '../hub.ts'
import { encodeRetry, encodeWireEvent } from '../sse-frame.ts'
import type { ViewerStart } from '../viewer/viewer.ts'
import { holds } from '../viewer/viewer-place.ts'
import { encodeEnd, snapshotOf } from './message-response.ts'

type MessagePlace =
  /** The client has everything there will be. */
  | { kind: 'over' }
  /** The log no longer has the message: its whole stream, as text. */
  | { kind: 'stored'; text: string }
  | { kind: 'live'; feed: Feed; begin: ViewerStart }

type MessagePlaceDeps = {
  hub: Pick<Hub, 'open'>
  log: LogReader
  /** The message as stored. */
  read: () => Promise<Message | undefined>
}

/** Throws `not_found` for a message that is not there and will not be, because no turn is left to send it. */
export async function findMessagePlace(
  { hub, log, read }: MessagePlaceDeps,
  { tenant, task, index }: { tenant: Tenant; task: TaskId; index: number },
  cursor: Cursor | null,
): Promise<MessagePlace> {
  const feed = await hub.open(tenant, task)
  // Asked first, because a push may be on its way, and because the ring counts only for a log that still lives.
  await feed.check().then(feed.known)
  const loads = feed.loads()
  const span = feed.messageSpan(index)
  const from = cursor ?? span?.before ?? null
  const isKnown = from !== null && (await holds(feed, log, from))
  if (cursor && isKnown && span?.closedAt && compareCursors(span.closedAt, cursor) <= 0) return { kind: 'over' }
  if (span && isKnown) return { kind: 'live', feed, begin: { kind: 'after', cursor: from, loads } }

  const stored = await read()
  if (stored) {
    await feed.ready()
    // A client that stands in the log has received the message before the log began.
    const place = feed.placeOf(cursor ?? origin)
    const isOver = cursor !== null && (isKnown || place === cursor)
    return isOver ? { kind: 'over' } : { kind: 'stored', text: textOf(feed, stored, place, cursor ? 'gap' : 'join') }
  }
  // The message may have begun while Postgres was asked.
  const begun = feed.messageSpan(index)
  if (!begun && feed.isSettled()) throw new RivuletError('not_found', 'No such message in this task')
  return { kind: 'live', feed, begin: start() }

  function start(): ViewerStart {
    if (cursor && isKnown) return { kind: 'after', cursor, loads }
    if (cursor) return { kind: 'snapshot', reason: 'gap', clientCursor: cursor }
    // Its turn has not ended, but its first event is lost.
    if (span) return { kind: 'snapshot', reason: 'join' }
    return { kind: 'after', cursor: begun?.before ?? feed.position(), loads: feed.loads() }
  }
}

function textOf(feed: Feed, message: Message, place: Cursor, reason: Snapshot['reason']): string {
  const { index } = message
  const whole = feed.snapshot(reason, place, place).shared.frames[0]?.event as Snapshot
  const status = message.status === 'streaming' ? undefined : message.status
  const frames = [encodeWireEvent(place, snapshotOf(whole, index, message)), encodeEnd(place, { task: feed.task, index, status })]
  return `${encodeRetry()}${frames.map(({ bytes }) => bytes).join('')}`
}
