/**
 * One response for the viewers of several tasks. Each viewer writes to its own part, as to a socket of its own, and knows nothing of the others.
 *
 * For a client of our own events, the id of a frame gets its task in front, and what the viewers write in one tick leaves in one write. A dialect gets the
 * frames as they are, each with its task in its event. A part that ends without `end` or `deleted` ends the whole response, because its client would wait for
 * that task in vain: it comes back with all its cursors.
 */
import type { TaskId } from '@rivulet/protocol'
import type { Watching } from '../hub.ts'
import { type Frame, type FrameType, type Piece, pieceOf } from '../sse-frame.ts'
import { emptyChunk, Shared, type SseResponse } from '../sse-response.ts'
import { SseWriter } from '../sse-writer.ts'

/** The most that is handed to the socket at a time. */
const writeBytes = 64 * 1024

export type ManyResponse = Pick<Watching, 'drained' | 'gone' | 'leave'> & {
  /** Resolves when the socket has room; `false` when the response is over. */
  room(): Promise<boolean>
  /** Lets a viewer write the frames of a task. */
  add(task: TaskId, watch: (response: SseResponse) => Watching): void
  /** One more must end before the response does. */
  await(): void
  /** One less. */
  skip(): void
}

/** Hears of the frames that may stand for children of a task. */
type ChildListener = { started(child: TaskId): void; snapshot(task: TaskId): void }

type Part = { task: TaskId; prefix: Buffer; watching: Watching | null; last: FrameType | null }

/** The bytes of a piece for the next write, with a prefix inserted at a place in its source. */
type Pending = { prefix: Buffer; piece: Piece; at: number }

type ManyOptions = { isTagged: boolean; children: ChildListener | null }

const noPrefix = Buffer.alloc(0)

/** @param count how many tasks there are: the response ends when so many have ended. */
export function respondToMany(response: SseResponse, count: number, { isTagged, children }: ManyOptions): ManyResponse {
  const parts = new Set<Part>()
  /** The parts whose viewers wait for the socket. */
  const blocked = new Set<Part>()
  const writer = new SseWriter(response)
  let left = count
  let pending: Pending[] = []
  let bytes = 0
  let hasRetry = false
  return { room: () => writer.room(), add, await: awaitOne, skip, drained, gone, leave }

  function add(task: TaskId, watch: (response: SseResponse) => Watching): void {
    if (writer.at === 'ended') return
    const part: Part = { task, prefix: Buffer.from(`${task}/`), watching: null, last: null }
    parts.add(part)
    part.watching = watch({
      write: shared => write(part, shared),
      end: () => end(part),
      destroy: () => writer.destroy(),
    })
    // The viewer has ended at once.
    if (!parts.has(part)) part.watching.gone()
  }

  function write(part: Part, shared: Shared): boolean {
    if (writer.at === 'ended') return false
    const { frames } = shared
    if (frames.length === 0) writeBare(shared)
    for (const frame of frames) {
      part.last = frame.type
      if (isTagged) put(part.prefix, frame, frame.cursorFrom)
      if (children) tellChildren(children, part, frame)
    }
    if (!isTagged && frames.length > 0) pass(shared)
    if (bytes >= writeBytes) flush()
    if (writer.at === 'open') return true
    blocked.add(part)
    return false
  }

  function pass(shared: Shared): void {
    flush()
    writer.write(shared)
  }

  function tellChildren({ started, snapshot }: ChildListener, { task }: Part, frame: Frame): void {
    if (frame.type === 'snapshot') snapshot(task)
    else if (frame.type === 'child.started' && frame.event.type === 'child.started') started(frame.event.child)
  }

  /** `retry`, which is sent once. */
  function writeBare(shared: Shared): void {
    if (hasRetry) return
    hasRetry = true
    put(noPrefix, pieceOf(shared.plain), 0)
  }

  function put(prefix: Buffer, piece: Piece, at: number): void {
    if (pending.push({ prefix, piece, at }) === 1) queueMicrotask(flush)
    bytes += prefix.length + piece.to - piece.from
  }

  function flush(): void {
    if (pending.length === 0 || writer.at === 'ended') return
    const chunk = emptyChunk(bytes)
    let end = chunk.from
    for (const { prefix, piece, at } of pending) {
      end += piece.source.copy(chunk.source, end, piece.from, at)
      chunk.source.set(prefix, end)
      end += prefix.length
      end += piece.source.copy(chunk.source, end, at, piece.to)
    }
    pending = []
    bytes = 0
    writer.write(new Shared(chunk, []))
  }

  function end(part: Part): void {
    const isOver = part.last === 'end' || part.last === 'deleted'
    if (isOver) left -= 1
    if (isOver && left > 0) forget(part)
    else leave()
  }

  function awaitOne(): void {
    left += 1
  }

  function skip(): void {
    left -= 1
    if (left === 0) leave()
  }

  function forget(part: Part): void {
    blocked.delete(part)
    parts.delete(part)
    part.watching?.gone()
  }

  /** Its viewers stay until the connection is closed, because a client that does not read the end is cut. */
  function leave(): void {
    if (writer.at === 'ended') return
    flush()
    writer.end()
  }

  /** The waiting viewers go on one after the other, until the socket is full again. A viewer that has to wait again is last the next time. */
  function drained(): void {
    writer.drained()
    for (const part of blocked) {
      if (writer.at !== 'open') return
      blocked.delete(part)
      part.watching?.drained()
    }
  }

  function gone(): void {
    writer.gone()
    for (const part of parts) forget(part)
  }
}
