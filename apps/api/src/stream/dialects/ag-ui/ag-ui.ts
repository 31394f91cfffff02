/** The dialect of AG-UI 1.0: one run for each response. */
import { frameEnd, idLine } from '../../sse-frame.ts'
import type { Dialect } from '../dialect.ts'
import { type AgUiRun, openAgUiStream } from './ag-ui-stream.ts'
import type { AgUiChunk } from './message-teller.ts'

export function agUi(run: AgUiRun): Dialect<AgUiChunk> {
  return {
    name: 'ag-ui',
    scope: 'turn',
    hasChildren: true,
    headers: {},
    open: ({ heard, follow }) => openAgUiStream(run, heard, follow),
    encode: (chunk, cursor, isLast) => `data: ${JSON.stringify(chunk)}${isLast ? idLine(cursor) : frameEnd}`,
    ending: '',
  }
}
