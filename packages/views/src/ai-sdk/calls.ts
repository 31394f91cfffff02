/**
 * The calls of one turn, each with a unique id. The AI SDK keeps one part per id, but a model may reuse an id or send none.
 *
 * The first call with an id keeps it. A response belongs to the first call with its id that has no response yet; a response without a call
 * creates one. Given the messages in index order, the result is always the same.
 */
import type { ContentOf, Message } from '@rivulet/protocol'

export type Calls = {
  /** The message, with the unique id of its call. */
  own(message: Message): Message
  /** Whether this message is a response without a call, so that the SDK needs a call before it. */
  isUnasked(message: Message): boolean
}

type Call = { callId: string; id: string; hasResponse: boolean; madeAt: number | null }

export function createCalls(): Calls {
  const calls: Call[] = []
  const known = new Map<string, Call>()
  return { own, isUnasked: ({ index }) => calls.some(({ madeAt }) => madeAt === index) }

  function own(message: Message): Message {
    const id = callOf(message)?.id
    const { content } = message
    return id === undefined || !('callId' in content) || content.callId === id
      ? message
      : { ...message, content: { ...content, callId: id } }
  }

  function callOf({ index, content }: Message): Call | undefined {
    if (content.type !== 'tool_request' && content.type !== 'tool_response') return undefined
    const key = `${content.type} ${index} ${content.callId}`
    const call = known.get(key) ?? find(index, content)
    known.set(key, call)
    return call
  }

  function find(index: number, { type, callId }: ContentOf<'tool_request' | 'tool_response'>): Call {
    if (type === 'tool_request') return make(index, callId, null)
    const call = calls.find(asked => asked.callId === callId && !asked.hasResponse) ?? make(index, callId, index)
    call.hasResponse = true
    return call
  }

  function make(index: number, callId: string, madeAt: number | null): Call {
    let id = callId || `call-${index}`
    while (calls.some(call => call.id === id)) id = `${id}-${index}`
    const call = { callId, id, hasResponse: false, madeAt }
    calls.push(call)
    return call
  }
}
