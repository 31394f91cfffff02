/**
 * A segment of a turn as the event stream of OpenAI's Responses API. It begins with `response.created` and ends with the whole object, as stored.
 *
 * A new attempt closes what the one before it left open and goes on at the next output indexes; the final output has the committed attempt alone.
 * A client that resumes gets the chunks after its number, made again from the log. Where the log does not have the client's place, the client
 * gets the final object only, because the output indexes that it knows are not known here. With `hidesRetries`, what follows a failed attempt comes
 * at the end, when it is certain.
 */
import {
  applyOrSkip,
  type Cursor,
  type Event,
  emptyState,
  type FoldedTurn,
  hasEnded,
  isMessageEvent,
  type Message,
  messageAt,
  messagesOf,
  nextIndexOf,
  restoreState,
  type Snapshot,
  type TaskState,
  type TokenEvent,
  type WireEvent,
} from '@rivulet/protocol'
import type { DialectStream, LoggedEvent } from '../../../stream/dialects/dialect.ts'
import { createItemTeller, type ItemChunk } from './item-teller.ts'
import { outputOf, questionItem, sourcesOf } from './output-item.ts'
import { sequenceNumberOf } from './response-id.ts'
import { askingResponse, type OpenAiResponse, type ResponseHead, responseOf, type TurnState } from './response-object.ts'
import { closingQuestions, endOf, hasBegun, type Question, type Range } from './segment.ts'

export type ResponseChunk = { type: string; sequence_number: number } & Record<string, unknown>

type Chunk = ItemChunk | { type: string; response: OpenAiResponse }

export type ResponseStreamOptions = {
  head: ResponseHead
  /** The number of the last chunk that the client has; null for a client that has nothing. */
  after: number | null
  heard?: AsyncIterable<LoggedEvent> | undefined
  /** For a client that joins the deltas of all items. */
  hidesRetries?: boolean | undefined
}

export async function openResponseStream({
  head,
  after,
  heard,
  hidesRetries = false,
}: ResponseStreamOptions): Promise<DialectStream<ResponseChunk>> {
  const items = createItemTeller()
  const { segment } = head
  let state = emptyState
  let last = after ?? -1
  let attempt = 0
  let told: 'nothing' | 'created' | 'begun' | 'ended' = 'nothing'
  /** Whether another question follows that was asked together with the last one. */
  let isAskingMore = false
  let isAfterGap = false
  /** Whether it is unknown here what the client has, so that the end alone can be told. */
  let isQuiet = false
  /** Whether the items of this attempt wait for the end, because those of an earlier one were sent and do not count. */
  let isHeld = false
  /** Chunks of the last event that the client has a part of. */
  let pending: ResponseChunk[] = []
  const isKnown = after === null || heard !== undefined
  for await (const { cursor, event } of heard ?? []) pending = [...pending, ...numbered(cursor, follow(cursor, event))]
  return { take, hasEnded: () => told === 'ended' && pending.length === 0 }

  function take(cursor: Cursor, event: Event | WireEvent | TokenEvent): ResponseChunk[] {
    const before = pending
    pending = []
    return told === 'ended' ? before : [...before, ...numbered(cursor, chunksOf(cursor, event))]
  }

  function chunksOf(cursor: Cursor, event: Event | WireEvent | TokenEvent): Chunk[] {
    switch (event.type) {
      case 'snapshot':
        return begin(cursor, event)
      case 'deleted':
        return end({ status: 'failed', error: { code: 'task_not_found', message: 'The task was deleted' } }, [])
      case 'caught_up':
      case 'token':
      case 'end':
        return []
      default:
        return follow(cursor, event)
    }
  }

  /** What the client has already is left out. Numbers only grow, also where a snapshot stands at the cursor of the event before it. */
  function numbered(cursor: Cursor, chunks: Chunk[]): ResponseChunk[] {
    return chunks.flatMap((chunk, place) => {
      const exact = sequenceNumberOf({ cursor, chunk: place, isAfterGap })
      isAfterGap ||= exact === null
      const number = exact ?? sequenceNumberOf({ cursor, chunk: place, isAfterGap: true }) ?? 0
      if (!isAfterGap && number <= last) return []
      last = Math.max(number, last + 1)
      const { type, ...fields } = chunk
      return [{ type, sequence_number: last, ...fields }]
    })
  }

  function begin(cursor: Cursor, { task: { status }, turns, messages, messagesFrom }: Snapshot): Chunk[] {
    const turn = turns.find(({ number }) => number === head.number)
    const own = messages.filter(message => message.turn === head.number)
    const isWhole = messagesFrom === 0 || messages.some(message => message.turn < head.number)
    // The client resumes, and gets the object from the rows.
    if (!turn || (hasFinished(turn) && !isWhole)) throw new Error('The snapshot does not have the whole turn')
    isAfterGap = true
    isQuiet ||= !isKnown
    if (turn.attempt > attempt) hold()
    state = restoreState(cursor, { status, turns, messages: own, messagesFrom: own[0]?.index ?? messagesFrom + messages.length })
    // Questions that are asked together are appended together, so the snapshot has all of them.
    isAskingMore = false
    const asked = askIfReady()
    if (asked) return asked
    if (hasEnded(turn.status)) return end(turn, own)
    if (!hasBegun(turn.waits, segment.number)) return []
    const cut = start(turn)
    return isHeld ? cut : [...cut, ...allItems(own)]
  }

  /** Before a further attempt drops the messages. Its texts are not repeated where it begins with those that the client has. */
  function hold(): void {
    if (!hidesRetries || isHeld || !items.hasTold()) return
    isHeld = true
    for (const { index, content } of ownMessages()) if (content.type === 'text') items.skip(index, content.text)
  }

  function isGrowth(before: TaskState, index: number): boolean {
    const [was, is] = [messageAt(before, index)?.message.content, messageAt(state, index)?.message.content]
    return was?.type === 'text' && is?.type === 'text' && is.text.startsWith(was.text)
  }

  function hasFinished({ status, waits }: Pick<FoldedTurn, 'status' | 'waits'>): boolean {
    return hasEnded(status) || closingQuestions(waits, segment.number).length > 0
  }

  function follow(cursor: Cursor, event: Event): Chunk[] {
    if (told === 'ended' || (event.turn !== head.number && isMessageEvent(event))) return []
    const before = state
    if (event.type === 'turn.started' && event.turn === head.number && event.attempt > attempt) hold()
    state = applyOrSkip(before, event, cursor)
    if (event.turn !== head.number || state === before || state.discarded > before.discarded) return []
    if (event.type === 'message.replaced' && !isGrowth(before, event.index)) items.freeze(event.index)
    if (event.type === 'turn.finished') return end(turnIn(state), ownMessages())
    const turn = turnIn(state)
    if (!hasBegun(turn.waits, segment.number)) return []
    if (event.type === 'turn.waiting') isAskingMore = event.more === true
    const opening = told === 'nothing' && segment.number > 1 ? [...start(turn), ...allItems(ownMessages())] : []
    const chunks = tell(event)
    return [...opening, ...chunks, ...(askIfReady() ?? [])]
  }

  function tell(event: Exclude<Event, { type: 'turn.finished' }>): Chunk[] {
    switch (event.type) {
      case 'turn.queued':
      case 'turn.started':
        return start(turnIn(state))
      case 'message.delta':
        return isQuiet || isHeld ? [] : (items.grow(event.index, event.delta, event.offset) ?? itemAt(event.index))
      case 'message.started':
      case 'message.replaced':
      case 'message.finished':
        return isQuiet || isHeld ? [] : itemAt(event.index)
      case 'turn.discarded':
      case 'state.changed':
      case 'child.started':
      case 'child.finished':
      case 'turn.joined':
      case 'turn.waiting':
      case 'turn.resumed':
      case 'custom':
        return []
      default:
        return event satisfies never
    }
  }

  /** The client learns that the turn waits, and that it runs; of a further attempt it learns that the items before are cut. */
  function start(turn: TurnState & { attempt: number }): Chunk[] {
    if (isQuiet) return []
    const isNew = turn.attempt > attempt
    const cut = isNew ? items.abandon() : []
    attempt = Math.max(attempt, turn.attempt)
    const isQueued = turn.status === 'queued' && turn.attempt === 0
    const creation = told === 'nothing' ? [lifecycle('response.created', turn)] : []
    const progress =
      told === 'nothing' && isQueued
        ? [lifecycle('response.queued', turn)]
        : told !== 'begun' && !isQueued
          ? [lifecycle('response.in_progress', turn)]
          : []
    told = isQueued && told !== 'begun' ? 'created' : 'begun'
    return [...creation, ...cut, ...progress]
  }

  /** Null while nothing is asked, or while a message that came before the question is not there. */
  function askIfReady(): Chunk[] | null {
    const questions = closingQuestions(turnIn(state).waits, segment.number)
    if (questions.length === 0 || isAskingMore) return null
    const to = endOf(questions)
    if (nextIndexOf(state) < to) return null
    const messages = ownMessages()
    if (messages.some(({ index, status }) => index < to && status === 'streaming')) return null
    return close(askingResponse(head, questions, messages), messages, questions)
  }

  function end(turn: TurnState & Pick<FoldedTurn, 'waits'>, messages: Message[]): Chunk[] {
    const questions = closingQuestions(turn.waits, segment.number)
    if (questions.length > 0) return close(askingResponse(head, questions, messages), messages, questions)
    return close(responseOf(head, turn, outputOf(messages, range(), true)), messages)
  }

  function close(response: OpenAiResponse, messages: Message[], questions: readonly Question[] = []): Chunk[] {
    const isBare = told === 'nothing' || isQuiet
    const first = told === 'nothing' && after === null ? [lifecycle('response.created', { status: 'queued' })] : []
    const kept = new Set(response.output.map(({ id }) => id))
    const rest = isBare ? [] : [...allItems(messages, true), ...items.abandon(kept), ...items.ask(questions.map(questionItem))]
    told = 'ended'
    return [...first, ...rest, { type: endings[response.status] ?? 'response.completed', response }]
  }

  function itemAt(index: number): Chunk[] {
    const message = messageAt(state, index)?.message
    if (!message || message.author === 'user') return []
    const isCall = message.content.type === 'tool_request' || message.content.type === 'tool_response'
    const among = isCall ? ownMessages() : [message]
    const own = sourcesOf(among, range()).find(source => source.message.index === index || source.response?.index === index)
    return own ? items.tell(own) : []
  }

  function allItems(messages: Message[], isOver = false): Chunk[] {
    return isQuiet ? [] : sourcesOf(messages, range()).flatMap(source => items.tell(source, isOver))
  }

  function range(): Range {
    const questions = closingQuestions(turnIn(state).waits, segment.number)
    return { from: segment.from, to: questions.length > 0 ? endOf(questions) : null }
  }

  function ownMessages(): Message[] {
    return messagesOf(state).filter(({ turn }) => turn === head.number)
  }

  function turnIn({ turns }: TaskState): FoldedTurn {
    return turns.find(({ number }) => number === head.number) ?? { number: head.number, status: 'queued', attempt: 0 }
  }

  function lifecycle(type: string, { status }: Pick<TurnState, 'status'>): Chunk {
    return { type, response: responseOf(head, { status }, []) }
  }
}

const endings: Partial<Record<OpenAiResponse['status'], string>> = {
  completed: 'response.completed',
  failed: 'response.failed',
  incomplete: 'response.incomplete',
  cancelled: 'response.incomplete',
}
