/** The dialect of AG-UI 1.0: one run for each response. */

import type { Dialect } from '../../stream/dialects/dialect.ts'
import { frameEnd, idLine } from '../../stream/sse-frame.ts'
import { type AgUiRun, openAgUiStream } from './ag-ui-stream.ts'
import type { AgUiChunk } from './sent-messages.ts'

export function agUiDialect(run: AgUiRun): Dialect<AgUiChunk> {
  return {
    name: 'ag-ui',
    scope: 'turn',
    hasChildren: true,
    headers: {},
    open: ({ received, follow }) => openAgUiStream(run, received, follow),
    encode: (chunk, cursor, isLast) => `data: ${JSON.stringify(chunk)}${isLast ? idLine(cursor) : frameEnd}`,
    ending: '',
  }
}
