/** Opens the stream of a dialect for a viewer, with the events that the viewer's client has received before. */
import type { LogReader } from '@rivulet/broker'
import { type Cursor, compareCursors, origin, type TaskId } from '@rivulet/protocol'
import { decodeEntry, isBeforeLog, readLog } from '../../log/log-fold.ts'
import type { ViewerStart } from '../viewer/viewer.ts'
import type { Dialect, DialectStream, LoggedEvent, StreamOptions } from './dialect.ts'

export function openStream(
  log: LogReader,
  dialect: Dialect,
  { begin, ...wanted }: Pick<StreamOptions, 'task' | 'turnNumber' | 'isContinued' | 'follow'> & { begin: ViewerStart },
): Promise<DialectStream> {
  const isBack = begin.kind === 'after' && begin.cursor !== origin
  return dialect.open({ ...wanted, received: isBack ? eventsUpTo(log, wanted.task, begin.cursor) : undefined })
}

/**
 * A viewer that resumes may be served from the memory of this process, while its turn was trimmed from the log or the log has expired. Then it is unknown
 * what its client has, and it gets a snapshot.
 */
export async function beginInDialect(log: LogReader, task: TaskId, begin: ViewerStart): Promise<ViewerStart> {
  if (begin.kind !== 'after' || isBeforeLog(begin.cursor)) return begin
  const known = await log.state(task)
  const [first] = known ? await log.read(task, known.begin ?? origin, 1, known.cursor) : []
  return first && compareCursors(first.cursor, begin.cursor) <= 0 ? begin : { kind: 'snapshot', reason: 'gap', clientCursor: begin.cursor }
}

async function* eventsUpTo(log: LogReader, task: TaskId, cursor: Cursor): AsyncGenerator<LoggedEvent> {
  const known = await log.state(task)
  for await (const page of readLog(log, task, known?.begin ?? origin, cursor)) {
    for (const entry of page) {
      const event = decodeEntry(task, entry)
      if (event) yield { cursor: entry.cursor, event }
    }
  }
}
