/**
 * A task's stream in another format, over any number of connections: each resumes at the id of the last chunk.
 *
 * Chunks pass as they are, because their meaning belongs to the format. A refusal that is the fault of the request is thrown.
 */
import type { Json, StreamFormat } from '@rivulet/protocol'
import { resumedFrames } from './resumed-frames.ts'
import { parseTokenEvent } from './task-event.ts'
import type { StreamDeps } from './task-stream.ts'

export type FormatChunk = {
  /** Where a later call can resume, as `after`; null for a chunk that has none. */
  id: string | null
  /** The name of the SSE event, such as `turn` and `end`; null for a chunk of the format itself. */
  event: string | null
  data: Json
}

export type FormatRequest = {
  id: string
  format: StreamFormat
  /** The id of the last chunk that the caller has. Default: the task, or the turn, as far as it has come, and then what follows. */
  after?: string | undefined
  turn?: number | undefined
  follow?: boolean | undefined
  signal: AbortSignal
}

export async function* streamFormat(deps: StreamDeps, request: FormatRequest): AsyncGenerator<FormatChunk, void, void> {
  const { id, after, signal } = request
  const frames = resumedFrames(deps, { pathAfter: place => pathOf(request, place), after, signal })
  for await (const { id: place = null, event = null, data } of frames) {
    if (event === 'token') {
      const fresh = parseTokenEvent(data)
      if (fresh?.task === id) deps.http.freshToken(fresh.token)
      continue
    }
    if (data === '[DONE]') return
    yield { id: place, event, data: JSON.parse(data) }
    if (event === 'end') return
  }
}

function pathOf({ id, format, turn: turnNumber, follow }: FormatRequest, after: string | undefined): string {
  const query = new URLSearchParams({
    format,
    ...(after !== undefined && { after }),
    ...(turnNumber !== undefined && { turn: String(turnNumber) }),
    ...(follow && { follow: 'true' }),
  })
  return `/v1/tasks/${encodeURIComponent(id)}/events?${query}`
}
