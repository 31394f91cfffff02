/** The dialect of the Vercel AI SDK: its UI message stream, one turn for each response. */
import type { UiChunk } from '@rivulet/views/ai-sdk'
import type { Dialect } from '../../stream/dialects/dialect.ts'
import { frameEnd, idLine } from '../../stream/sse-frame.ts'
import { createAiSdkStream, recallPast } from './ai-sdk-stream.ts'

export const aiSdk: Dialect<UiChunk> = {
  name: 'ai-sdk',
  scope: 'turn',
  headers: { 'x-vercel-ai-ui-message-stream': 'v1' },
  open: async ({ task, turnNumber, received, isContinued }) =>
    createAiSdkStream({ task, turnNumber, isContinued, past: received && (await recallPast(turnNumber, received)) }),
  encode: (chunk, cursor, isLast) => `data: ${JSON.stringify(chunk)}${isLast ? idLine(cursor) : frameEnd}`,
  ending: 'data: [DONE]\n\n',
}
