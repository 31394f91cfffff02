/**
 * A turn as a chat completion of OpenAI's older API, whole or streamed.
 *
 * Chunks only append text, and cannot take anything back. So the stream has the texts of one attempt, one after the other; if a new attempt, a
 * replaced message or a gap makes them untrue, it ends with an error. It cannot be resumed.
 */
import {
  applyOrSkip,
  type Content,
  type Cursor,
  type Event,
  emptyState,
  hasEnded,
  type Message,
  messageAt,
  messagesOf,
  type StopReason,
  type TokenEvent,
  type Turn,
  type WireEvent,
} from '@rivulet/protocol'
import type { Dialect, DialectStream, LoggedEvent } from '../dialect.ts'
import { type ResponseHead, secondsOf } from './response-object.ts'

export type ChatChunk = Record<string, unknown>

type ChatOutcome = Pick<Turn, 'status' | 'stopReason' | 'usage' | 'error'>

/** Null for a turn that did not complete, which is an error in this API. */
export function chatCompletion(head: ResponseHead, turn: ChatOutcome, messages: readonly Message[]): object | null {
  if (turn.status !== 'completed') return null
  const thought = reasoningOf(messages)
  const message = { role: 'assistant', content: textOf(messages), refusal: null, ...(thought !== '' && { reasoning_content: thought }) }
  const choice = { index: 0, message, logprobs: null, finish_reason: reasons[turn.stopReason ?? 'stop'] }
  return { ...commonOf(head, 'chat.completion'), choices: [choice], ...(turn.usage && { usage: chatUsage(turn.usage) }) }
}

export function openAiChat(head: ResponseHead, { includesUsage }: { includesUsage: boolean }): Dialect<ChatChunk> {
  return {
    name: 'openai-chat',
    scope: 'turn',
    headers: {},
    open: ({ heard }) => openChatStream(head, includesUsage, heard),
    encode: (chunk, cursor, isLast) => `${isLast ? `id: ${cursor}\n` : ''}data: ${JSON.stringify(chunk)}\n\n`,
    ending: 'data: [DONE]\n\n',
  }
}

async function openChatStream(
  head: ResponseHead,
  includesUsage: boolean,
  heard: AsyncIterable<LoggedEvent> | undefined,
): Promise<DialectStream<ChatChunk>> {
  let state = emptyState
  let attempt = 0
  /** The message that is being told, and how much of it. Those behind it wait until it is closed. */
  let index: number | null = null
  let length = 0
  let told = ''
  let isOver = false
  const common = commonOf(head, 'chat.completion.chunk')
  let pending: ChatChunk[] = [chunkOf({ role: 'assistant', content: '' })]
  for await (const { cursor, event } of heard ?? []) pending = [...pending, ...follow(cursor, event)]
  return { take, hasEnded: () => isOver && pending.length === 0 }

  function take(cursor: Cursor, event: Event | WireEvent | TokenEvent): ChatChunk[] {
    const before = pending
    pending = []
    if (isOver) return before
    switch (event.type) {
      case 'snapshot':
        // A snapshot is the beginning where there is no log yet; later it is a gap.
        return told === '' && event.turns.every(({ number, status }) => number !== head.number || !hasEnded(status)) && state === emptyState
          ? before
          : [...before, ...fail('Events were lost; retrieve the conversation')]
      case 'deleted':
        return [...before, ...fail('The task was deleted')]
      case 'caught_up':
      case 'token':
      case 'end':
        return before
      default:
        return [...before, ...follow(cursor, event)]
    }
  }

  function follow(cursor: Cursor, event: Event): ChatChunk[] {
    if (event.turn !== head.number) return []
    state = applyOrSkip(state, event, cursor)
    switch (event.type) {
      case 'turn.started':
        return start(event.attempt, event.firstIndex)
      case 'message.started':
      case 'message.delta':
      case 'message.replaced':
      case 'message.finished':
        return more()
      case 'turn.finished':
        return end(event)
      default:
        return []
    }
  }

  function start(number: number, firstIndex: number): ChatChunk[] {
    if (number > attempt && told !== '') return fail('The agent begins again; its text so far does not count')
    attempt = number
    index ??= firstIndex
    return []
  }

  function more(): ChatChunk[] {
    const chunks: ChatChunk[] = []
    for (let message = current(); message; message = current()) {
      const { content, status } = message
      const added = content.type === 'text' ? content.text.slice(length) : ''
      // Between two texts stands an empty line.
      const text = added !== '' && length === 0 && told !== '' ? `\n\n${added}` : added
      length += added.length
      told += text
      if (text !== '') chunks.push(chunkOf({ content: text }))
      if (content.type === 'reasoning' && status !== 'streaming') {
        const thought = reasoningOf([message])
        if (thought !== '') chunks.push(chunkOf({ reasoning_content: thought }))
      }
      if (status === 'streaming' && isInCompletion[content.type]) break
      index = message.index + 1
      length = 0
    }
    return chunks
  }

  function current(): Message | undefined {
    return index === null ? undefined : messageAt(state, index)?.message
  }

  function end(outcome: ChatOutcome): ChatChunk[] {
    const rest = more()
    if (outcome.status !== 'completed') return [...rest, ...fail(outcome.error?.message ?? `The turn ${outcome.status}`)]
    if (textOf(messagesOf(state).filter(({ turn }) => turn === head.number)) !== told) return fail('The agent replaced its text')
    isOver = true
    const usage = includesUsage ? [{ ...common, choices: [], usage: chatUsage(outcome.usage ?? {}) }] : []
    return [...rest, chunkOf({}, reasons[outcome.stopReason ?? 'stop']), ...usage]
  }

  function fail(message: string): ChatChunk[] {
    isOver = true
    return [{ error: { message, type: 'server_error', param: null, code: 'server_error' } }]
  }

  function chunkOf(delta: object, finish_reason: string | null = null): ChatChunk {
    return { ...common, choices: [{ index: 0, delta, logprobs: null, finish_reason }] }
  }
}

/** A completion has only these contents; the stream waits until a message with one of them is closed. */
const isInCompletion: Record<Content['type'], boolean> = {
  text: true,
  reasoning: true,
  tool_request: false,
  tool_response: false,
  data: false,
  media: false,
}

function textOf(messages: readonly Message[]): string {
  const texts = messages.flatMap(({ author, content }) => (author !== 'user' && content.type === 'text' ? [content.text] : []))
  return texts.filter(text => text !== '').join('\n\n')
}

function reasoningOf(messages: readonly Message[]): string {
  return messages.flatMap(({ content }) => (content.type === 'reasoning' ? [...content.summary, ...content.content] : [])).join('\n\n')
}

function commonOf({ task, number, agent, queuedAt }: ResponseHead, object: string) {
  return { id: `${task}.${number}.1`, object, created: secondsOf(queuedAt), model: agent }
}

function chatUsage({ inputTokens = 0, outputTokens = 0, totalTokens }: NonNullable<Turn['usage']>) {
  return { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: totalTokens ?? inputTokens + outputTokens }
}

const reasons = {
  stop: 'stop',
  tool_use: 'stop',
  length: 'length',
  content_filter: 'content_filter',
  error: 'stop',
  aborted: 'stop',
  other: 'stop',
} as const satisfies Record<StopReason, string>
