/**
 * A task's stream in another format, over any number of connections: each resumes at the id of the last chunk.
 *
 * Chunks pass as they are, because their meaning belongs to the format. A refusal that is the fault of the request is thrown.
 */

import type { StreamFormat } from '@rivulet/contract/fields'
import type { Json } from '@rivulet/protocol'
import { pathOf } from '../http/path-of.ts'
import type { StreamDeps } from './reconnecting.ts'
import { resumedFrames } from './resumed-frames.ts'

export type FormatChunk = {
  /** Where a later call can resume, as `after`; null for a chunk that has none. */
  id: string | null
  /** The name of the SSE event, such as `turn` and `end`; null for a chunk of the format itself. */
  event: string | null
  data: Json
}

type FormatRequest = {
  id: string
  format: StreamFormat
  /** The id of the last chunk that the caller has. Default: the task, or the turn, as far as it has come, and then what follows. */
  after?: string | undefined
  turn?: number | undefined
  follow?: boolean | undefined
  signal: AbortSignal
}

export async function* streamFormat(
  deps: StreamDeps,
  { id: task, format, after, turn, follow, signal }: FormatRequest,
): AsyncGenerator<FormatChunk, void, void> {
  const path = `${pathOf('tasks', task)}/events`
  const query = { format, turn, follow: follow || undefined }
  for await (const { id = null, event = null, data } of resumedFrames(deps, { path, query, after, task, signal })) {
    if (data === '[DONE]') return
    yield { id, event, data: JSON.parse(data) }
    if (event === 'end') return
  }
}
