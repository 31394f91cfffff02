/** Encodes the entries of a log as SSE frames. Plain text deltas, which are nearly all entries, are framed without being parsed. */
import { charsOf, type LogEntry } from '@rivulet/broker'
import type { Event, TaskId } from '@rivulet/protocol'
import { decodeEntry } from '../log/log-fold.ts'
import { isPlainDelta } from '../log/plain-delta.ts'
import type { Slab } from './slab.ts'
import { encodeEntry, encodeFrame, type Frame } from './sse-frame.ts'

/** `event` is null for a text delta that was not parsed. */
type EntryFrame = { frame: Frame; event: Event | null }

/**
 * Null for an entry that is not an event of this task.
 *
 * @param slab of the ring that gets the frame
 */
export function frameEntry(task: TaskId, entry: LogEntry, slab?: Slab): EntryFrame | null {
  const { cursor, index, json } = entry
  if (typeof index === 'number' && isPlainDelta(task, charsOf(json)))
    return { frame: encodeFrame(cursor, 'message.delta', json, index, null, slab), event: null }
  const event = decodeEntry(task, entry)
  return event && { frame: encodeEntry(entry, event, slab), event }
}
