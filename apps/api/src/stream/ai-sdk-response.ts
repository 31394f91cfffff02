/**
 * A response that speaks the AI SDK's UI message stream: it stands between a viewer, who writes our frames, and the socket.
 *
 * Viewers, feeds and hub know nothing of it, and a viewer who wants our events pays nothing for it. What goes to many is read once for all who
 * have it translated. Nothing is translated before the socket has room for it, so a slow reader holds no more here than any other.
 */
import type { LogReader } from '@rivulet/broker'
import { type Cursor, emptyState, origin } from '@rivulet/protocol'
import { decodeEntry, readLog } from '../log/log-fold.ts'
import { type AiSdkStream, createAiSdkStream, fold, type HeardBefore } from './ai-sdk-stream.ts'
import { type DecodedFrame, decodeFrames } from './sse-frame.ts'
import { type Shared, type SseResponse, share } from './sse-response.ts'
import type { ViewerStart } from './viewer.ts'

export const aiSdkHeaders = { 'x-vercel-ai-ui-message-stream': 'v1' }

/** The stream for a viewer who begins there. What somebody who comes back has heard is read from the log. */
export async function openAiSdkStream(
  log: LogReader,
  { task, turn, begin }: { task: string; turn?: number | undefined; begin: ViewerStart },
): Promise<AiSdkStream> {
  const isBack = begin.kind === 'after' && begin.cursor !== origin
  return createAiSdkStream({ task, turn, heard: isBack ? await foldUpTo(log, task, begin.cursor) : undefined })
}

export type AiSdkResponse = SseResponse & {
  /** The socket takes more. True when it has taken everything that was written, so that the viewer may go on. */
  drained(): boolean
}

export function speakAiSdk(response: SseResponse, stream: AiSdkStream): AiSdkResponse {
  /** What the socket had no room for, as the viewer wrote it: an event may be many times as long in the SDK's words. */
  let waiting: (DecodedFrame | string)[] = []
  let isLeaving = false
  return { write, unsentBytes, end, destroy: response.destroy, drained }

  function write(bytes: Shared): boolean {
    // Full for ever: the viewer stops, and if its client does not take the end it is cut like any other that takes nothing.
    if (stream.hasEnded()) return false
    if (waiting.length > 0) {
      waiting = [...waiting, ...framesOf(bytes)]
      return false
    }
    waiting = framesOf(bytes)
    return drained()
  }

  function drained(): boolean {
    let isFree = true
    let place = 0
    while (isFree && place < waiting.length && !stream.hasEnded()) {
      const first = place
      let text = ''
      for (; place < waiting.length && text.length < writeLength && !stream.hasEnded(); place += 1) text += translate(waiting[place] ?? '')
      if (stream.hasEnded()) text += 'data: [DONE]\n\n'
      if (text !== '') isFree = response.write(shareText(waiting.slice(first, place), text))
    }
    waiting = stream.hasEnded() ? [] : waiting.slice(place)
    if (stream.hasEnded()) response.end()
    else if (isLeaving && waiting.length === 0) response.destroy()
    return isFree && waiting.length === 0
  }

  function translate(frame: DecodedFrame | string): string {
    if (typeof frame === 'string') return frame
    const lines = stream.take(frame.cursor, frame.event).map(chunk => `data: ${JSON.stringify(chunk)}\n\n`)
    return lines.map((line, place) => (place === lines.length - 1 ? `id: ${frame.cursor}\n${line}` : line)).join('')
  }

  /** What waits here moves too: a client that takes it slowly has not stalled. */
  function unsentBytes(): number {
    return response.unsentBytes() + waiting.length
  }

  /** An end before the turn's is none, and the SDK would take it for one: it comes back only if the connection broke. */
  function end(): void {
    isLeaving = true
    if (stream.hasEnded()) response.end()
    else if (waiting.length === 0) response.destroy()
  }
}

/** Of the SDK's words, before the socket is asked whether there is room for more. */
const writeLength = 64 * 1024

/** What was made of a snapshot. Viewers of the same turn are told the same, and one who does not read must not hold a copy of its own. */
const told = new WeakMap<DecodedFrame, Shared[]>()

function shareText([frame, ...others]: (DecodedFrame | string)[], text: string): Shared {
  const shared = share([Buffer.from(text)])
  if (typeof frame !== 'object' || frame.event.type !== 'snapshot' || others.length > 0) return shared
  const known = told.get(frame) ?? []
  const same = known.find(({ chunked }) => chunked.equals(shared.chunked))
  if (!same) told.set(frame, [...known, shared])
  return same ?? shared
}

const decoded = new WeakMap<Shared, (DecodedFrame | string)[]>()

function framesOf(bytes: Shared): (DecodedFrame | string)[] {
  const known = decoded.get(bytes)
  if (known) return known
  const frames = decodeFrames(bytes.plain)
  decoded.set(bytes, frames)
  return frames
}

async function foldUpTo(log: LogReader, task: string, cursor: Cursor): Promise<HeardBefore> {
  const known = await log.state(task)
  let state = emptyState
  let isAtEnd = false
  for await (const entry of readLog(log, task, known?.begin ?? origin, cursor)) {
    const event = decodeEntry(task, entry)
    if (!event) continue
    state = fold(state, event, entry.cursor)
    isAtEnd = event.type === 'turn.finished'
  }
  return { state, isAtEnd }
}
