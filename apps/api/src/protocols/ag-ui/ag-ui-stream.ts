/**
 * A run of AG-UI: one segment of a turn, from its start or an answer to its end or the next question to a person.
 *
 * Every response is a run of its own for the client: it begins with RUN_STARTED. A client that has posted an input has the thread already. Any other
 * gets a snapshot of the messages first, with what is open as far as it is, and the rest as it comes. A new attempt, a replaced message and a gap
 * come as a snapshot, too, because nothing else takes something back.
 *
 * The cursor of a run is a place in the log of its own task. The logs of its children need none: a client that resumes gets their output as it is now.
 */
import type { Change } from '@rivulet/narrator'
import {
  type Cursor,
  type Event,
  type EventOf,
  hasEnded,
  isAnsweredByRequest,
  type Message,
  type Snapshot,
  type TokenEvent,
  type Wait,
  type WireEvent,
} from '@rivulet/protocol'
import type { DialectStream, LoggedEvent, StreamOptions } from '../../stream/dialects/dialect.ts'
import { type AgUiMessage, idOf, storedActivities } from './ag-ui-message.ts'
import { endOf, errorOf, interruptionOf } from './run-ending.ts'
import { type AgUiChunk, type MessageChange, SentMessages } from './sent-messages.ts'
import { createSharedState } from './shared-state.ts'
import { Subagents, taskIdOf } from './subagents.ts'
import { callOf, Thread, type ThreadOptions } from './thread.ts'

export type AgUiRun = ThreadOptions & {
  threadId: string
  /** Ids of the messages that the client has; null for a client that needs a snapshot. */
  known: ReadonlySet<string> | null
  /** Waits that this request has answered. */
  answered: ReadonlySet<string>
  /** The input of the client, which is not a message before its turn starts. */
  input: AgUiMessage | null
  /** Whether the client may have messages of an earlier connection. */
  isBack: boolean
}

export async function openAgUiStream(
  run: AgUiRun,
  received: AsyncIterable<LoggedEvent> | undefined,
  followChild?: StreamOptions['follow'],
): Promise<DialectStream<AgUiChunk>> {
  const stream = new AgUiStream(run, received !== undefined, followChild)
  if (received) await stream.resume(received)
  return stream
}

class AgUiStream implements DialectStream<AgUiChunk> {
  readonly #run: AgUiRun
  readonly #thread: Thread
  readonly #subagents: Subagents
  readonly #sentMessages: SentMessages
  readonly #sharedState = createSharedState()
  /** Ids of the messages that the client has. */
  readonly #sentIds: Set<string>
  /** Events of children that a client which resumes has. */
  readonly #receivedChildren: EventOf<'child.started' | 'child.finished'>[] = []
  #phase: 'opened' | 'started' | 'ended' = 'opened'
  /** The last event, while the end of a child is on its way. */
  #ending: AgUiChunk | null = null
  /** Whether the client lacks something of other turns. */
  #isBehind = false
  /** Whether the client may have reasoning, which it keeps where a snapshot has none. */
  #hasReasoning: boolean
  /** Whether a client that resumes may have been cut inside the next event that it gets something of. */
  #mayHavePart: boolean

  constructor(run: AgUiRun, isResumed: boolean, follow: StreamOptions['follow']) {
    this.#run = run
    this.#thread = new Thread(run)
    this.#sentMessages = new SentMessages(this.#thread.narrator)
    this.#subagents = new Subagents({ narrator: this.#thread.narrator, follow, resent: () => this.#resent() })
    this.#sentIds = new Set(run.known)
    this.#hasReasoning = run.isBack && !isResumed
    this.#mayHavePart = isResumed
  }

  hasEnded(): boolean {
    return this.#phase === 'ended'
  }

  isPlace(event: Event | WireEvent | TokenEvent): boolean {
    return taskIdOf(event) === this.#run.task
  }

  async resume(received: AsyncIterable<LoggedEvent>): Promise<void> {
    for await (const { cursor, event } of received) {
      this.#thread.narrator.recall(cursor, event)
      if (event.type === 'child.started' || event.type === 'child.finished') this.#receivedChildren.push(event)
    }
    await this.#thread.completePast()
  }

  take(cursor: Cursor, event: Event | WireEvent | TokenEvent): AgUiChunk[] {
    if (this.#phase === 'ended') return []
    if (!this.isPlace(event)) return [...this.#subagents.take(cursor, event), ...this.#endIfReady()]
    if (this.#ending && event.type !== 'deleted') return []
    switch (event.type) {
      case 'snapshot':
        return this.#begin(cursor, event)
      case 'deleted':
        return this.#finish(errorOf({ code: 'task_not_found', message: 'The task was deleted' }))
      case 'caught_up':
        return this.#catchUp()
      case 'token':
      case 'end':
        return []
      default:
        return this.#follow(cursor, event)
    }
  }

  /** A client that has everything the log has gets the outcome again, if there is one. */
  #catchUp(): AgUiChunk[] {
    this.#thread.narrator.join()
    const opening = this.#phase === 'opened' ? this.#start() : []
    return [...opening, ...this.#endIfOver()]
  }

  #begin(cursor: Cursor, snapshot: Snapshot): AgUiChunk[] {
    this.#thread.restore(cursor, snapshot)
    const opening = this.#phase === 'opened' ? this.#start() : [...this.#resent(), ...this.#changedState(), ...this.#newChildren()]
    this.#isBehind ||= this.#thread.hasOtherTurns()
    return [...opening, ...this.#endIfOver()]
  }

  #follow(cursor: Cursor, event: Event): AgUiChunk[] {
    const { narrator } = this.#thread
    if (event.type === 'turn.queued' || event.type === 'turn.started') narrator.join(event.turn)
    // The client gets what was there before, and then what follows.
    const opening = this.#phase === 'opened' && narrator.turnNumber !== null ? this.#start() : []
    const changes = narrator.take(cursor, event)
    // The client gets what another turn emits with the next snapshot.
    const isAside = event.type === 'turn.queued' || event.type === 'state.changed' || event.type.startsWith('child.')
    if (event.turn !== narrator.turn.number && !isAside) this.#isBehind = true
    // From here on the client gets the turn that its own has joined.
    const isJoining = event.type === 'turn.joined' && event.turn === narrator.turnNumber
    const chunks = isJoining ? [...this.#resent(), ...this.#newChildren()] : changes.flatMap(change => this.#chunksOf(change))
    if (chunks.length > 0) this.#mayHavePart = false
    return [...opening, ...chunks]
  }

  #chunksOf(change: Change): AgUiChunk[] {
    switch (change.type) {
      case 'started':
        return change.turn.status === 'queued' || hasEnded(change.turn.status) ? [] : this.#startAttempt()
      case 'opened':
      case 'grew':
      case 'replaced':
      case 'closed':
        return this.#send(change)
      case 'custom':
        return [{ type: 'CUSTOM', name: change.name, value: change.data }]
      case 'asked': {
        const children = this.#subagents.begin([change.wait], null, 'log')
        return change.more ? children : [...children, ...this.#messagesIfAsking(), ...this.#pauseIfAsking()]
      }
      case 'child':
        return this.#subagents.send(change.event)
      case 'state':
        return this.#changedState()
      case 'ended':
        return this.#end(endOf(this.#ids(), change.turn))
      // After the start of another attempt the client has none of these: it has got everything again.
      case 'reset':
        return this.#sentMessages.hasAny(change.dropped) ? this.#resent() : []
      case 'answered':
        return []
      default:
        return change satisfies never
    }
  }

  #startAttempt(): AgUiChunk[] {
    const isNew = (message: Message) => message.author === 'user' && !this.#sentIds.has(idOf(message))
    return this.#isBehind || !this.#sentMessages.isBlank() || this.#thread.narrator.messages.some(isNew) ? this.#resent() : []
  }

  #send(change: MessageChange): AgUiChunk[] {
    const { type, message } = change
    // The start of an attempt has sent its inputs, if the client lacks them. The input of a turn that joins is open first.
    if (type === 'opened' && message.author === 'user' && message.status !== 'streaming') return []
    this.#sentIds.add(idOf(message))
    const isReasoning = message.content.type === 'reasoning'
    this.#hasReasoning ||= isReasoning
    if (this.#subagents.isHeld) return []
    // The client keeps the part it has of a reasoning that its snapshot does not have, so it gets another snapshot.
    const isUnsure = this.#mayHavePart && isReasoning && type !== 'grew'
    return (isUnsure ? null : this.#sentMessages.take(change)) ?? this.#resent()
  }

  #start(): AgUiChunk[] {
    this.#phase = 'started'
    const { narrator } = this.#thread
    const subagents = this.#subagents
    const started = [{ type: 'RUN_STARTED', ...this.#ids(), protocolVersion: '1.0' }, ...this.#changedState()]
    for (const event of this.#receivedChildren) if (event.turn === narrator.turn.number) subagents.recall(event)
    subagents.note(narrator.turn.waits)
    // The client may have something of children, of an earlier run of this turn.
    this.#hasReasoning ||= subagents.hasAny()
    const messages = this.#thread.messages()
    const isNew = ({ role, id }: AgUiMessage) => role !== 'activity' && !this.#sentIds.has(id)
    const needsAll = this.#run.known === null || subagents.hasAny() || messages.some(isNew)
    this.#hasReasoning ||= messages.some(({ role }) => role === 'reasoning')
    const children = subagents.begin()
    subagents.hold()
    const shown = needsAll ? this.#resent() : this.#sentMessages.restart(narrator.messages)
    return [...started, ...shown, ...children]
  }

  #newChildren(): AgUiChunk[] {
    return this.#subagents.begin(this.#thread.narrator.turn.waits)
  }

  /** The state of the task, if the client does not have it. */
  #changedState(): AgUiChunk[] {
    return this.#phase === 'started' ? this.#sharedState.send(this.#thread.narrator.state.agentState) : []
  }

  /** Everything again, for a client that has something else. */
  #resent(): AgUiChunk[] {
    const subagents = this.#subagents
    if (subagents.isHeld) return []
    const closing = [...this.#sentMessages.close(), ...subagents.close()]
    const messages = [...this.#thread.messages(), ...subagents.messages()]
    this.#hasReasoning ||= subagents.hasReasoning
    const withReasoning = messages.some(({ role }) => role === 'reasoning')
    const none: AgUiMessage[] =
      this.#hasReasoning && !withReasoning ? [{ id: `${this.#run.task}:none`, role: 'reasoning', content: '' }] : []
    const shown = [...messages, ...none]
    this.#hasReasoning ||= withReasoning
    this.#isBehind = false
    for (const { id } of messages) this.#sentIds.add(id)
    const metadata = { '@ag-ui/client': { authoritativeActivityTypes: storedActivities } }
    const all = { type: 'MESSAGES_SNAPSHOT', messages: shown, metadata }
    // A snapshot keeps the order of what the client has, so its input comes behind the others by a second one.
    const { input } = this.#run
    const waiting = input && this.#thread.isQueued() ? [{ ...all, messages: [...shown, input] }] : []
    return [...closing, all, ...waiting, ...this.#sentMessages.restart(this.#thread.narrator.messages), ...subagents.restart()]
  }

  #endIfOver(): AgUiChunk[] {
    const { turn, turnNumber } = this.#thread.narrator
    return turnNumber === null || hasEnded(turn.status) ? this.#end(endOf(this.#ids(), turn)) : this.#pauseIfAsking()
  }

  #pauseIfAsking(): AgUiChunk[] {
    const questions = this.#openQuestions()
    return questions.length === 0 ? [] : this.#end(interruptionOf(this.#ids(), questions, wait => callOf(this.#thread.narrator, wait)))
  }

  /** AG-UI wants the messages before an interrupt. A client would lose the earlier ones by a part of them. Tools of the client are not an interrupt. */
  #messagesIfAsking(): AgUiChunk[] {
    return this.#thread.isWhole() && this.#openQuestions().some(({ kind }) => kind !== 'tool') ? this.#resent() : []
  }

  #openQuestions(): Wait[] {
    const { answered } = this.#run
    const { state, turn } = this.#thread.narrator
    const { waits = [], number } = turn
    // The questions of a turn that is being discarded are closed by its end.
    if (state.turns.some(each => each.number === number && each.status === 'discarded')) return []
    return waits.filter(({ id, kind, status }) => status === 'open' && isAnsweredByRequest(kind) && !answered.has(id))
  }

  /** The run ends once everything is here that its children have sent. */
  #end(last: AgUiChunk): AgUiChunk[] {
    this.#ending = last
    return this.#endIfReady()
  }

  #endIfReady(): AgUiChunk[] {
    return this.#ending && !this.#subagents.isAwaited() ? this.#finish(this.#ending) : []
  }

  /** Closes what is open before the last event. */
  #finish(last: AgUiChunk): AgUiChunk[] {
    this.#phase = 'ended'
    return [...this.#sentMessages.close(), ...this.#subagents.close(), ...this.#subagents.suspend(), last]
  }

  #ids() {
    return { threadId: this.#run.threadId, runId: this.#thread.runId() }
  }
}
