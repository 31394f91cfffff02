/**
 * One reader's view of a turn, as changes. From the log, from a snapshot and from both in any mixture, `take` returns what changes for the reader, so that a
 * protocol is a table from changes to its own words.
 *
 * What the reader has is the fold at its place in the log, and the narrator keeps nothing else. It knows no protocol. What a protocol has not sent of a
 * change, or sends late, is the protocol's to remember.
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
  type MessageEvent,
  messageAt,
  messagesOf,
  nextIndexOf,
  noState,
  restoreState,
  type Snapshot,
  type TaskState,
  type TokenEvent,
  type WireEvent,
} from '@rivulet/protocol'
import { type Change, messageChanges, waitChanges } from './change.ts'

export type { Change } from './change.ts'

export type NarratorOptions = {
  /** Null: the first turn that has not ended where the reader begins, else the last, else the next. */
  turnNumber: number | null
  /** Whether the reader gets the turn that this one joins, from then on. */
  followsJoins?: boolean
}

export class Narrator {
  /** Whether all messages of the turn are here. A snapshot may leave out the first ones of a long turn. */
  isWhole = true
  #state: TaskState = emptyState
  /** The turn as the reader knows it. */
  #shown: FoldedTurn | undefined
  #number: number | null
  readonly #options: NarratorOptions

  constructor(options: NarratorOptions) {
    this.#options = options
    this.#number = options.turnNumber
  }

  /** Null while the reader has no turn. */
  get turnNumber(): number | null {
    return this.#number
  }

  /** The turn that the reader gets. */
  get turn(): FoldedTurn {
    return this.#turn ?? { number: this.#number ?? 0, status: 'queued', attempt: 0 }
  }

  /** The fold at the reader's place, with what it has of other turns. */
  get state(): TaskState {
    return this.#state
  }

  /** The messages of the turn that the reader gets. */
  get messages(): Message[] {
    const { number } = this.turn
    return messagesOf(this.#state).filter(({ turn }) => turn === number)
  }

  get nextIndex(): number {
    return nextIndexOf(this.#state)
  }

  messageAt(index: number): Message | undefined {
    const message = messageAt(this.#state, index)?.message
    return message?.turn === this.turn.number ? message : undefined
  }

  /** The reader has this event, and those before it. */
  recall(cursor: Cursor, event: Event): void {
    this.#state = applyOrSkip(this.#state, event, cursor)
    this.#number = this.#options.turnNumber ?? unfinishedTurn(this.#state.turns)
    this.#shown = this.#turn
  }

  /** Gives the reader a turn, unless it has one. */
  join(turnNumber: number | null = latestTurn(this.#state.turns)): void {
    this.#number ??= turnNumber
  }

  /** In order. Events that the fold ignores, and those that the reader has, change nothing. */
  take(cursor: Cursor, event: Event | WireEvent | TokenEvent): Change[] {
    const before = this.#state.agentState
    const changes = this.#changesOf(cursor, event)
    const state = this.#state.agentState
    if (!state || state === before || JSON.stringify(state) === JSON.stringify(before ?? noState)) return changes
    return [{ type: 'state', state }, ...changes]
  }

  #changesOf(cursor: Cursor, event: Event | WireEvent | TokenEvent): Change[] {
    const before = this.#state
    switch (event.type) {
      case 'caught_up':
      case 'token':
      case 'end':
      case 'deleted':
        return []
      case 'snapshot':
        return this.#restore(cursor, event)
      default:
        if (isMessageEvent(event)) return this.#isKept(event.turn) ? this.#follow(cursor, event) : []
    }
    if (event.type === 'turn.queued' || event.type === 'turn.started') this.join(event.turn)
    const messages = event.type === 'turn.started' || event.type === 'turn.joined' ? this.messages : null
    this.#state = applyOrSkip(before, event, cursor)
    if (this.#state === before || this.#state.discarded > before.discarded) return []
    const isOwn = event.turn === this.turn.number
    if (event.type === 'custom') return isOwn ? [{ type: 'custom', name: event.name, data: event.data }] : []
    if (event.type === 'child.started' || event.type === 'child.finished') return isOwn ? [{ type: 'child', event }] : []
    return this.#changesSince(messages, event.type === 'turn.waiting' && event.more)
  }

  #follow(cursor: Cursor, event: MessageEvent): Change[] {
    const state = this.#state
    const before = messageAt(state, event.index)?.message
    this.#state = applyOrSkip(state, event, cursor)
    const message = this.#state.discarded > state.discarded ? undefined : this.messageAt(event.index)
    if (this.#state === state || !message) return []
    if (!before) return [{ type: 'opened', message }]
    switch (event.type) {
      case 'message.started':
        return []
      case 'message.delta':
        return [{ type: 'grew', message, before, delta: event.delta }]
      case 'message.replaced':
        return [{ type: 'replaced', message, before }]
      case 'message.finished':
        return [{ type: 'closed', message, before }]
      default:
        return event satisfies never
    }
  }

  #restore(cursor: Cursor, { task: { status }, turns, messages, messagesFrom, state = noState }: Snapshot): Change[] {
    const before = this.messages
    this.join(latestTurn(turns))
    // Other turns may take a megabyte of a snapshot, and every reader would keep it.
    const kept = messages.filter(({ turn }) => this.#isKept(turn))
    this.isWhole = messagesFrom === 0 || messages.some(({ turn }) => turn < (this.#number ?? 0))
    const from = kept[0]?.index ?? messagesFrom + messages.length
    this.#state = restoreState(cursor, { status, turns, messages: kept, messagesFrom: from, state })
    return this.#changesSince(before)
  }

  /** @param messages what the reader has; null where no message can have changed */
  #changesSince(messages: readonly Message[] | null, more = false): Change[] {
    const now = this.#turn
    if (!now) return []
    const before = this.#shown?.number === now.number ? this.#shown : undefined
    this.#shown = now
    const isStarted =
      !before || now.attempt > before.attempt || (before.status === 'queued' && now.status !== 'queued' && !hasEnded(now.status))
    const isEnded = hasEnded(now.status) && !(before && hasEnded(before.status))
    return [
      ...(isStarted ? [{ type: 'started' as const, turn: now }] : []),
      ...(messages ? messageChanges(messages, this.messages, this.#state.messagesFrom) : []),
      ...waitChanges(before?.waits, now.waits, more),
      ...(isEnded ? [{ type: 'ended' as const, turn: now }] : []),
    ]
  }

  get #turn(): FoldedTurn | undefined {
    const own = this.#turnOf(this.#number)
    return this.#options.followsJoins && own?.joinedTo !== undefined ? this.#turnOf(own.joinedTo) : own
  }

  #turnOf(wanted: number | null): FoldedTurn | undefined {
    const turn = this.#state.turns.find(({ number }) => number === wanted)
    // A turn that is discarded after an attempt of it has begun still gets the ends of its messages, and its `turn.finished`.
    const isEnding = turn?.status === 'discarded' && turn.attempt > 0 && turn.finishedAt === undefined
    return isEnding ? { ...turn, status: 'running' } : turn
  }

  /** A turn may be joined by a later one that this reader is for. */
  #isKept(turnNumber: number): boolean {
    return this.#options.followsJoins || this.#number === null || turnNumber === this.#number
  }
}

function latestTurn(turns: readonly FoldedTurn[]): number | null {
  return unfinishedTurn(turns) ?? turns.at(-1)?.number ?? null
}

function unfinishedTurn(turns: readonly FoldedTurn[]): number | null {
  return turns.find(({ status }) => !hasEnded(status))?.number ?? null
}
