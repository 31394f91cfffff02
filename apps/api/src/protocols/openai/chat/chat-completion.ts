/**
 * A turn as a chat completion of OpenAI's older API, whole or streamed: up to its end, or to a call of the client's functions.
 *
 * Chunks only append text, and cannot take anything back. So the stream has the texts of one attempt, one after the other; if a new attempt, a
 * replaced message or a gap makes them untrue, it ends with an error. Reasoning is not part of the protocol and ends nothing: what a client has of it may
 * be that of a failed attempt. With `hidesRetries`, all of it comes at the end instead, when it is certain. It cannot be resumed.
 */
import {
  applyOrSkip,
  type Content,
  type Cursor,
  type Event,
  emptyState,
  type FoldedTurn,
  hasEnded,
  type Message,
  messageAt,
  messagesOf,
  nextIndexOf,
  restoreState,
  type Snapshot,
  type StopReason,
  type TaskState,
  type TokenEvent,
  type Turn,
  type Wait,
  type WireEvent,
} from '@rivulet/protocol'
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
    open: ({ heard }) => openChatStream(head, options, heard),
    encode: (chunk, cursor, isLast) => `data: ${JSON.stringify(chunk)}${isLast ? idLine(cursor) : frameEnd}`,
    ending: 'data: [DONE]\n\n',
  }
}

export async function openChatStream(
  head: ResponseHead,
  { includesUsage, hidesRetries }: ChatOptions,
  heard?: AsyncIterable<LoggedEvent>,
): Promise<DialectStream<ChatChunk>> {
  const { segment } = head
  let state = emptyState
  let attempt = 0
  /** The message that is being told, and what of it. Those behind it wait until it is closed. */
  let index = segment.from
  let said = ''
  const told = { content: '', reasoning_content: '' }
  /** Whether another call follows that was asked for together with the last one. */
  let isAskingMore = false
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
        return [...before, ...restore(cursor, event)]
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

  /** A snapshot is the beginning, or a gap, in which the attempt may have become another one. Until its log is restored, it may lack messages. */
  function restore(cursor: Cursor, { task: { status }, turns, messages, messagesFrom }: Snapshot): ChatChunk[] {
    const own = messages.filter(({ turn }) => turn === head.number)
    const isWhole = messagesFrom === 0 || messages.some(({ turn }) => turn < head.number)
    if (!isWhole) return fail('Events were lost; retrieve the conversation')
    state = restoreState(cursor, { status, turns, messages: own, messagesFrom: own[0]?.index ?? messagesFrom + messages.length })
    // Questions that are asked together are appended together, so the snapshot has all of them.
    isAskingMore = false
    const turn = turnIn(state)
    const failure = start(turn.attempt, state.messagesFrom)
    return isOver ? failure : hasEnded(turn.status) ? end(turn) : proceed()
  }

  function follow(cursor: Cursor, event: Event): ChatChunk[] {
    if (event.turn !== head.number || isOver) return []
    state = applyOrSkip(state, event, cursor)
    switch (event.type) {
      case 'turn.started':
        return start(event.attempt, event.firstIndex)
      case 'message.started':
      case 'message.delta':
      case 'message.replaced':
      case 'message.finished':
      case 'turn.resumed':
        return proceed()
      case 'turn.waiting':
        isAskingMore = event.more === true
        return proceed()
      case 'turn.finished':
        return end(turnIn(state))
      default:
        return []
    }
  }

  function start(number: number, firstIndex: number): ChatChunk[] {
    if (number > attempt && told.content !== '') return fail('The agent begins again; its text so far does not count')
    if (number > attempt) begin(firstIndex)
    attempt = number
    return []
  }

  function begin(firstIndex: number): void {
    index = Math.max(segment.from, firstIndex)
    said = ''
  }

  function proceed(): ChatChunk[] {
    return ask() ?? (hidesRetries ? [] : more())
  }

  /** Null while no function of the client is called, or while a message that came before the call is not there. */
  function ask(): ChatChunk[] | null {
    const calls = callsOf(turnIn(state).waits, segment)
    const to = endOf(calls)
    if (calls.length === 0 || isAskingMore || nextIndexOf(state) < to) return null
    if (ownMessages({ from: segment.from, to }).some(({ status }) => status === 'streaming')) return null
    const asked = chunkOf({ tool_calls: calls.map((call, place) => ({ index: place, ...toolCall(call) })) })
    return close({ from: segment.from, to }, [asked, chunkOf({}, 'tool_calls')], {})
  }

  function more(to: number | null = null): ChatChunk[] {
    const chunks: ChatChunk[] = []
    for (let message = messageAt(state, index)?.message; message && index < (to ?? Infinity); message = messageAt(state, index)?.message) {
      const { content, status } = message
      const field = content.type === 'reasoning' ? 'reasoning_content' : 'content'
      const now = content.type === 'reasoning' ? reasoningOf([message]) : textOf([message])
      // Replaced content cannot be sent again. The end of the stream compares the texts.
      const added = now.startsWith(said) ? now.slice(said.length) : ''
      // Between two texts stands an empty line.
      const text = added !== '' && said === '' && told[field] !== '' ? `\n\n${added}` : added
      said += added
      told[field] += text
      if (text !== '') chunks.push(chunkOf({ [field]: text }))
      if (status === 'streaming' && isInCompletion[content.type]) break
      index = message.index + 1
      said = ''
    }
    return chunks
  }

  function end(turn: ChatOutcome): ChatChunk[] {
    const asked = ask()
    if (asked) return asked
    const range = { from: segment.from, to: null }
    if (turn.status !== 'completed') return [...more(), ...fail(turn.error?.message ?? `The turn ${turn.status}`)]
    return close(range, [chunkOf({}, reasons[turn.stopReason ?? 'stop'])], turn.usage ?? {})
  }

  function close(range: Range, last: ChatChunk[], usage: NonNullable<Turn['usage']>): ChatChunk[] {
    const rest = more(range.to)
    if (textOf(ownMessages(range)) !== told.content) return fail('The agent replaced its text')
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

  function ownMessages(range: Range): Message[] {
    return within(messagesOf(state), range).filter(({ turn }) => turn === head.number)
  }

  function turnIn({ turns }: TaskState): FoldedTurn {
    return turns.find(({ number }) => number === head.number) ?? { number: head.number, status: 'queued', attempt: 0 }
  }
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
