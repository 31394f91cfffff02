/** The frames of a stream over any number of connections: each resumes at the id of the last frame. The consumer decides when it has the end. */
import type { Query } from '../http/http.ts'
import type { ConnectionStatus } from './connection-status.ts'
import { reconnecting, type StreamDeps } from './reconnecting.ts'
import type { Frame } from './sse-parser.ts'

type ResumedStream = {
  path: string
  query?: Query
  after?: string | undefined
  task?: string
  onStatus?: (status: ConnectionStatus) => void
  signal: AbortSignal
}

export function resumedFrames(deps: StreamDeps, { path, query, after, ...stream }: ResumedStream): AsyncGenerator<Frame, void, void> {
  let place = after
  let isOver = false
  return reconnecting(deps, {
    ...stream,
    request: () => ({ path, query: { ...query, after: place } }),
    take: frame => {
      place = frame.id ?? place
      return frame
    },
    nothingLeft: () => {
      isOver = true
      return []
    },
    isOver: () => isOver,
  })
}
