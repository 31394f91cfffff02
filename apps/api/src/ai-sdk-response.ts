/**
 * A response that speaks the AI SDK's UI message stream: it stands between a viewer, who writes our frames, and the socket.
 *
 * Viewers, feeds and hub know nothing of it, and a viewer who wants our events pays nothing for it. What goes to many is read once for all who
 * have it translated.
 */
import type { LogReader } from '@rivulet/broker'
import { type Cursor, emptyState, origin, type TaskState } from '@rivulet/protocol'
import { type AiSdkStream, createAiSdkStream, fold } from './ai-sdk-stream.ts'
import { decodeEntry, readLog } from './log-fold.ts'
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

export function speakAiSdk(response: SseResponse, stream: AiSdkStream): SseResponse {
  return { write, unsentBytes: response.unsentBytes, end, destroy: response.destroy }

  function write(bytes: Shared): boolean {
    // Full for ever: the viewer stops, and if its client does not take the end it is cut like any other that takes nothing.
    if (stream.hasEnded()) return false
    const text = framesOf(bytes).map(translate).join('')
    const isFree = text === '' || response.write(share(Buffer.from(stream.hasEnded() ? `${text}data: [DONE]\n\n` : text)))
    if (stream.hasEnded()) response.end()
    return isFree
  }

  function translate(frame: DecodedFrame | string): string {
    if (typeof frame === 'string') return stream.hasEnded() ? '' : frame
    const lines = stream.take(frame.cursor, frame.event).map(chunk => `data: ${JSON.stringify(chunk)}\n\n`)
    return lines.map((line, place) => (place === lines.length - 1 ? `id: ${frame.cursor}\n${line}` : line)).join('')
  }

  /** An end before the turn's is none, and the SDK would take it for one: it comes back only if the connection broke. */
  function end(): void {
    if (stream.hasEnded()) response.end()
    else response.destroy()
  }
}

const decoded = new WeakMap<Shared, (DecodedFrame | string)[]>()

function framesOf(bytes: Shared): (DecodedFrame | string)[] {
  const known = decoded.get(bytes)
  if (known) return known
  const frames = decodeFrames(bytes.plain)
  decoded.set(bytes, frames)
  return frames
}

async function foldUpTo(log: LogReader, task: string, cursor: Cursor): Promise<TaskState> {
  const known = await log.state(task)
  let state = emptyState
  for await (const entry of readLog(log, task, known?.begin ?? origin, cursor)) {
    const event = decodeEntry(task, entry)
    if (event) state = fold(state, event, entry.cursor)
  }
  return state
}
