/**
 * A segment of a turn as the event stream of OpenAI's Responses API. It begins with `response.created` and ends with the whole object, as stored.
 *
 * A new attempt closes what the one before it left open and goes on at the next output indexes; the final output has the committed attempt alone.
 * A client that resumes gets the chunks after its number, made again from the log. Where the log does not have the client's place, the client
 * gets the final object only, because the output indexes that it knows are not known here. With `hidesRetries`, what follows a failed attempt comes
 * at the end, when it is certain.
 */
import { type Change, Narrator } from '@rivulet/narrator'
import {
  type Cursor,
  type Event,
  type FoldedTurn,
  hasEnded,
  type Message,
  type Snapshot,
  type TokenEvent,
  type WireEvent,
} from '@rivulet/protocol'
import type { DialectStream, LoggedEvent } from '../../../stream/dialects/dialect.ts'
import { outputOf, questionItem, sourcesOf } from './output-item.ts'
import { sequenceNumberOf } from './response-id.ts'
import { askingResponse, type OpenAiResponse, type ResponseHead, responseOf, type TurnState } from './response-object.ts'
import { closingQuestions, endOf, hasBegun, type Question, type Range } from './segment.ts'
import { type ItemChunk, SentItems } from './sent-items.ts'

export type ResponseChunk = { type: string; sequence_number: number } & Record<string, unknown>

type Chunk = ItemChunk | { type: string; response: OpenAiResponse }

type ResponseStreamOptions = {
  head: ResponseHead
  /** The number of the last chunk that the client has; null for a client that has nothing. */
  after: number | null
  received?: AsyncIterable<LoggedEvent> | undefined
  /** For a client that joins the deltas of all items. */
  hidesRetries?: boolean | undefined
}

export async function openResponseStream({ received, ...options }: ResponseStreamOptions): Promise<DialectStream<ResponseChunk>> {
  const stream = new ResponseStream(options, options.after === null || received !== undefined)
  for await (const { cursor, event } of received ?? []) stream.replay(cursor, event)
  return stream
}

class ResponseStream implements DialectStream<ResponseChunk> {
  readonly #options: ResponseStreamOptions
  readonly #narrator: Narrator
  readonly #items = new SentItems()
  #last: number
  #attempt = 0
  #phase: 'unopened' | 'created' | 'begun' | 'ended' = 'unopened'
  #isAfterGap = false
  readonly #isKnown: boolean
  /** Whether it is unknown here what the client has, so that only the end can be sent. */
  #isQuiet = false
  /** Whether the items of this attempt wait for the end, because those of an earlier one were sent and do not count. */
  #isHeld = false
  /** Chunks of the last event that the client has a part of. */
  #pending: ResponseChunk[] = []

  /** @param isKnown whether the client has nothing, or what it has is replayed */
  constructor(options: ResponseStreamOptions, isKnown: boolean) {
    this.#options = options
    this.#narrator = new Narrator({ turnNumber: options.head.number })
    this.#last = options.after ?? -1
    this.#isKnown = isKnown
  }

  hasEnded(): boolean {
    return this.#phase === 'ended' && this.#pending.length === 0
  }

  replay(cursor: Cursor, event: Event): void {
    this.#pending = this.take(cursor, event)
  }

  take(cursor: Cursor, event: Event | WireEvent | TokenEvent): ResponseChunk[] {
    const before = this.#pending
    this.#pending = []
    return this.#phase === 'ended' ? before : [...before, ...this.#numbered(cursor, this.#chunksOf(cursor, event))]
  }

  #chunksOf(cursor: Cursor, event: Event | WireEvent | TokenEvent): Chunk[] {
    const { head } = this.#options
    if (event.type === 'deleted') {
      const error = { code: 'task_not_found', message: 'The task was deleted' }
      return this.#close(responseOf(head, { status: 'failed', error }, []), [])
    }
    const changes = this.#narrator.take(cursor, event)
    for (const change of changes) if (change.type === 'reset') this.#hold(change.dropped)
    if (event.type === 'snapshot') return this.#begin(event, changes)
    const { turn } = this.#narrator
    const last = changes.at(-1)
    if (last?.type === 'ended') return this.#end(turn)
    if (!last || !hasBegun(turn.waits, head.segment.number)) return []
    const opening = this.#phase === 'unopened' && head.segment.number > 1 ? [...this.#start(turn), ...this.#allItems()] : []
    const isAskingMore = last.type === 'asked' && last.more
    return [...opening, ...changes.flatMap(change => this.#changed(change)), ...((!isAskingMore && this.#askIfReady()) || [])]
  }

  #changed(change: Change): Chunk[] {
    switch (change.type) {
      case 'started':
        return this.#start(change.turn)
      case 'opened':
      case 'closed':
        return this.#itemOf(change.message)
      case 'grew':
        if (this.#isQuiet || this.#isHeld) return []
        return this.#items.grow(change.before, change.delta) ?? this.#itemOf(change.message)
      case 'replaced':
        this.#freeze(change)
        return this.#itemOf(change.message)
      case 'reset':
      case 'asked':
      case 'answered':
      case 'custom':
      case 'child':
      case 'state':
      case 'ended':
        return []
      default:
        return change satisfies never
    }
  }

  /** Leaves out what the client has. Numbers only grow, also where a snapshot is at the cursor of the event before it. */
  #numbered(cursor: Cursor, chunks: Chunk[]): ResponseChunk[] {
    return chunks.flatMap((chunk, place) => {
      const exact = sequenceNumberOf({ cursor, chunk: place, isAfterGap: this.#isAfterGap })
      this.#isAfterGap ||= exact === null
      const number = exact ?? sequenceNumberOf({ cursor, chunk: place, isAfterGap: true }) ?? 0
      if (!this.#isAfterGap && number <= this.#last) return []
      this.#last = Math.max(number, this.#last + 1)
      const { type, ...fields } = chunk
      return [{ type, sequence_number: this.#last, ...fields }]
    })
  }

  #begin({ turns }: Snapshot, changes: readonly Change[]): Chunk[] {
    const { number, segment } = this.#options.head
    const { turn, isWhole } = this.#narrator
    const isOver = hasEnded(turn.status) || closingQuestions(turn.waits, segment.number).length > 0
    // The client resumes, and gets the object from the rows.
    if (!turns.some(turn => turn.number === number) || (isOver && !isWhole)) throw new Error('The snapshot does not have the whole turn')
    this.#isAfterGap = true
    this.#isQuiet ||= !this.#isKnown
    for (const change of changes) if (change.type === 'replaced') this.#freeze(change)
    const closing = this.#askIfReady()
    if (closing) return closing
    if (hasEnded(turn.status)) return this.#end(turn)
    return hasBegun(turn.waits, segment.number) ? [...this.#start(turn), ...this.#allItems()] : []
  }

  /**
   * Texts of the failed attempt are not repeated where the next one begins with those that the client has. A log that is opened anew drops messages of the
   * same attempt, which writes them again.
   */
  #hold(dropped: readonly Message[]): void {
    const isRetry = this.#narrator.turn.attempt > this.#attempt
    if (!this.#options.hidesRetries || !isRetry || this.#isHeld || this.#items.isEmpty()) return
    this.#isHeld = true
    for (const { index, content } of dropped) if (content.type === 'text') this.#items.skip(index, content.text)
  }

  /** The item's last chunk has content that does not continue what the client has. */
  #freeze({ before, message }: Extract<Change, { type: 'replaced' }>): void {
    if (!textIn(message).startsWith(textIn(before))) this.#items.freeze(message.index)
  }

  /** The client learns that the turn waits, and that it runs; of a further attempt it learns that the items before are cut. */
  #start(turn: TurnState & { attempt: number }): Chunk[] {
    if (this.#isQuiet) return []
    const cut = turn.attempt > this.#attempt ? this.#items.abandon() : []
    this.#attempt = Math.max(this.#attempt, turn.attempt)
    const isQueued = turn.status === 'queued' && turn.attempt === 0
    const isNew = this.#phase === 'unopened'
    const creation = isNew ? [this.#lifecycle('response.created', turn)] : []
    const queueing = isNew && isQueued ? [this.#lifecycle('response.queued', turn)] : []
    const progress = this.#phase !== 'begun' && !isQueued ? [this.#lifecycle('response.in_progress', turn)] : []
    this.#phase = isQueued && this.#phase !== 'begun' ? 'created' : 'begun'
    return [...creation, ...cut, ...queueing, ...progress]
  }

  /** Null while nothing is asked, or while a message that came before the question is not there. */
  #askIfReady(): Chunk[] | null {
    const { nextIndex, messages, turn } = this.#narrator
    const questions = closingQuestions(turn.waits, this.#options.head.segment.number)
    const to = endOf(questions)
    if (questions.length === 0 || nextIndex < to) return null
    return messages.some(({ index, status }) => index < to && status === 'streaming') ? null : this.#end(turn)
  }

  #end(turn: FoldedTurn): Chunk[] {
    const { head } = this.#options
    const { messages } = this.#narrator
    const questions = closingQuestions(turn.waits, head.segment.number)
    if (questions.length > 0) return this.#close(askingResponse(head, questions, messages), messages, questions)
    return this.#close(responseOf(head, turn, outputOf(messages, this.#range(), true)), messages)
  }

  #close(response: OpenAiResponse, messages: Message[], questions: readonly Question[] = []): Chunk[] {
    const isUnopened = this.#phase === 'unopened'
    const first = isUnopened && this.#options.after === null ? [this.#lifecycle('response.created', { status: 'queued' })] : []
    const kept = new Set(response.output.map(({ id }) => id))
    const items = this.#items
    const rest =
      isUnopened || this.#isQuiet
        ? []
        : [
            ...this.#sources(messages).flatMap(source => items.update(source, true)),
            ...items.abandon(kept),
            ...items.ask(questions.map(questionItem)),
          ]
    this.#phase = 'ended'
    return [...first, ...rest, { type: endings[response.status] ?? 'response.completed', response }]
  }

  #itemOf(message: Message): Chunk[] {
    if (message.author === 'user' || this.#isQuiet || this.#isHeld) return []
    const isCall = message.content.type === 'tool_request' || message.content.type === 'tool_response'
    const among = isCall ? this.#narrator.messages : [message]
    const own = this.#sources(among).find(
      ({ message: { index }, response }) => index === message.index || response?.index === message.index,
    )
    return own ? this.#items.update(own) : []
  }

  #allItems(): Chunk[] {
    if (this.#isQuiet || this.#isHeld) return []
    return this.#sources(this.#narrator.messages).flatMap(source => this.#items.update(source))
  }

  #sources(messages: readonly Message[]) {
    return sourcesOf(messages, this.#range())
  }

  #range(): Range {
    const { segment } = this.#options.head
    const questions = closingQuestions(this.#narrator.turn.waits, segment.number)
    return { from: segment.from, to: questions.length > 0 ? endOf(questions) : null }
  }

  #lifecycle(type: string, { status }: Pick<TurnState, 'status'>): Chunk {
    return { type, response: responseOf(this.#options.head, { status }, []) }
  }
}

const endings: Partial<Record<OpenAiResponse['status'], string>> = {
  completed: 'response.completed',
  failed: 'response.failed',
  incomplete: 'response.incomplete',
  cancelled: 'response.incomplete',
}

/** The text of a message, or the arguments of a call: their raw text if there is one, else JSON. Empty for other contents. */
function textIn({ content }: Message): string {
  if (content.type === 'tool_request') return content.raw ?? JSON.stringify(content.arguments)
  return content.type === 'text' ? content.text : ''
}
