/**
 * Converts an agent's updates to the events of its turn, and enforces the writer's rules of the protocol.
 *
 * Its events can always be appended, folded by any reader and stored: indexes open in order, a message without a start is started empty, deltas
 * match their message and carry their offset, text is well formed, long deltas are split, and nothing follows a close. An update that breaks
 * these rules is discarded and counted or, for a strict caller, rejected.
 */

import { type Content, emptyContent } from '../entities/content.ts'
import type { Failure, Message } from '../entities/entities.ts'
import type { State, StateChange } from '../entities/state.ts'
import type { MessageStatus } from '../entities/status/status-schema.ts'
import { type ErrorCode, RivuletError } from '../errors.ts'
import { formatCursor, origin } from '../events/cursor.ts'
import { contentTypeOf, type Delta, isTextDelta } from '../events/delta.ts'
import type { Event, EventOf } from '../events/event.ts'
import { isMessageEvent } from '../events/message-event.ts'
import { copyTextDelta, type Update, type UpdateOf, updateSchema } from '../events/update.ts'
import { defaultLimits, type Limits, limitNames, maxStateBytes } from '../limits.ts'
import { base64Bytes, canonicalBase64 } from '../values/base64.ts'
import { type Json, toStorableJson, toStorableText } from '../values/json.ts'
import { isObject, mergePatch } from '../values/merge-patch.ts'
import { brokenJson, closeJson, type DeltaAccumulator } from './delta-accumulator.ts'
import { splitDelta, utf8Length } from './delta-split.ts'
import { createHalfCharacters } from './half-characters.ts'
import { messageEvents } from './message-events.ts'
import { noState } from './state-fold.ts'
import { applyEvent, closingEvents, messageAt, messagesOf, nextIndexOf, restoreState } from './task-fold.ts'

export type ComposedTurn = {
  task: string
  turn: number
  attempt: number
  firstIndex: number
  /** Messages that are stored and in the log already, from `firstIndex` on. */
  kept?: readonly Message[]
  /** The state of the task before the turn, and the one that the log has of this turn already. */
  state?: State | undefined
  keptState?: State | undefined
}

export type TurnComposer = {
  /**
   * The events of an update, in order; possibly none.
   * `strict` throws for an update after a close or before a start, instead of discarding it or starting the message.
   */
  compose(update: Update, options?: { strict?: boolean }): Event[]
  /** The events by which another turn joins this one: its inputs become messages of the user. */
  join(turnNumber: number, inputs: readonly Content[]): Event[]
  /** The events of a change of the task's state; none if the log has it already, because a turn that parked repeats its changes. */
  changeState(change: StateChange): Event[]
  /** The event by which the log has the state that the turn has, if a turn that parked has not repeated all of its changes. */
  settleState(): Event[]
  /** The state of the task as the turn has made it. */
  state(): State
  /** Takes an event that another composer of this turn has written. */
  adopt(event: Event): void
  /** Returns a function that undoes all later changes. Its cost does not depend on the length of the output. It is called once at most. */
  mark(): () => void
  /** How many bytes the turn may still say. */
  room(): number
  /** The events that close the open messages, in index order. */
  closeAll(status: Exclude<MessageStatus, 'streaming'>, error?: Failure): Event[]
  /** The events that restore the current messages, beside the kept ones, in a log that lost them. */
  rewrite(): Event[]
  /** The agent's message at its own index. */
  messageAt(index: number): Message | undefined
  /** Beside the kept ones. */
  messages(): Message[]
  /** The agent's own index of its next new message. */
  nextIndex(): number
  /** How many updates were discarded: after a close, a second start, or a close without a start. */
  discarded(): number
}

export type ComposerOptions = { limits?: Pick<Limits, 'deltaBytes' | 'turnBytes' | 'jsonDepth'>; now?: () => number }

export function createTurnComposer(turn: ComposedTurn, { limits = defaultLimits, now = Date.now }: ComposerOptions = {}): TurnComposer {
  const { task, turn: number, attempt, firstIndex, kept = [] } = turn
  const halves = createHalfCharacters()
  let state = restoreState(origin, { status: 'running', turns: [], messages: [...kept], messagesFrom: firstIndex })
  let taskState = turn.state ?? noState
  /** The state in the log, and whether this composer wrote it: then a patch of it can follow. */
  let toldState = { ...(turn.keptState ?? taskState), isOurs: false }
  /** The numbers of turns that have joined, by the index of their first message. */
  let joins = new Map<number, number>()
  let recorded = 0
  let discarded = 0
  let bytes = kept.reduce((sum, { content, metadata }) => sum + utf8Length(JSON.stringify([content, metadata])), 0)

  return {
    compose,
    join,
    changeState,
    settleState: () => (toldState.version === taskState.version ? [] : tellState({ value: taskState.value })),
    state: () => taskState,
    adopt,
    mark,
    room: () => limits.turnBytes - bytes,
    closeAll,
    rewrite: () => [
      ...ownMessages().flatMap(message => [...joinAt(message.index), ...messageEvents(message, now())]),
      ...(toldState.isOurs ? tellState({ value: toldState.value }, toldState) : []),
    ],
    messageAt: index => messageAt(state, firstIndex + index)?.message,
    messages: ownMessages,
    nextIndex: () => nextIndexOf(state) - firstIndex,
    discarded: () => discarded,
  }

  function ownMessages(): Message[] {
    return messagesOf(state).slice(kept.length)
  }

  function compose(given: Update, { strict = false } = {}): Event[] {
    const update = checkUpdate(given, limits.jsonDepth)
    if (update.type === 'custom') {
      count(update)
      return [record(customEvent(update))]
    }
    const index = firstIndex + update.index
    const known = messageAt(state, index)
    const fault = faultOf(update, known, index, strict)
    if (fault?.fatal || (fault && strict)) throw new RivuletError(fault.code, `${update.type} at message ${update.index}: ${fault.message}`)
    if (fault) {
      discarded += 1
      return []
    }
    if (update.type === 'delta') known?.offsetOf(update.delta) // Throws for a delta of the wrong type before any state changes.
    count(update)
    return eventsOf(update, known, index)
  }

  function join(turnNumber: number, inputs: readonly Content[]): Event[] {
    const size = utf8Length(JSON.stringify(inputs))
    if (size > limits.turnBytes - bytes) throw tooMuch()
    bytes += size
    const first = nextIndexOf(state)
    joins.set(first, turnNumber)
    const events = inputs.flatMap((content, i): Event[] => {
      const index = first + i
      const started = { type: 'message.started', ...stamp(), index, author: 'user', content, metadata: {} } as const
      return [record(started), record({ type: 'message.finished', ...stamp(), index, status: 'complete' })]
    })
    return [...joinAt(first), ...events]
  }

  function changeState(given: StateChange): Event[] {
    const change = checkChange(given, limits.jsonDepth)
    const value = 'patch' in change ? mergePatch(taskState.value, change.patch) : change.value
    const size = utf8Length(JSON.stringify(value))
    if (size > maxStateBytes)
      throw new RivuletError('state_too_large', `The state of a task has at most ${maxStateBytes} bytes as JSON; this one has ${size}`)
    const next = { version: taskState.version + 1, value }
    const isInLog = next.version < toldState.version || (next.version === toldState.version && isSame(value, toldState.value))
    const told = 'patch' in change && toldState.isOurs ? change : { value }
    const bytesTold = isInLog ? 0 : utf8Length(JSON.stringify(told))
    if (bytes + bytesTold > limits.turnBytes) throw tooMuch()
    bytes += bytesTold
    taskState = next
    return isInLog ? [] : tellState(told)
  }

  function tellState(told: StateChange, { version, value }: State = taskState): Event[] {
    toldState = { version, value, isOurs: true }
    return [{ type: 'state.changed', ...stamp(), version, ...told }]
  }

  function adopt(event: Event): void {
    if (event.type === 'turn.joined') joins.set(event.index, event.turn)
    if (event.type === 'state.changed') {
      const value = event.patch ? mergePatch(taskState.value, event.patch) : (event.value ?? null)
      taskState = { version: event.version, value }
      toldState = { ...taskState, isOurs: true }
    }
    bytes += sizeOfEvent(event)
    if (isMessageEvent(event)) record(event)
  }

  function mark(): () => void {
    const before = { state, taskState, toldState, joins: new Map(joins), recorded, discarded, bytes }
    const undoHalves = halves.mark()
    return () => {
      ;({ state, taskState, toldState, joins, recorded, discarded, bytes } = before)
      undoHalves()
    }
  }

  function joinAt(index: number): Event[] {
    const turnNumber = joins.get(index)
    return turnNumber === undefined ? [] : [{ type: 'turn.joined', ...stamp(), turn: turnNumber, into: number, index }]
  }

  /** The reason to reject an update, or null. A fatal reason is thrown even when the caller is not strict. */
  function faultOf(
    update: Exclude<Update, { type: 'custom' }>,
    known: DeltaAccumulator | undefined,
    index: number,
    strict: boolean,
  ): Fault | null {
    if (known && !known.isOpen) return { code: 'message_closed', message: 'the message is closed' }
    if (known) return update.type === 'start' ? { code: 'index_out_of_order', message: 'the message is already open' } : null
    if (update.type === 'done') return { code: 'message_not_started', message: 'the message was not started' }
    if (update.type === 'delta' && strict) return { code: 'message_not_started', message: 'the message was not started' }
    if (index === nextIndexOf(state) || (update.type === 'delta' && isEmpty(update.delta))) return null
    return { code: 'index_out_of_order', message: `the next new message must have index ${nextIndexOf(state) - firstIndex}`, fatal: true }
  }

  function eventsOf(update: Exclude<Update, { type: 'custom' }>, known: DeltaAccumulator | undefined, index: number): Event[] {
    switch (update.type) {
      case 'start':
        return [record(startedEvent(index, update))]
      case 'delta':
        return deltaEvents(index, known, update.delta)
      case 'full': {
        halves.forget(index)
        const { content, metadata } = update
        return [record({ type: 'message.replaced', ...stamp(), index, content, ...(metadata && { metadata }) })]
      }
      case 'done': {
        const { type: _, index: __, status = 'complete', ...how } = update
        return [...flushHalves(index), record(withTrueStatus({ type: 'message.finished', ...stamp(), index, status, ...how }))]
      }
      default:
        return update satisfies never
    }
  }

  function closeAll(status: Exclude<MessageStatus, 'streaming'>, error?: Failure): Event[] {
    const flushed = messagesOf(state).flatMap(({ index }) => flushHalves(index))
    return [
      ...flushed,
      ...closingEvents(state, { ...stamp(), status, ...(error && { error }) }).map(closing => record(withTrueStatus(closing))),
    ]
  }

  function deltaEvents(index: number, known: DeltaAccumulator | undefined, delta: Delta): Event[] {
    if (isEmpty(delta)) return []
    // Opened even when only half a character is ready, because an update of the next message may come before the other half.
    const opening = known ? [] : [record(startedEvent(index, { content: emptyContent(contentTypeOf(delta.type)) }))]
    if (delta.type === 'data') halves.forget(index) // The value replaces the text that the half belongs to.
    const ready = isTextDelta(delta) ? halves.join(index, delta) : delta
    return ready ? [...opening, ...splitDelta(ready, limits.deltaBytes).map(piece => deltaEvent(index, piece))] : opening
  }

  function flushHalves(index: number): Event[] {
    return halves.flush(index).flatMap(half => deltaEvents(index, messageAt(state, index), half))
  }

  function deltaEvent(index: number, delta: Delta): Event {
    const offset = messageAt(state, index)?.offsetOf(delta) ?? 0
    // Without `stamp()`, because a spread takes several times as long, and nearly every event is a delta.
    return record({ type: 'message.delta', task, turn: number, attempt, at: now(), index, delta, offset })
  }

  /** Called before an event is recorded, so that an update over the limit is rejected whole and the composer's fold stays equal to the log's. */
  function count(update: Update): void {
    const size = sizeOf(update)
    if (bytes + size > limits.turnBytes) throw tooMuch()
    bytes += size
  }

  function tooMuch(): RivuletError {
    return new RivuletError('output_too_large', `The output of the turn exceeds ${limitNames.turnBytes}: at most ${limits.turnBytes} bytes`)
  }

  /** Applies an event to the composer's own fold. */
  function record<E extends Event>(event: E): E {
    recorded += 1
    state = applyEvent(state, event, formatCursor(1, recorded))
    return event
  }

  /** Writes the status that every reader's fold will have: a message whose JSON text is invalid is failed, not complete. */
  function withTrueStatus(closing: EventOf<'message.finished'>): EventOf<'message.finished'> {
    const content = messageAt(state, closing.index)?.message.content
    if (closing.status !== 'complete' || !content || closeJson(content)) return closing
    return { ...closing, status: 'failed', error: closing.error ?? brokenJson }
  }

  function startedEvent(index: number, { content, metadata, author = 'agent' }: Omit<UpdateOf<'start'>, 'type' | 'index'>): Event {
    return { type: 'message.started', ...stamp(), index, author, content, ...(metadata && { metadata }) }
  }

  function customEvent({ name, data, index }: UpdateOf<'custom'>): Event {
    return { type: 'custom', ...stamp(), name, data, ...(index !== undefined && { index: firstIndex + index }) }
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
  throw new RivuletError('bad_event', `Invalid update: ${issue?.message ?? ''} at ${issue?.path.join('.') ?? ''}`, { cause: parsed.error })
}

function canonical(update: Update): Update {
  if (update.type === 'full') return { ...update, content: closeJson(update.content) ?? throwBrokenJson() }
  if (update.type !== 'delta' || update.delta.type !== 'media') return update
  return { ...update, delta: { type: 'media', bytes: canonicalBase64(update.delta.bytes) } }
}

function checkChange(given: StateChange, maxDepth: number): StateChange {
  if ('value' in given) return { value: toStorableJson(given.value, maxDepth) }
  const patch = toStorableJson(given.patch, maxDepth)
  if (isObject(patch)) return { patch }
  throw new RivuletError('bad_call', 'A patch of the state is an object: set another value with state.set')
}

/** A handler that repeats a change makes the same value, with its keys in the same order. */
function isSame(one: Json, other: Json): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** A full message is complete, so its JSON text must be valid. */
function throwBrokenJson(): never {
  throw new RivuletError('bad_event', brokenJson.message)
}

function isEmpty(delta: Delta): boolean {
  return (isTextDelta(delta) && delta.text === '') || (delta.type === 'media' && delta.bytes === '')
}

/** About the size of the update that the event came from. */
function sizeOfEvent(event: Event): number {
  if (event.type === 'message.delta') return sizeOf({ type: 'delta', index: event.index, delta: event.delta })
  return event.type === 'message.finished' ? 0 : utf8Length(JSON.stringify(event))
}

/** The size of an update in bytes; at least the size of its events' content. */
function sizeOf(update: Update): number {
  if (update.type === 'done') return 0
  if (update.type !== 'delta') return utf8Length(JSON.stringify(update))
  const { delta } = update
  if (isTextDelta(delta)) return utf8Length(toStorableText(delta.text))
  return delta.type === 'media' ? base64Bytes(delta.bytes) : utf8Length(JSON.stringify(delta))
}
