/**
 * The children of a turn, and theirs, as AG-UI's subagents: that they start and end, and their output between, marked with `subagentRunId`.
 *
 * Each child has a log of its own, which the response follows beside that of the run. The logs are not in step: the log of the parent may have the end of a
 * child before the child's own words are here. So a subagent ends where its own log does, and a run that ends waits for those that its log knows to
 * have ended. AG-UI's client rejects a subagent that starts twice in a run, and a run that finishes while one is active.
 */
import { type Change, Narrator } from '@rivulet/narrator'
import {
  type Cursor,
  type Event,
  type EventOf,
  hasEnded,
  type Message,
  outcomeOf,
  type TaskId,
  type TokenEvent,
  type Wait,
  type WireEvent,
} from '@rivulet/protocol'
import type { StreamOptions } from '../../stream/dialects/dialect.ts'
import { type AgUiMessage, agUiMessages } from './ag-ui-message.ts'
import { type AgUiChunk, type MessageChange, SentMessages } from './sent-messages.ts'
import { callOf } from './thread.ts'

type ChildEvent = EventOf<'child.started' | 'child.finished'>
type Outcome = EventOf<'child.finished'>['status']
type About = { name: string; callId?: string | undefined }

type SubagentsOptions = {
  /** The narrator of the run. */
  narrator: Narrator
  /** Without it, subagents only start and end. */
  follow: StreamOptions['follow']
  /** A snapshot of all messages, where a client has something of a child that is no longer true. */
  resent: () => AgUiChunk[]
}

export class Subagents {
  readonly #options: SubagentsOptions
  readonly #known = new Map<TaskId, Subagent>()
  /** Whether the client may have reasoning of a child. */
  hasReasoning = false
  /** Whether the client gets nothing of messages, because a snapshot of them waits for the output of the children. */
  isHeld = false

  constructor(options: SubagentsOptions) {
    this.#options = options
  }

  hasAny(): boolean {
    return this.#known.size > 0
  }

  /** For a client that resumes: what it may have got in an earlier run. */
  recall(event: ChildEvent): void {
    if (event.type === 'child.started') this.#add(event.child, event, null)
    else this.#report(event)
  }

  /** The children that a snapshot has, as waits. */
  note(waits: readonly Wait[] = [], parent: Subagent | null = null): void {
    for (const { kind, status, child, name, callId, answer } of waits) {
      if (kind !== 'task' || child === undefined) continue
      this.#add(child, { name, callId }, parent)
      if (status === 'answered') this.#report({ child, status: outcomeIn(answer?.content) })
    }
  }

  /** The children that the client has not got in this run, as they are now, or, for a wait that has just come, with all their output. */
  begin(waits: readonly Wait[] = [], parent: Subagent | null = null, from: 'log' | null = null): AgUiChunk[] {
    this.note(waits, parent)
    return this.#all().flatMap(child => (child.phase === 'no' ? this.#start(child, from) : []))
  }

  /** A client that comes back may have messages of these children, which would leave it by a snapshot without them. */
  hold(): void {
    this.isHeld = this.#isLoading()
  }

  /** An event of the log of the run, or of the log of a child. */
  send(event: ChildEvent, parent: Subagent | null = null): AgUiChunk[] {
    if (event.type === 'child.finished') return this.#endIfOver(this.#report(event))
    const child = this.#add(event.child, event, parent)
    return child.phase === 'no' ? this.#start(child, 'log') : []
  }

  /** An event of the log of a child. */
  take(cursor: Cursor, event: Event | WireEvent | TokenEvent): AgUiChunk[] {
    const child = this.#known.get(taskIdOf(event))
    if (child?.phase !== 'started') return []
    const { narrator } = child
    switch (event.type) {
      case 'deleted':
        child.isFollowed = false
        child.isLoading = false
        return [...this.#endIfOver(child), ...this.#release()]
      case 'snapshot': {
        const isNew = child.sentMessages.isBlank()
        child.isLoading = false
        narrator.take(cursor, event)
        // It has had so many turns since that its first is not in the snapshot.
        if (!narrator.state.turns.some(({ number }) => number === 1)) child.isFollowed = false
        const shown = isNew ? child.output().flatMap(message => this.#send(child, { type: 'opened', message })) : this.#options.resent()
        return [...shown, ...this.begin(narrator.turn.waits, child), ...this.#endIfOver(child), ...this.#release()]
      }
      case 'caught_up':
        return this.#endIfOver(child)
      case 'token':
      case 'end':
        return []
      default:
        // Only the first turn of a child is for its parent.
        return event.turn === 1 ? narrator.take(cursor, event).flatMap(change => this.#chunksOf(child, change)) : []
    }
  }

  /** The messages of children that the client has, for a snapshot of all messages. */
  messages(): AgUiMessage[] {
    return this.#active().flatMap(child => agUiMessages(child.output()).map(message => child.mark(message)))
  }

  /** Closes what is open, before a snapshot or an end. */
  close(): AgUiChunk[] {
    return this.#active().flatMap(child => child.sentMessages.close().map(chunk => child.mark(chunk)))
  }

  restart(): AgUiChunk[] {
    return this.#active().flatMap(child => child.sentMessages.restart(child.output()).map(chunk => child.mark(chunk)))
  }

  /** Whether a child has ended whose end is not here yet. */
  isAwaited(): boolean {
    return this.isHeld || this.#all().some(({ phase, reported }) => phase === 'started' && reported !== null)
  }

  /** Before a run ends: children that go on without it. */
  suspend(): AgUiChunk[] {
    return this.#active().flatMap(child => {
      if (child.phase !== 'started') return []
      child.phase = 'ended'
      return [{ type: 'SUBAGENT_FINISHED', subagentRunId: child.id, outcome: { type: 'suspended' } }]
    })
  }

  #chunksOf(child: Subagent, change: Change): AgUiChunk[] {
    switch (change.type) {
      case 'started':
        return child.sentMessages.isBlank() || hasEnded(change.turn.status) ? [] : this.#options.resent()
      case 'opened':
      case 'grew':
      case 'replaced':
      case 'closed':
        return this.#send(child, change)
      case 'custom':
        return [child.mark({ type: 'CUSTOM', name: change.name, value: change.data })]
      case 'child':
        return this.send(change.event, child)
      case 'asked':
        return this.begin([change.wait], child, 'log')
      case 'ended':
        return this.#endIfOver(child)
      // After the start of another attempt the client has none of these: it has got everything again.
      case 'reset':
        return child.sentMessages.hasAny(change.dropped) ? this.#options.resent() : []
      // AG-UI shows no state of a subagent.
      case 'answered':
      case 'state':
        return []
      default:
        return change satisfies never
    }
  }

  #send(child: Subagent, change: MessageChange): AgUiChunk[] {
    const { author, content } = change.message
    if (author === 'user') return []
    this.hasReasoning ||= content.type === 'reasoning'
    if (this.isHeld) return []
    return child.sentMessages.take(change)?.map(chunk => child.mark(chunk)) ?? this.#options.resent()
  }

  #all(): Subagent[] {
    return [...this.#known.values()]
  }

  #active(): Subagent[] {
    return this.#all().filter(({ phase }) => phase !== 'no')
  }

  #isLoading(): boolean {
    return this.#all().some(child => child.isLoading)
  }

  /** The snapshot, once all of them are here. */
  #release(): AgUiChunk[] {
    if (!this.isHeld || this.#isLoading()) return []
    this.isHeld = false
    return [...this.#options.resent(), ...this.#all().flatMap(child => this.#endIfOver(child))]
  }

  #add(id: TaskId, about: About, parent: Subagent | null): Subagent {
    const child = this.#known.get(id) ?? new Subagent(id, about, parent)
    this.#known.set(id, child)
    return child
  }

  #report({ child: id, status }: { child: TaskId; status: Outcome }): Subagent | undefined {
    const child = this.#known.get(id)
    if (child) child.reported ??= status
    return child
  }

  /** @param from `log`: with all its output; null: as it is now */
  #start(child: Subagent, from: 'log' | null): AgUiChunk[] {
    const { id, about, parent } = child
    const { follow } = this.#options
    child.phase = 'started'
    child.isFollowed = follow !== undefined
    child.isLoading = child.isFollowed && from === null
    follow?.(id, from)
    const parentToolCallId = callOf((parent ?? this.#options).narrator, about)
    const started = { type: 'SUBAGENT_STARTED', subagentRunId: id, name: about.name }
    const above = { ...(parent && { parentSubagentRunId: parent.id }), ...(parentToolCallId !== undefined && { parentToolCallId }) }
    return [{ ...started, ...above }, ...this.#endIfOver(child)]
  }

  /** A child ends with its own log; one whose log is not followed, when the log of its parent has its end. */
  #endIfOver(child: Subagent | undefined): AgUiChunk[] {
    if (child?.phase !== 'started' || this.isHeld) return []
    const { status: ownStatus } = child.narrator.turn
    const status = hasEnded(ownStatus) ? outcomeOf(ownStatus) : child.isFollowed ? null : child.reported
    if (status === null) return []
    child.phase = 'ended'
    return [...child.sentMessages.close().map(chunk => child.mark(chunk)), endOf(child.id, status)]
  }
}

class Subagent {
  readonly id: TaskId
  readonly about: About
  readonly parent: Subagent | null
  readonly narrator = new Narrator({ turnNumber: 1 })
  readonly sentMessages = new SentMessages(this.narrator)
  /** What the client has of it in this run. */
  phase: 'no' | 'started' | 'ended' = 'no'
  /** Its outcome in the log of its parent. */
  reported: Outcome | null = null
  /** False for a child whose task was removed, or is not for this caller. */
  isFollowed = false
  /** Whether its output is on its way. */
  isLoading = false

  constructor(id: TaskId, about: About, parent: Subagent | null) {
    this.id = id
    this.about = about
    this.parent = parent
  }

  /** Without its input, which its parent wrote. */
  output(): Message[] {
    return this.narrator.messages.filter(({ author }) => author !== 'user')
  }

  mark<Marked extends object>(chunk: Marked): Marked {
    return { ...chunk, subagentRunId: this.id }
  }
}

export function taskIdOf(event: Event | WireEvent | TokenEvent): TaskId {
  return event.type === 'snapshot' ? event.task.id : event.task
}

function outcomeIn(content: unknown): Outcome {
  const { status } = (content ?? {}) as { status?: unknown }
  return status === 'completed' || status === 'failed' ? status : 'canceled'
}

function endOf(subagentRunId: TaskId, status: Outcome): AgUiChunk {
  if (status === 'completed') return { type: 'SUBAGENT_FINISHED', subagentRunId, outcome: { type: 'success' } }
  return { type: 'SUBAGENT_ERROR', subagentRunId, message: `The subagent has ${status}`, code: status }
}
