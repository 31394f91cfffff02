/**
 * The calls of one turn, each under an id that no other has. The AI SDK keeps one part for each id, while a model may use one again, or none.
 *
 * Who uses an id first has it as it is. A response is that of the first call with its id which has none yet; one that nobody asked for makes a
 * call of its own. Given the messages in the order of their indexes, the answer is always the same.
 */
import type { ContentOf, Message } from '@rivulet/protocol'

export type Calls = {
  /** The message, with its call's own id. */
  own(message: Message): Message
  /** Whether this one, a response, made its call, so that the SDK has to be told of it first. */
  isUnasked(message: Message): boolean
}

type Call = { callId: string; id: string; isAnswered: boolean; madeAt: number | null }

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
    const call = calls.find(asked => asked.callId === callId && !asked.isAnswered) ?? make(index, callId, index)
    call.isAnswered = true
    return call
  }

  function make(index: number, callId: string, madeAt: number | null): Call {
    let id = callId || `call-${index}`
    while (calls.some(call => call.id === id)) id = `${id}-${index}`
    const call = { callId, id, isAnswered: false, madeAt }
    calls.push(call)
    return call
  }
}
