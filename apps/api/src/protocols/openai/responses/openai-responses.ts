/** The dialect of OpenAI's Responses API: one turn for each response. */

import type { Dialect } from '../../../stream/dialects/dialect.ts'
import { frameEnd, idLine } from '../../../stream/sse-frame.ts'
import { type OpenAiResponse, type ResponseHead, responseOf } from './response-object.ts'
import { openResponseStream, type ResponseChunk } from './response-stream.ts'

type OpenAiResponsesOptions = {
  head: ResponseHead
  after: number | null
  hidesRetries?: boolean
  /** The object from the rows, for a client that the log cannot serve; null while the turn has not ended. */
  read: () => Promise<OpenAiResponse | null>
}

export function openAiResponses({ head, after, read, hidesRetries }: OpenAiResponsesOptions): Dialect<ResponseChunk> {
  return {
    name: 'openai-responses',
    scope: 'turn',
    headers: {},
    open: ({ received }) => openResponseStream({ head, after, received, hidesRetries }),
    encode: (chunk, cursor, isLast) => `event: ${chunk.type}\ndata: ${JSON.stringify(chunk)}${isLast ? idLine(cursor) : frameEnd}`,
    ending: '',
    async stored() {
      const response = await read()
      if (!response) return null
      const created = { type: 'response.created', sequence_number: 0, response: responseOf(head, { status: 'queued' }, []) }
      const type = response.status === 'cancelled' ? 'response.incomplete' : `response.${response.status}`
      return [...(after === null ? [created] : []), { type, sequence_number: (after ?? 0) + 1, response }]
    },
  }
}
