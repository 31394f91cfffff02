/**
 * The response of a viewer of one message: it stands between the viewer, which writes all frames of the task, and the socket.
 *
 * It passes the events that carry the message's index, by the index that stands beside each frame, and the starts of turns that drop or contain the
 * message. A snapshot of the task becomes one of the message. After the event that closes the message it sends `end` and ends the response.
 */
import { encodeByteText } from '@rivulet/broker'
import { type Cursor, type Event, type Message, type MessageEnd, type Snapshot, startedInputs, type TaskId } from '@rivulet/protocol'
import { encodeFrame, encodeWireEvent, type Frame, type Piece } from '../sse-frame.ts'
import { type Shared, type SseResponse, share } from '../sse-response.ts'

/** `left`: the snapshot has no room for the message, so the client has to come back for the stored one. */
type State = 'open' | 'ended' | 'left'

export function respondWithMessage(response: SseResponse, { task, index }: { task: TaskId; index: number }): SseResponse {
  let state: State = 'open'
  return { write, end: () => response.end(), destroy: () => response.destroy() }

  function write(bytes: Shared): boolean {
    // Full for good: the viewer stops, and a client that does not read the end is cut like any other that reads nothing.
    if (state !== 'open') return false
    const { frames } = bytes
    if (frames.length === 0) return response.write(bytes)
    const pieces: Piece[] = []
    for (const frame of frames) if (state === 'open') take(frame, pieces)
    const isFree = pieces.length === 0 || response.write(share(pieces))
    if (isOpen()) return isFree
    response.end()
    return false
  }

  function take(frame: Frame, pieces: Piece[]): void {
    switch (frame.type) {
      case 'snapshot':
        takeSnapshot(frame, pieces)
        return
      case 'turn.started':
        takeStart(frame, pieces)
        return
      case 'end':
        finish(frame, pieces)
        return
      case 'caught_up':
      case 'deleted':
      case 'token':
        pieces.push(frame)
        return
      default:
        if (frame.index !== index) return
        pieces.push(frame)
        if (frame.type === 'message.replaced') finish(frame, pieces, 'complete')
        if (frame.type === 'message.finished') finish(frame, pieces, (frame.event as Event & { type: 'message.finished' }).status)
    }
  }

  function takeStart(frame: Frame, pieces: Piece[]): void {
    const event = frame.event as Event & { type: 'turn.started' }
    const isInput = startedInputs(event).some(input => input.index === index)
    if (isInput || event.firstIndex <= index) pieces.push(frame)
    if (isInput) finish(frame, pieces, 'complete')
  }

  function takeSnapshot(frame: Frame, pieces: Piece[]): void {
    const snapshot = frame.event as Snapshot
    const message = snapshot.messages.find(known => known.index === index)
    if (!message && index < snapshot.messagesFrom) {
      state = 'left'
      return
    }
    pieces.push(encodeWireEvent(frame.cursor, snapshotOf(snapshot, index, message)))
    if (message && message.status !== 'streaming') finish(frame, pieces, message.status)
  }

  function finish({ cursor }: Frame, pieces: Piece[], status?: MessageEnd['status']): void {
    pieces.push(encodeEnd(cursor, { task, index, status }))
    state = 'ended'
  }

  function isOpen(): boolean {
    return state === 'open'
  }
}

/** The part of a task's snapshot that is about one message, which may not exist yet. */
export function snapshotOf({ turns, ...snapshot }: Snapshot, index: number, message: Message | undefined): Snapshot {
  const own = turns.filter(({ number }) => number === message?.turn)
  return { ...snapshot, turns: own, messages: message ? [message] : [], messagesFrom: index }
}

/** The end of the stream of one message. */
export function encodeEnd(cursor: Cursor, { status, ...place }: { task: TaskId; index: number; status: MessageEnd['status'] }): Frame {
  const end: MessageEnd = { type: 'end', ...place, ...(status && { status }) }
  return encodeFrame(cursor, end.type, encodeByteText(JSON.stringify(end)))
}
