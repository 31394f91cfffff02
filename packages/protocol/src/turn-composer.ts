/**
 * Turns what an agent says into the events of its turn: the rules of the protocol, seen from the writer.
 *
 * Whatever comes out can be appended, folded by any reader and stored: indexes open in order, a message that nobody started is started empty,
 * deltas fit their message and carry their offset, text is well formed, long deltas are split, nothing follows a close. What does not belong
 * is discarded and counted or, where the caller is strict, refused.
 */
import { base64Bytes, canonicalBase64 } from './base64.ts'
import { emptyContent } from './content.ts'
import { formatCursor } from './cursor.ts'
import { contentTypeOf, type Delta, isTextDelta } from './delta.ts'
import { brokenJson, closeJson, type DeltaAccumulator } from './delta-accumulator.ts'
import { splitDelta, utf8Length } from './delta-split.ts'
import type { Failure, Message } from './entities.ts'
import { type ErrorCode, RivuletError } from './errors.ts'
import type { Event, EventOf } from './event.ts'
import { createHalfCharacters } from './half-characters.ts'
import { toStorableJson, toStorableText } from './json.ts'
import { defaultLimits, type Limits, limitNames } from './limits.ts'
import type { MessageStatus } from './status.ts'
import { applyEvent, closingEvents, emptyState, messageAt, messagesOf, nextIndexOf, type TaskState } from './task-fold.ts'
import { copyTextDelta, type Update, type UpdateOf, updateSchema } from './update.ts'

export type ComposedTurn = { task: string; turn: number; attempt: number; firstIndex: number }

export type TurnComposer = {
  /**
   * The events that an update becomes, in order; none where nothing is to be said.
   * `strict` refuses what comes after a close or before a start, instead of discarding it or starting the message itself.
   */
  compose(update: Update, options?: { strict?: boolean }): Event[]
  /** What ends the messages that are still open, in index order. */
  closeAll(status: Exclude<MessageStatus, 'streaming'>, error?: Failure): Event[]
  /** The turn as it stands, for a log that lost it: what follows `turn.started` there. */
  rewrite(): Event[]
  /** The agent's message at its own index. */
  messageAt(index: number): Message | undefined
  messages(): Message[]
  /** The agent's own index of its next new message. */
  nextIndex(): number
  /** Updates that came too late, or had nothing to end. */
  discarded(): number
}

export type ComposerOptions = { limits?: Pick<Limits, 'deltaBytes' | 'turnBytes' | 'jsonDepth'>; now?: () => number }

export function createTurnComposer(turn: ComposedTurn, { limits = defaultLimits, now = Date.now }: ComposerOptions = {}): TurnComposer {
  const { task, turn: number, attempt, firstIndex } = turn
  const halves = createHalfCharacters()
  let state: TaskState = { ...emptyState, messagesFrom: firstIndex }
  let said = 0
  let discarded = 0
  let bytes = 0

  return {
    compose,
    closeAll,
    rewrite: () => messagesOf(state).flatMap(rewriteMessage),
    messageAt: index => messageAt(state, firstIndex + index)?.message,
    messages: () => messagesOf(state),
    nextIndex: () => nextIndexOf(state) - firstIndex,
    discarded: () => discarded,
  }

  function compose(given: Update, { strict = false } = {}): Event[] {
    const update = checkUpdate(given, limits.jsonDepth)
    if (update.type === 'custom') {
      count(update)
      return [say(customEvent(update))]
    }
    const index = firstIndex + update.index
    const known = messageAt(state, index)
    const fault = faultOf(update, known, index, strict)
    if (fault?.fatal || (fault && strict)) throw new RivuletError(fault.code, `${update.type} at message ${update.index}: ${fault.message}`)
    if (fault) {
      discarded += 1
      return []
    }
    if (update.type === 'delta') known?.offsetOf(update.delta) // refuses a delta that does not fit, before anything changes
    count(update)
    return eventsOf(update, known, index)
  }

  /** Why an update cannot be taken; a fatal reason fails the turn also where the caller is not strict. */
  function faultOf(
    update: Exclude<Update, { type: 'custom' }>,
    known: DeltaAccumulator | undefined,
    index: number,
    strict: boolean,
  ): Fault | null {
    if (known && !known.isOpen) return { code: 'message_closed', message: 'it is closed' }
    if (known) return update.type === 'start' ? { code: 'index_out_of_order', message: 'it is open already' } : null
    if (update.type === 'done') return { code: 'message_not_started', message: 'it was not started' }
    if (update.type === 'delta' && strict) return { code: 'message_not_started', message: 'it was not started' }
    if (index === nextIndexOf(state) || (update.type === 'delta' && isEmpty(update.delta))) return null
    return { code: 'index_out_of_order', message: `message ${nextIndexOf(state) - firstIndex} comes first`, fatal: true }
  }

  function eventsOf(update: Exclude<Update, { type: 'custom' }>, known: DeltaAccumulator | undefined, index: number): Event[] {
    switch (update.type) {
      case 'start':
        return [say(startedEvent(index, update))]
      case 'delta':
        return deltaEvents(index, known, update.delta)
      case 'full': {
        halves.forget(index)
        const { content, metadata } = update
        return [say({ type: 'message.replaced', ...stamp(), index, content, ...(metadata && { metadata }) })]
      }
      case 'done': {
        const { type: _, index: __, status = 'complete', ...how } = update
        return [...flushHalves(index), say(honest({ type: 'message.finished', ...stamp(), index, status, ...how }))]
      }
      default:
        return update satisfies never
    }
  }

  function closeAll(status: Exclude<MessageStatus, 'streaming'>, error?: Failure): Event[] {
    const flushed = messagesOf(state).flatMap(({ index }) => flushHalves(index))
    return [...flushed, ...closingEvents(state, { ...stamp(), status, ...(error && { error }) }).map(closing => say(honest(closing)))]
  }

  function deltaEvents(index: number, known: DeltaAccumulator | undefined, delta: Delta): Event[] {
    if (isEmpty(delta)) return []
    // Also for half a character: the message was spoken of, and the next one may come before the other half.
    const opening = known ? [] : [say(startedEvent(index, { content: emptyContent(contentTypeOf(delta.type)) }))]
    if (delta.type === 'data') halves.forget(index) // what it replaces takes its half character along
    const ready = isTextDelta(delta) ? halves.join(index, delta) : delta
    return ready ? [...opening, ...splitDelta(ready, limits.deltaBytes).map(piece => sayDelta(index, piece))] : opening
  }

  function flushHalves(index: number): Event[] {
    return halves.flush(index).flatMap(half => deltaEvents(index, messageAt(state, index), half))
  }

  function sayDelta(index: number, delta: Delta): Event {
    const offset = messageAt(state, index)?.offsetOf(delta) ?? 0
    // Without `stamp`: a spread takes several times as long, and this is nearly every event.
    return say({ type: 'message.delta', task, turn: number, attempt, at: now(), index, delta, offset })
  }

  /** Before anything is said: an update that is too much is refused whole, so our fold never has what the log has not. */
  function count(update: Update): void {
    const size = sizeOf(update)
    if (bytes + size > limits.turnBytes)
      throw new RivuletError('output_too_large', `${limitNames.turnBytes}: a turn may say at most ${limits.turnBytes} bytes`)
    bytes += size
  }

  /** Keeps an event in the turn's own fold. */
  function say<E extends Event>(event: E): E {
    said += 1
    state = applyEvent(state, event, formatCursor(1, said))
    return event
  }

  /** Says in the log what every reader will find: a message whose JSON does not parse did not complete. */
  function honest(closing: EventOf<'message.finished'>): EventOf<'message.finished'> {
    const content = messageAt(state, closing.index)?.message.content
    if (closing.status !== 'complete' || !content || closeJson(content)) return closing
    return { ...closing, status: 'failed', error: closing.error ?? brokenJson }
  }

  function startedEvent(index: number, { content, metadata }: Pick<UpdateOf<'start'>, 'content' | 'metadata'>): Event {
    return { type: 'message.started', ...stamp(), index, author: 'agent', content, ...(metadata && { metadata }) }
  }

  function customEvent({ name, data, index }: UpdateOf<'custom'>): Event {
    return { type: 'custom', ...stamp(), name, data, ...(index !== undefined && { index: firstIndex + index }) }
  }

  function rewriteMessage({ index, author, content, metadata, status, stopReason, usage, error }: Message): Event[] {
    const started: Event = { type: 'message.started', ...stamp(), index, author, content, metadata }
    if (status === 'streaming') return [started]
    const how = { ...(stopReason && { stopReason }), ...(usage && { usage }), ...(error && { error }) }
    return [started, { type: 'message.finished', ...stamp(), index, status, ...how }]
  }

  function stamp() {
    return { task, turn: number, attempt, at: now() }
  }
}

type Fault = { code: ErrorCode; message: string; fatal?: true }

function checkUpdate(given: Update, maxDepth: number): Update {
  const copied = copyTextDelta(given)
  if (copied) return copied
  const isText = given?.type === 'delta' && typeof given.delta === 'object' && given.delta !== null && isTextDelta(given.delta)
  const parsed = updateSchema.safeParse(isText ? given : toStorableJson(given, maxDepth + 2))
  if (parsed.success) return canonical(parsed.data)
  const issue = parsed.error.issues[0]
  throw new RivuletError('bad_event', `Not an update: ${issue?.message ?? ''} at ${issue?.path.join('.') ?? ''}`, { cause: parsed.error })
}

function canonical(update: Update): Update {
  if (update.type === 'full') return { ...update, content: closeJson(update.content) ?? refuseJson() }
  if (update.type !== 'delta' || update.delta.type !== 'media') return update
  return { ...update, delta: { type: 'media', bytes: canonicalBase64(update.delta.bytes) } }
}

/** A full message is complete: it cannot hold JSON text that is not. */
function refuseJson(): never {
  throw new RivuletError('bad_event', brokenJson.message)
}

function isEmpty(delta: Delta): boolean {
  return (isTextDelta(delta) && delta.text === '') || (delta.type === 'media' && delta.bytes === '')
}

/** Never less than what is written of it. */
function sizeOf(update: Update): number {
  if (update.type === 'done') return 0
  if (update.type !== 'delta') return utf8Length(JSON.stringify(update))
  const { delta } = update
  if (isTextDelta(delta)) return utf8Length(toStorableText(delta.text))
  return delta.type === 'media' ? base64Bytes(delta.bytes) : utf8Length(JSON.stringify(delta))
}
