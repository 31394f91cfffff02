/** Opens the stream of a dialect for a viewer, with the events that the viewer's client has received before. */
import type { LogReader } from '@rivulet/broker'
import { type Cursor, origin, type TaskId } from '@rivulet/protocol'
import { decodeEntry, readLog } from '../../log/log-fold.ts'
import type { ViewerStart } from '../viewer/viewer.ts'
import type { Dialect, DialectStream, LoggedEvent, StreamOptions } from './dialect.ts'

export function openStream(
  log: LogReader,
  dialect: Dialect,
  { begin, ...wanted }: Pick<StreamOptions, 'task' | 'turnNumber' | 'isContinued' | 'follow'> & { begin: ViewerStart },
): Promise<DialectStream> {
  const isBack = begin.kind === 'after' && begin.cursor !== origin
  return dialect.open({ ...wanted, heard: isBack ? eventsUpTo(log, wanted.task, begin.cursor) : undefined })
}

async function* eventsUpTo(log: LogReader, task: TaskId, cursor: Cursor): AsyncGenerator<LoggedEvent> {
  const known = await log.state(task)
  for await (const entry of readLog(log, task, known?.begin ?? origin, cursor)) {
    const event = decodeEntry(task, entry)
    if (event) yield { cursor: entry.cursor, event }
  }
}
