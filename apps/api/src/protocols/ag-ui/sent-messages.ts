/**
 * The messages of a turn that a client of AG-UI has open, and the chunks that bring each up to date.
 *
 * The client's verifier rejects a message that is opened twice, one that grows while it is not open, and a run that ends while one is open. So each
 * message is opened once, grows only at its end and is closed once. Where something is no longer true, the client gets a snapshot of all
 * messages, before which everything is closed.
 */
import type { Change, Narrator } from '@rivulet/narrator'
import type { Content, Delta, Message } from '@rivulet/protocol'
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

/** Changes of a message. */
export type MessageChange = Extract<Change, { message: Message }>

type Kind = Content['type'] | 'input'

/** `isStale`: it did not only grow. */
type Sent = { kind: Kind; id: string; callId: string; isOpen: boolean; isStale: boolean }

/** A text that shows the progress of a call is cut to its last characters. A longer value is not shown. */
const maxProgress = 1_000

export class SentMessages {
  readonly #sent = new Map<number, Sent>()
  readonly #narrator: Narrator

  constructor(narrator: Narrator) {
    this.#narrator = narrator
  }

  isBlank(): boolean {
    return this.#sent.size === 0
  }

  hasAny(messages: readonly Message[]): boolean {
    return messages.some(({ index }) => this.#sent.has(index))
  }

  /** Null where the messages have to be sent again. */
  take(change: MessageChange): AgUiChunk[] | null {
    const { type, message } = change
    if (type === 'opened') return this.#send(message)
    // The client gets a message that does not only grow when it is closed, or at once if the agent has replaced it on purpose.
    if (type === 'replaced' && this.#isRewritten(message, change.before)) return null
    return (type === 'grew' && this.#grow(change)) || this.#send(message, change.before)
  }

  /** All that the client lacks of a message, of which it has `before`. */
  #send(message: Message, before?: Message): AgUiChunk[] | null {
    const isClosed = message.status !== 'streaming'
    const own = this.#sent.get(message.index)
    const { author, content } = message
    // The client that sent it has it already, under its own id.
    if (author === 'user') return isClosed && !own ? null : []
    if (own && own.kind !== kindOf(message)) return null
    if (own && !own.isOpen) return []
    switch (content.type) {
      case 'text':
      case 'reasoning':
      case 'tool_request':
        return this.#sendGrowing(message, own && before ? textIn(before) : '', isClosed)
      case 'tool_response':
        return this.#sendResponse(message, content, isClosed)
      case 'data':
      case 'media':
        return this.#sendActivity(message, content, isClosed)
      default:
        return content satisfies never
    }
  }

  /** False where the client has nothing of the message, or where its text only grows. */
  #isRewritten(message: Message, before: Message): boolean {
    const own = this.#sent.get(message.index)
    if (!own) return false
    const { type } = message.content
    return (
      own.kind !== kindOf(message) || type === 'tool_request' || type === 'tool_response' || !textIn(message).startsWith(textIn(before))
    )
  }

  #sendGrowing(message: Message, sentText: string, isClosed: boolean): AgUiChunk[] | null {
    const known = this.#sent.get(message.index)
    const text = textIn(message)
    const own = known ?? this.#remember(message)
    if (own.isStale || !text.startsWith(sentText)) {
      own.isStale = true
      return isClosed ? null : []
    }
    const added = text.slice(sentText.length)
    const opening = known ? [] : openingOf(own, message)
    const growth = added === '' ? [] : [contentOf(own, added)]
    if (isClosed) own.isOpen = false
    return [...opening, ...growth, ...(isClosed ? closingOf(own, message) : [])]
  }

  #sendResponse(message: Message, content: Parameters<typeof resultMessage>[1], isClosed: boolean): AgUiChunk[] {
    const known = this.#sent.get(message.index)
    const request = requestsOf(this.#narrator.messages).get(message.index)
    const own = known ?? this.#remember(message)
    const { id, role, toolCallId, content: text, metadata } = resultMessage(message, content, request)
    const made = known || request ? [] : madeUpCall(toolCallId, content.name)
    if (!isClosed) return [...made, ...progressOf(id, toolCallId, content)]
    own.isOpen = false
    return [...made, { type: 'TOOL_CALL_RESULT', messageId: id, toolCallId, role, content: text, ...(metadata && { metadata }) }]
  }

  #sendActivity(message: Message, content: Parameters<typeof activityOf>[1], isClosed: boolean): AgUiChunk[] {
    const own = this.#sent.get(message.index) ?? this.#remember(message)
    own.isOpen = !isClosed
    // Media, and data that comes as JSON text, are shown once they are whole.
    if (!isClosed && (content.type === 'media' || content.raw !== undefined || content.data === null)) return []
    const { id, activityType, content: shown, metadata } = activityOf(message, content)
    return [{ type: 'ACTIVITY_SNAPSHOT', messageId: id, activityType, content: shown, ...(metadata && { metadata }) }]
  }

  /** The short way for nearly all events: a delta at the end of the text. */
  #grow({ message: { index }, before, delta }: Extract<Change, { type: 'grew' }>): AgUiChunk[] | null {
    const own = this.#sent.get(index)
    const added = own?.isOpen && !own.isStale && own.kind !== 'input' ? growthOf(before.content, delta) : ''
    return own && added !== '' ? [contentOf(own, added)] : null
  }

  /** Closes what is open, so that the run can end or a snapshot can come. */
  close(): AgUiChunk[] {
    return [...this.#sent.values()].flatMap(own => {
      if (!own.isOpen) return []
      own.isOpen = false
      return closingOf(own)
    })
  }

  /** After a snapshot of these messages: opens those again that go on. */
  restart(messages: readonly Message[]): AgUiChunk[] {
    this.#sent.clear()
    return messages.flatMap(message => {
      const own = this.#remember(message)
      own.isOpen = message.status === 'streaming'
      return own.isOpen ? openingOf(own, message) : []
    })
  }

  #remember(message: Message): Sent {
    const own = { kind: kindOf(message), id: idOf(message), callId: callIdOf(message), isOpen: true, isStale: false }
    this.#sent.set(message.index, own)
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

/** The text that a delta adds at the end of a content; empty where it adds none there. */
function growthOf(content: Content, delta: Delta): string {
  if (delta.type === 'text' || delta.type === 'tool_request') return delta.text
  if (content.type !== 'reasoning' || (delta.type !== 'reasoning_summary' && delta.type !== 'reasoning_content') || delta.text === '')
    return ''
  const { summary } = content
  const parts = delta.type === 'reasoning_summary' ? summary : content.content
  const later = [...parts.slice(delta.index + 1), ...(parts === summary ? content.content : [])]
  if (later.some(part => part !== '')) return ''
  return parts[delta.index] || reasoningText(content) === '' ? delta.text : partSeparator + delta.text
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
