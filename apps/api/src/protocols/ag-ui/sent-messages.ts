/**
 * The messages of a turn that a client of AG-UI has, and the chunks that bring each up to date.
 *
 * The client's verifier rejects a message that is opened twice, one that grows while it is not open, and a run that ends while one is open. So each
 * message is opened once, grows only at its end and is closed once. Where something is no longer true, the client gets a snapshot of all
 * messages, before which everything is closed.
 */
import type { Content, Delta, DeltaOf, Message } from '@rivulet/protocol'
import {
  activityOf,
  argumentsOf,
  callIdOf,
  idOf,
  partSeparator,
  reasoningText,
  requestsOf,
  resultMessage,
  shownMetadata,
} from './ag-ui-message.ts'

export type AgUiChunk = { type: string } & Record<string, unknown>

type Kind = Content['type'] | 'input'

/** `last` is where the text of a reasoning ends: the order of its last part, and the length of that. `isStale`: it did not only grow. */
type Sent = {
  kind: Kind
  id: string
  callId: string
  text: string
  isOpen: boolean
  last: { order: number; length: number }
  isStale: boolean
}

/** A text that shows the progress of a call is cut to its last characters. A longer value is not shown. */
const maxProgress = 1_000

export function createSentMessages() {
  const sent = new Map<number, Sent>()
  return { send, grow, isBlank: () => sent.size === 0, replaces, close, restart }

  /** All that the client lacks of a message. Null where the messages have to be sent again. `turn` has all messages of its turn. */
  function send(message: Message, turn: () => readonly Message[]): AgUiChunk[] | null {
    const isClosed = message.status !== 'streaming'
    const own = sent.get(message.index)
    const { author, content } = message
    // The client that sent it has it already, under its own id.
    if (author === 'user') return isClosed && !own ? null : []
    if (own && own.kind !== kindOf(message)) return null
    switch (content.type) {
      case 'text':
      case 'reasoning':
      case 'tool_request':
        return own && !own.isOpen ? [] : sendGrowing(message, own, isClosed)
      case 'tool_response':
        return sendResponse(message, content, turn, isClosed)
      case 'data':
      case 'media':
        return own && !own.isOpen ? [] : sendActivity(message, content, isClosed)
      default:
        return content satisfies never
    }
  }

  /** Whether the agent has replaced the message on purpose. False where the client has nothing of it, or where its text only grows. */
  function replaces(message: Message): boolean {
    const own = sent.get(message.index)
    if (!own) return false
    const { type } = message.content
    return own.kind !== kindOf(message) || type === 'tool_request' || type === 'tool_response' || !textIn(message).startsWith(own.text)
  }

  function sendGrowing(message: Message, known: Sent | undefined, isClosed: boolean): AgUiChunk[] | null {
    const text = textIn(message)
    const own = known ?? remember(message, '')
    if (own.isStale || !text.startsWith(own.text)) {
      own.isStale = true
      return isClosed ? null : []
    }
    const added = text.slice(own.text.length)
    own.text = text
    own.last = lastPart(message)
    const opening = known ? [] : openingOf(own, message)
    const growth = added === '' ? [] : [contentOf(own, added)]
    if (isClosed) own.isOpen = false
    return [...opening, ...growth, ...(isClosed ? closingOf(own, message) : [])]
  }

  function sendResponse(message: Message, content: Parameters<typeof resultMessage>[1], turn: () => readonly Message[], isClosed: boolean) {
    const known = sent.get(message.index)
    if (known && !known.isOpen) return []
    const request = requestsOf(turn()).get(message.index)
    const own = known ?? remember(message, '')
    const { id, role, toolCallId, content: text, metadata } = resultMessage(message, content, request)
    const made = known || request ? [] : madeUpCall(toolCallId, content.name)
    if (!isClosed) return [...made, ...progressOf(id, toolCallId, content)]
    own.isOpen = false
    return [...made, { type: 'TOOL_CALL_RESULT', messageId: id, toolCallId, role, content: text, ...(metadata && { metadata }) }]
  }

  function sendActivity(message: Message, content: Parameters<typeof activityOf>[1], isClosed: boolean): AgUiChunk[] {
    const own = sent.get(message.index) ?? remember(message, '')
    own.isOpen = !isClosed
    // Media, and data that comes as JSON text, are shown once they are whole.
    if (!isClosed && (content.type === 'media' || content.raw !== undefined || content.data === null)) return []
    const { id, activityType, content: shown, metadata } = activityOf(message, content)
    return [{ type: 'ACTIVITY_SNAPSHOT', messageId: id, activityType, content: shown, ...(metadata && { metadata }) }]
  }

  /** The short way for nearly all events: a delta that begins where the client's text ends. Null where `send` has to look. */
  function grow(index: number, delta: Delta, offset: number): AgUiChunk[] | null {
    const own = sent.get(index)
    if (!own?.isOpen || own.isStale) return null
    if (delta.type === 'reasoning_summary' || delta.type === 'reasoning_content') return growReasoning(own, delta, offset)
    const isNext = (delta.type === 'text' && own.kind === 'text') || (delta.type === 'tool_request' && own.kind === 'tool_request')
    if (!isNext || own.text.length !== offset) return null
    own.text += delta.text
    return delta.text === '' ? [] : [contentOf(own, delta.text)]
  }

  function growReasoning(own: Sent, delta: DeltaOf<'reasoning_summary' | 'reasoning_content'>, offset: number): AgUiChunk[] | null {
    if (own.kind !== 'reasoning' || delta.text === '') return null
    const order = orderOf(delta.type === 'reasoning_summary' ? 'summary' : 'content', delta.index)
    const isMore = order === own.last.order && offset === own.last.length
    if (!isMore && !(order > own.last.order && offset === 0)) return null
    const text = isMore || own.text === '' ? delta.text : partSeparator + delta.text
    own.text += text
    own.last = { order, length: offset + delta.text.length }
    return [contentOf(own, text)]
  }

  /** Closes what is open, so that the run can end or a snapshot can come. */
  function close(): AgUiChunk[] {
    return [...sent.values()].flatMap(own => {
      if (!own.isOpen) return []
      own.isOpen = false
      return closingOf(own)
    })
  }

  /** After a snapshot of these messages: opens those again that go on. */
  function restart(messages: readonly Message[]): AgUiChunk[] {
    sent.clear()
    return messages.flatMap(message => {
      const own = remember(message, textIn(message))
      own.isOpen = message.status === 'streaming'
      return own.isOpen ? openingOf(own, message) : []
    })
  }

  function remember(message: Message, text: string): Sent {
    const own = {
      kind: kindOf(message),
      id: idOf(message),
      callId: callIdOf(message),
      text,
      isOpen: true,
      last: lastPart(message),
      isStale: false,
    }
    sent.set(message.index, own)
    return own
  }
}

function kindOf({ content, author }: Message): Kind {
  return author === 'user' ? 'input' : content.type
}

function textIn(message: Message): string {
  const { content } = message
  if (content.type === 'text') return content.text
  if (content.type === 'reasoning') return reasoningText(content)
  return content.type === 'tool_request' ? argumentsOf(message, content) : ''
}

function orderOf(kind: 'summary' | 'content', index: number): number {
  return (kind === 'summary' ? 0 : 1_000_000) + index
}

function lastPart({ content }: Message): Sent['last'] {
  if (content.type !== 'reasoning') return { order: -1, length: 0 }
  const ends = (['summary', 'content'] as const).flatMap(kind =>
    content[kind].flatMap((part, index) => (part === '' ? [] : [{ order: orderOf(kind, index), length: part.length }])),
  )
  return ends.at(-1) ?? { order: -1, length: 0 }
}

function openingOf({ kind, id, callId }: Sent, { author, content }: Message): AgUiChunk[] {
  switch (kind) {
    case 'text':
      return [{ type: 'TEXT_MESSAGE_START', messageId: id, role: author === 'system' ? 'system' : 'assistant' }]
    case 'reasoning':
      return [
        { type: 'REASONING_START', messageId: id },
        { type: 'REASONING_MESSAGE_START', messageId: id, role: 'reasoning' },
      ]
    case 'tool_request':
      return [
        {
          type: 'TOOL_CALL_START',
          toolCallId: callId,
          toolCallName: content.type === 'tool_request' ? content.name : '',
          parentMessageId: id,
        },
      ]
    case 'tool_response':
    case 'data':
    case 'media':
    case 'input':
      return []
    default:
      return kind satisfies never
  }
}

function contentOf({ kind, id, callId }: Sent, delta: string): AgUiChunk {
  if (kind === 'tool_request') return { type: 'TOOL_CALL_ARGS', toolCallId: callId, delta }
  return { type: kind === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT', messageId: id, delta }
}

/** @param message if it is closed, with its metadata */
function closingOf({ kind, id, callId }: Sent, message?: Message): AgUiChunk[] {
  const metadata = message ? shownMetadata(message) : {}
  switch (kind) {
    case 'text':
      return [{ type: 'TEXT_MESSAGE_END', messageId: id, ...metadata }]
    case 'reasoning':
      return [
        { type: 'REASONING_MESSAGE_END', messageId: id, ...metadata },
        { type: 'REASONING_END', messageId: id },
      ]
    case 'tool_request':
      return [{ type: 'TOOL_CALL_END', toolCallId: callId, ...metadata }]
    case 'tool_response':
    case 'data':
    case 'media':
    case 'input':
      return []
    default:
      return kind satisfies never
  }
}

function madeUpCall(toolCallId: string, toolCallName: string): AgUiChunk[] {
  return [
    { type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId: toolCallId },
    { type: 'TOOL_CALL_END', toolCallId },
  ]
}

function progressOf(id: string, toolCallId: string, { content: value }: Parameters<typeof resultMessage>[1]): AgUiChunk[] {
  if (value === null || value === '') return []
  const progress = typeof value === 'string' ? value.slice(-maxProgress) : JSON.stringify(value).length > maxProgress ? null : value
  if (progress === null) return []
  return [{ type: 'ACTIVITY_SNAPSHOT', messageId: `${id}:progress`, activityType: 'tool-progress', content: { toolCallId, progress } }]
}
