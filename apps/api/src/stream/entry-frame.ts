/** Encodes the entries of a log as SSE frames. Plain text deltas, which are nearly all entries, are framed without being parsed. */
import type { LogEntry } from '@rivulet/broker'
import type { Event, TaskId } from '@rivulet/protocol'
import { decodeEntry } from '../log/log-fold.ts'
import { createPlainDeltas } from '../log/plain-delta.ts'
import { encodeEntry, encodeFrame, type Frame } from './sse-frame.ts'

/** `event` is null for a text delta that was not parsed. */
export type EntryFrame = { frame: Frame; event: Event | null }

/** Null for an entry that is not an event of this task. */
export function createEntryFrames(task: TaskId): (entry: LogEntry) => EntryFrame | null {
  const deltas = createPlainDeltas(task)
  return entry => {
    const index = deltas.indexOf(entry.json)
    if (index !== null) return { frame: encodeFrame(entry.cursor, 'message.delta', entry.json, index), event: null }
    const event = decodeEntry(task, entry)
    return event && { frame: encodeEntry(entry, event), event }
  }
}
