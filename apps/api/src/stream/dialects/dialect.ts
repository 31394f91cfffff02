/**
 * The seam to the protocols of other front ends: a dialect turns the events of a task into the chunks of another protocol.
 *
 * A dialect knows its protocol and nothing of sockets, viewers or SSE frames of ours; `dialect-response.ts` writes what it returns. A dialect
 * must be deterministic: from the same events, a stream makes the same chunks, so that a client can resume at any API process.
 */

import type { StreamFormat } from '@rivulet/contract/fields'
import type { Cursor, Event, TaskId, TokenEvent, WireEvent } from '@rivulet/protocol'

export type Dialect<Chunk extends object = object> = {
  /** For logs. */
  readonly name: string
  /** Whether a stream takes the events of children. */
  readonly hasChildren?: true
  /** The scope of one response. `turn`: the response ends with its turn, by `ending`. `task`: it ends with the task, and may follow the task beyond. */
  readonly scope: 'turn' | 'task'
  /** Headers of the response, beside those of every event stream. */
  readonly headers: Readonly<Record<string, string>>
  open(options: StreamOptions): Promise<DialectStream<Chunk>>
  /** The chunk as text. `isLast`: it is the last chunk of the event at the cursor, so that a client which has it has the whole event. */
  encode(chunk: Chunk, cursor: Cursor, isLast: boolean): string
  /** Follows the last chunk of a response that is complete. */
  readonly ending: string
  /** The whole response from the rows, for a viewer whose place is not in the log; null where it has to follow the task by snapshots. */
  stored?(): Promise<Chunk[] | null>
}

/** Those that `?format=` names. */
export type Formats = Readonly<Record<StreamFormat, Dialect>>

export type StreamOptions = {
  task: TaskId
  /** The turn to stream, for a dialect whose scope is a turn. Default: the dialect chooses. */
  turnNumber?: number | undefined
  /** For a client that resumes: the events of the log up to its cursor. Without it, the client has nothing, or a snapshot comes first. */
  received?: AsyncIterable<LoggedEvent> | undefined
  /** The client has the turn up to what it waited for, and has just responded to that. */
  isContinued?: boolean | undefined
  /**
   * For a dialect that has children: lets the stream take the events of a child, too, from the start of its log (`log`) or from a snapshot on. A child that
   * cannot be followed is `deleted`.
   */
  follow?: ((child: TaskId, from: 'log' | null) => void) | undefined
}

export type LoggedEvent = { cursor: Cursor; event: Event }

export type DialectStream<Chunk extends object = object> = {
  /** Returns the chunks of an event, in order. A snapshot takes the place of all events before it. */
  take(cursor: Cursor, event: Event | WireEvent | TokenEvent): Chunk[]
  /** Whether the response is complete: no chunk follows. */
  hasEnded(): boolean
  /** Whether a client can resume at the cursor of this event. Default: at each. */
  isPlace?(event: Event | WireEvent | TokenEvent): boolean
}
