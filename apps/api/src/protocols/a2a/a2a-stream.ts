/**
 * A turn as the event stream of A2A: the whole task first, then what changes, up to its end or to the next question to its caller.
 *
 * A client folds the updates by `append`. What is no longer true is sent again with `append: false`, which replaces it: a new attempt, a replaced
 * message and a gap. An artifact of an attempt that does not count becomes an empty text, because nothing takes one away.
 */
import {
  applyOrSkip,
  type Cursor,
  type Event,
  emptyState,
  type FoldedTurn,
  type Message,
  messageAt,
  messagesOf,
  restoreState,
  type Snapshot,
  type TokenEvent,
  type WireEvent,
} from '@rivulet/protocol'
import type { DialectStream, LoggedEvent } from '../../stream/dialects/dialect.ts'
import {
  type A2aIds,
  type A2aStatus,
  type A2aTask,
  type Artifact,
  a2aTask,
  artifactOf,
  endsStream,
  statusOf,
  type TurnState,
} from './a2a-task.ts'

type About = { taskId: string; contextId: string }

export type A2aChunk =
  | { task: A2aTask }
  | { statusUpdate: About & { status: A2aStatus } }
  | { artifactUpdate: About & { artifact: Artifact; append: boolean; lastChunk: boolean } }

export type A2aRun = A2aIds & {
  turnNumber: number
  /** Waits that this request has answered. */
  answered: ReadonlySet<string>
}

/** What the client has of an artifact: its text; null for one that comes whole. */
type Told = { text: string | null; isOpen: boolean }

export async function openA2aStream(run: A2aRun, heard: AsyncIterable<LoggedEvent> | undefined): Promise<DialectStream<A2aChunk>> {
  const about = { taskId: run.turnId, contextId: run.contextId }
  const told = new Map<number, Told>()
  let state = emptyState
  let phase: 'opened' | 'started' | 'ended' = 'opened'
  let shown: A2aStatus['state'] | null = null
  for await (const { cursor, event } of heard ?? []) state = applyOrSkip(state, event, cursor)
  return { take, hasEnded: () => phase === 'ended' }

  function take(cursor: Cursor, event: Event | WireEvent | TokenEvent): A2aChunk[] {
    if (phase === 'ended') return []
    switch (event.type) {
      case 'snapshot':
        return begin(cursor, event)
      case 'deleted':
        return end({ ...statusNow(), state: 'TASK_STATE_CANCELED' })
      case 'caught_up':
        return [...opening(), ...endIfOver()]
      case 'token':
      case 'end':
        return []
      default:
        return follow(cursor, event)
    }
  }

  function begin(cursor: Cursor, { task: { status }, turns, messages, messagesFrom, state: shared }: Snapshot): A2aChunk[] {
    state = restoreState(cursor, { status, turns, messages, messagesFrom, state: shared })
    const chunks = phase === 'opened' ? opening() : tellAll()
    return [...chunks, ...endIfOver()]
  }

  function follow(cursor: Cursor, event: Event): A2aChunk[] {
    // What the client has, before what follows.
    const first = opening()
    const before = state
    state = applyOrSkip(before, event, cursor)
    if (state === before || state.discarded > before.discarded) return first
    return [...first, ...tell(event)]
  }

  function tell(event: Event): A2aChunk[] {
    // A turn that this one has joined says the rest.
    if (event.type === 'turn.joined' && event.turn === run.turnNumber) return tellAll()
    if (event.turn !== target()) return []
    switch (event.type) {
      case 'turn.started':
        return [...dropGone(), ...changedStatus()]
      case 'message.delta':
        return event.delta.type === 'text' ? grow(event.index, event.delta.text, event.offset) : tellAt(event.index)
      case 'message.started':
      case 'message.replaced':
      case 'message.finished':
        return tellAt(event.index)
      case 'turn.waiting':
        return event.more === true ? [] : endIfOver()
      case 'turn.resumed':
        return changedStatus()
      case 'turn.finished':
        return endIfOver()
      case 'turn.queued':
      case 'turn.discarded':
      case 'turn.joined':
      case 'state.changed':
      case 'child.started':
      case 'child.finished':
      case 'custom':
        return []
      default:
        return event satisfies never
    }
  }

  function opening(): A2aChunk[] {
    if (phase !== 'opened') return []
    phase = 'started'
    for (const message of ownMessages()) remember(message)
    const task = a2aTask(run, turnNow(), ownMessages())
    shown = task.status.state
    return [{ task }]
  }

  function endIfOver(): A2aChunk[] {
    const status = statusNow()
    return endsStream(status) ? [...tellAll(), ...end(status)] : changedStatus()
  }

  function end(status: A2aStatus): A2aChunk[] {
    phase = 'ended'
    return [{ statusUpdate: { ...about, status } }]
  }

  function changedStatus(): A2aChunk[] {
    const status = statusNow()
    if (status.state === shown || endsStream(status)) return []
    shown = status.state
    return [{ statusUpdate: { ...about, status } }]
  }

  function tellAll(): A2aChunk[] {
    return [...dropGone(), ...ownMessages().flatMap(message => tellMessage(message))]
  }

  function dropGone(): A2aChunk[] {
    const kept = new Set(ownMessages().flatMap(message => (artifactOf(message) ? [message.index] : [])))
    return [...told.keys()].flatMap(index => {
      if (kept.has(index)) return []
      told.delete(index)
      return [update({ artifactId: `${index}`, parts: [{ text: '' }] }, { append: false, lastChunk: true })]
    })
  }

  /** The short way for nearly all events: a delta that begins where the client's text ends. */
  function grow(index: number, text: string, offset: number): A2aChunk[] {
    const own = told.get(index)
    if (!own?.isOpen || own.text?.length !== offset) return tellAt(index)
    own.text += text
    return text === '' ? [] : [update({ artifactId: `${index}`, parts: [{ text }] }, { append: true, lastChunk: false })]
  }

  function tellAt(index: number): A2aChunk[] {
    const message = messageAt(state, index)?.message
    return message ? tellMessage(message) : []
  }

  function tellMessage(message: Message): A2aChunk[] {
    const artifact = artifactOf(message)
    if (!artifact) return []
    const before = told.get(message.index)
    const { text, isOpen } = remember(message)
    if (before?.text === text && before.isOpen === isOpen) return []
    const lastChunk = !isOpen
    if (text === null || typeof before?.text !== 'string' || !text.startsWith(before.text))
      return [update(artifact, { append: false, lastChunk })]
    return [update({ ...artifact, parts: [{ text: text.slice(before.text.length) }] }, { append: true, lastChunk })]
  }

  function remember(message: Message): Told {
    const { content, status, index } = message
    const own = { text: content.type === 'text' ? content.text : null, isOpen: status === 'streaming' }
    if (artifactOf(message)) told.set(index, own)
    return own
  }

  function update(artifact: Artifact, how: { append: boolean; lastChunk: boolean }): A2aChunk {
    return { artifactUpdate: { ...about, artifact, ...how } }
  }

  function statusNow(): A2aStatus {
    return statusOf(run, turnNow(), run.answered)
  }

  function turnNow(): TurnState {
    return turnOf(target()) ?? { status: 'queued' }
  }

  /** The turn that the client gets: its own, or the one that it has joined. */
  function target(): number {
    return turnOf(run.turnNumber)?.joinedTo ?? run.turnNumber
  }

  function turnOf(number: number): FoldedTurn | undefined {
    return state.turns.find(turn => turn.number === number)
  }

  function ownMessages(): Message[] {
    const number = target()
    return messagesOf(state).filter(({ turn }) => turn === number)
  }
}
