/** The dialect of A2A, in its three shapes: JSON-RPC of 1.0, JSON-RPC of 0.3, and HTTP+JSON of 1.0. */

import type { Dialect } from '../../stream/dialects/dialect.ts'
import { frameEnd, idLine } from '../../stream/sse-frame.ts'
import { type A2aChunk, type A2aRun, openA2aStream } from './a2a-stream.ts'
import type { A2aTask } from './a2a-task.ts'

type A2aOptions = {
  run: A2aRun
  /** Wraps a chunk as the client expects it. */
  wrap: (chunk: A2aChunk) => object
  /** The task from the rows, for a client that the log cannot serve; null while the turn has not ended. */
  read: () => Promise<A2aTask | null>
}

export function a2aDialect({ run, wrap, read }: A2aOptions): Dialect<A2aChunk> {
  return {
    name: 'a2a',
    scope: 'turn',
    headers: {},
    open: ({ received }) => openA2aStream(run, received),
    encode: (chunk, cursor, isLast) => `data: ${JSON.stringify(wrap(chunk))}${isLast ? idLine(cursor) : frameEnd}`,
    ending: '',
    async stored() {
      const task = await read()
      return task && [{ task }, { statusUpdate: { taskId: task.id, contextId: task.contextId, status: task.status } }]
    },
  }
}
