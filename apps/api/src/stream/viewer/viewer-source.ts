/** The source of a viewer's next events, and the only changes of it: a closed set, so that no path of a viewer can skip a snapshot that is due. */
import type { SnapshotReason } from '@rivulet/protocol'

export type ViewerSource =
  /** Replaying: pages of the log, each of about `count` entries. */
  | { at: 'log'; count: number }
  /** Live: the next frame of the ring. */
  | { at: 'ring' }
  /** A snapshot before anything else, once every promise that it `waits` for is fulfilled. */
  | { at: 'snapshot'; reason: SnapshotReason; waits: number }

export type SourceChange =
  /** The viewer has missed something. */
  | { kind: 'missed'; reason: SnapshotReason }
  /** A snapshot is due and has to wait for something, or for one thing less. */
  | { kind: 'awaiting'; reason: SnapshotReason }
  | { kind: 'awaited' }
  | { kind: 'snapshot sent' }
  /** A page of the log was read; `next` is null if the log no longer holds everything after the viewer's cursor. */
  | { kind: 'page read'; next: number | null }
  | { kind: 'log read' }
  | { kind: 'drained' }

export function nextSource(source: ViewerSource, change: SourceChange): ViewerSource {
  const waits = source.at === 'snapshot' ? source.waits : 0
  switch (change.kind) {
    case 'missed': {
      // A viewer that was sent nothing yet has missed nothing.
      const isNew = source.at === 'snapshot' && source.reason === 'join'
      return { at: 'snapshot', reason: isNew ? 'join' : change.reason, waits }
    }
    case 'awaiting':
      return { at: 'snapshot', reason: change.reason, waits: waits + 1 }
    case 'awaited':
      return source.at === 'snapshot' ? { ...source, waits: waits - 1 } : source
    case 'snapshot sent':
      return { at: 'ring' }
    case 'page read':
      return change.next === null ? { at: 'snapshot', reason: 'gap', waits: 0 } : { at: 'log', count: change.next }
    case 'log read':
      return source.at === 'log' ? { at: 'ring' } : source
    case 'drained':
      // Another object than before, so that a replay that still waits for its page is over.
      return source.at === 'log' ? { ...source } : source
    default:
      throw change satisfies never
  }
}
