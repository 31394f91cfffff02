/** The JSON-RPC messages of a response, which is JSON or an event stream. A reader that stops ends the response. */
import type { Json, JsonObject } from '@rivulet/protocol'
import { createParser } from 'eventsource-parser'
import { AgentError } from '../agent-error.ts'
import { parseJson } from '../providers/provider-call.ts'

const maxBytes = 16 * 2 ** 20

export async function* rpcMessages(response: Response): AsyncGenerator<JsonObject> {
  const isStream = /^text\/event-stream/.test(response.headers.get('content-type') ?? '')
  let events: string[] = []
  let text = ''
  const parser = createParser({ onEvent: ({ data }) => void events.push(data) })
  for await (const piece of textOf(response)) {
    if (!isStream) {
      text += piece
      continue
    }
    parser.feed(piece)
    const heard = events
    events = []
    for (const data of heard) yield* messagesIn(data)
  }
  if (!isStream) yield* messagesIn(text)
}

async function* textOf({ body }: Response): AsyncGenerator<string> {
  const reader = body?.getReader()
  if (!reader) return
  const decoder = new TextDecoder()
  let bytes = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      bytes += value.length
      if (bytes > maxBytes) throw new AgentError(`The MCP server sent more than ${maxBytes} bytes`)
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

/** Older servers may send several messages as a list. What is not JSON is no message. */
function messagesIn(text: string): JsonObject[] {
  const parsed = parseJson(text) as Json | undefined
  const all = Array.isArray(parsed) ? parsed : [parsed ?? null]
  return all.filter((one): one is JsonObject => typeof one === 'object' && one !== null && !Array.isArray(one))
}
