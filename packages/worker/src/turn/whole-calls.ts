/** Makes a history one that every model accepts: each call of a tool has exactly one response behind it, and no response is without its call. */
import { type Message, toolResponse } from '@rivulet/protocol'

export function withWholeCalls(messages: readonly Message[]): Message[] {
  const open = new Map<string, Message>()
  const whole = messages.flatMap((message): Message[] => {
    const { content } = message
    if (content.type === 'tool_response') return open.delete(content.callId) ? [message] : []
    // The agent may say something between a call and its response. A call that has none when the user speaks gets none any more.
    const missing = message.author === 'user' ? interrupted() : []
    if (content.type === 'tool_request') open.set(content.callId, message)
    return [...missing, message]
  })
  return [...whole, ...interrupted()]

  function interrupted(): Message[] {
    const responses = Array.from(open.values(), message => {
      const { callId, name } = message.content as Extract<Message['content'], { type: 'tool_request' }>
      return { ...message, content: toolResponse(callId, name, 'interrupted', true) }
    })
    open.clear()
    return responses
  }
}
