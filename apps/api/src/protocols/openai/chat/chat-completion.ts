/**
 * A turn as a chat completion of OpenAI's older API, whole or streamed: up to its end, or to a call of the client's functions.
 *
 * Chunks only append text, and cannot take anything back. So the stream has the texts of one attempt, one after the other; if a new attempt, a
 * replaced message or a gap makes them untrue, it ends with an error. Reasoning is not part of the protocol and ends nothing: what a client has of it may
 * be that of a failed attempt. With `hidesRetries`, all of it comes at the end instead, when it is certain. It cannot be resumed.
 */
import { Narrator } from '@rivulet/narrator'
import type { Content, Cursor, Event, Message, StopReason, TokenEvent, Turn, Wait, WireEvent } from '@rivulet/protocol'
import type { Dialect, DialectStream, LoggedEvent } from '../../../stream/dialects/dialect.ts'
import { frameEnd, idLine } from '../../../stream/sse-frame.ts'
import { questionItem } from '../responses/output-item.ts'
import { formatResponseId } from '../responses/response-id.ts'
import { type ResponseHead, secondsOf, usageOf } from '../responses/response-object.ts'
import { endOf, type Question, questionsOf, type Range, type Segment } from '../responses/segment.ts'

export type ChatChunk = Record<string, unknown>

export type ChatOptions = { includesUsage: boolean; hidesRetries: boolean }

type ChatOutcome = Pick<Turn, 'status' | 'stopReason' | 'usage' | 'error'>

/** Null for a turn that did not complete, which is an error in this API. */
export function chatCompletion(head: ResponseHead, turn: ChatOutcome & Pick<Turn, 'waits'>, messages: readonly Message[]): object | null {
  const calls = callsOf(turn.waits, head.segment)
  if (turn.status !== 'completed' && calls.length === 0) return null
  const own = within(messages, { from: head.segment.from, to: calls.length > 0 ? endOf(calls) : null })
  const [text, thought] = [textOf(own), reasoningOf(own)]
  const asked = calls.length > 0 && { tool_calls: calls.map(toolCall) }
  const content = asked && text === '' ? null : text
  const message = { role: 'assistant', content, refusal: null, ...(thought !== '' && { reasoning_content: thought }), ...asked }
  const finish_reason = asked ? 'tool_calls' : reasons[turn.stopReason ?? 'stop']
  const choice = { index: 0, message, logprobs: null, finish_reason }
  return { ...commonOf(head, 'chat.completion'), choices: [choice], usage: chatUsage((!asked && turn.usage) || {}) }
}

export function openAiChat(head: ResponseHead, options: ChatOptions): Dialect<ChatChunk> {
  return {
    name: 'openai-chat',
    scope: 'turn',
    headers: {},
    open: ({ received }) => openChatStream(head, options, received),
    encode: (chunk, cursor, isLast) => `data: ${JSON.stringify(chunk)}${isLast ? idLine(cursor) : frameEnd}`,
    ending: 'data: [DONE]\n\n',
  }
}

export async function openChatStream(
  head: ResponseHead,
  { includesUsage, hidesRetries }: ChatOptions,
  received?: AsyncIterable<LoggedEvent>,
): Promise<DialectStream<ChatChunk>> {
  const { segment } = head
  const narrator = new Narrator({ turnNumber: head.number })
  let attempt = 0
  /** The message that is being sent, and how much of it was. Those behind it wait until it is closed. */
  let index = segment.from
  let sentText = ''
  const sent = { content: '', reasoning_content: '' }
  let isOver = false
  const common = commonOf(head, 'chat.completion.chunk')
  let pending: ChatChunk[] = [chunkOf({ role: 'assistant', content: '' })]
  for await (const { cursor, event } of received ?? []) pending = [...pending, ...chunksOf(cursor, event)]
  return { take, hasEnded: () => isOver && pending.length === 0 }

  function take(cursor: Cursor, event: Event | WireEvent | TokenEvent): ChatChunk[] {
    const before = pending
    pending = []
    return [...before, ...chunksOf(cursor, event)]
  }

  function chunksOf(cursor: Cursor, event: Event | WireEvent | TokenEvent): ChatChunk[] {
    if (isOver) return []
    if (event.type === 'deleted') return fail('The task was deleted')
    const changes = narrator.take(cursor, event)
    if (!narrator.isWhole) return fail('Events were lost; retrieve the conversation')
    const last = changes.at(-1)
    if (!last || (last.type === 'asked' && last.more)) return []
    const { turn } = narrator
    if (turn.attempt > attempt && sent.content !== '') {
      // An attempt whose worker died before it began sends no text, so the turn's own error is the reason.
      const isLost = last.type === 'ended' && turn.status !== 'completed'
      return fail(isLost ? failureOf(turn) : 'The agent begins again; its text so far does not count')
    }
    if (turn.attempt > attempt) {
      index = Math.max(segment.from, narrator.messages[0]?.index ?? turn.firstIndex ?? 0)
      sentText = ''
    }
    attempt = turn.attempt
    return last.type === 'ended' ? end(turn) : proceed()
  }

  function proceed(): ChatChunk[] {
    return ask() ?? (hidesRetries ? [] : more())
  }

  /** Null while no function of the client is called, or while a message that came before the call is not there. */
  function ask(): ChatChunk[] | null {
    const calls = callsOf(narrator.turn.waits, segment)
    const to = endOf(calls)
    if (calls.length === 0 || narrator.nextIndex < to) return null
    if (within(narrator.messages, { from: segment.from, to }).some(({ status }) => status === 'streaming')) return null
    const asked = chunkOf({ tool_calls: calls.map((call, place) => ({ index: place, ...toolCall(call) })) })
    return close({ from: segment.from, to }, [asked, chunkOf({}, 'tool_calls')], {})
  }

  function more(to: number | null = null): ChatChunk[] {
    const chunks: ChatChunk[] = []
    for (let message = narrator.messageAt(index); message && index < (to ?? Infinity); message = narrator.messageAt(index)) {
      const { content, status } = message
      const field = content.type === 'reasoning' ? 'reasoning_content' : 'content'
      const now = content.type === 'reasoning' ? reasoningOf([message]) : textOf([message])
      // Replaced content cannot be sent again. The end of the stream compares the texts.
      const added = now.startsWith(sentText) ? now.slice(sentText.length) : ''
      // Between two texts stands an empty line.
      const text = added !== '' && sentText === '' && sent[field] !== '' ? `\n\n${added}` : added
      sentText += added
      sent[field] += text
      if (text !== '') chunks.push(chunkOf({ [field]: text }))
      if (status === 'streaming' && isInCompletion[content.type]) break
      index = message.index + 1
      sentText = ''
    }
    return chunks
  }

  function end(turn: ChatOutcome): ChatChunk[] {
    const asked = ask()
    if (asked) return asked
    const range = { from: segment.from, to: null }
    if (turn.status !== 'completed') return [...more(), ...fail(failureOf(turn))]
    return close(range, [chunkOf({}, reasons[turn.stopReason ?? 'stop'])], turn.usage ?? {})
  }

  function close(range: Range, last: ChatChunk[], usage: NonNullable<Turn['usage']>): ChatChunk[] {
    const rest = more(range.to)
    if (textOf(within(narrator.messages, range)) !== sent.content) return fail('The agent replaced its text')
    isOver = true
    return [...rest, ...last, ...(includesUsage ? [{ ...common, choices: [], usage: chatUsage(usage) }] : [])]
  }

  function fail(message: string): ChatChunk[] {
    isOver = true
    return [{ error: { message, type: 'server_error', param: null, code: 'server_error' } }]
  }

  function chunkOf(delta: object, finish_reason: string | null = null): ChatChunk {
    return { ...common, choices: [{ index: 0, delta, logprobs: null, finish_reason }] }
  }
}

function failureOf({ status, error }: ChatOutcome): string {
  return error?.message ?? `The turn ${status}`
}

/** The functions of the client that end a completion. Approvals and forms do not: this API has no words for them, so they are answered elsewhere. */
function callsOf(waits: readonly Wait[] | undefined, { number }: Segment): Question[] {
  const later = questionsOf(waits).slice(number - 1)
  const first = later.find(({ kind }) => kind === 'tool')
  return first ? later.filter(({ kind, createdAt }) => kind === 'tool' && createdAt === first.createdAt) : []
}

export function isCalling(waits: readonly Wait[] | undefined, segment: Segment): boolean {
  return callsOf(waits, segment).length > 0
}

function toolCall(wait: Wait): object {
  const item = questionItem(wait)
  const id = item.type === 'function_call' ? item.call_id : item.id
  return { id, type: 'function', function: { name: item.name, arguments: item.arguments } }
}

function within(messages: readonly Message[], { from, to }: Range): Message[] {
  return messages.filter(({ index }) => index >= from && (to === null || index < to))
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
  const parts = messages.flatMap(({ content }) => (content.type === 'reasoning' ? [...content.summary, ...content.content] : []))
  return parts.filter(part => part !== '').join('\n\n')
}

function commonOf({ task, number, agent, queuedAt, segment }: ResponseHead, object: string) {
  return { id: formatResponseId({ task, turnNumber: number, segment: segment.number }), object, created: secondsOf(queuedAt), model: agent }
}

function chatUsage(usage: NonNullable<Turn['usage']>) {
  const { input_tokens, input_tokens_details, output_tokens, output_tokens_details, total_tokens } = usageOf(usage)
  return {
    ...{ prompt_tokens: input_tokens, prompt_tokens_details: input_tokens_details },
    ...{ completion_tokens: output_tokens, completion_tokens_details: output_tokens_details },
    total_tokens,
  }
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
