/**
 * A run of AG-UI: one segment of a turn, from its start or an answer to its end or the next question to a person.
 *
 * Every response is a run of its own for the client: it begins with RUN_STARTED. A client that has posted an input has the thread already. Any other
 * gets a snapshot of the messages first, with what is open as far as it is, and the rest as it comes. A new attempt, a replaced message and a gap
 * come as a snapshot, too, because nothing else takes something back.
 *
 * The cursor of a run is a place in the log of its own task. The logs of its children need none: a client that resumes gets what they say as it is now.
 */
import {
  type Cursor,
  type Event,
  type EventOf,
  hasEnded,
  isAnsweredByRequest,
  type Snapshot,
  type TokenEvent,
  type Wait,
  type WireEvent,
} from '@rivulet/protocol'
import type { DialectStream, LoggedEvent, StreamOptions } from '../../stream/dialects/dialect.ts'
import { type AgUiMessage, idOf, storedActivities } from './ag-ui-message.ts'
import { type AgUiChunk, createMessageTeller } from './message-teller.ts'
import { endOf, errorOf, interruptionOf } from './run-ending.ts'
import { createSharedState } from './shared-state.ts'
import { createSubagents, taskIdOf } from './subagents.ts'
import { createThread, type ThreadOptions } from './thread.ts'

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
  heard: AsyncIterable<LoggedEvent> | undefined,
  followChild?: StreamOptions['follow'],
): Promise<DialectStream<AgUiChunk>> {
  const { task, threadId } = run
  const thread = createThread(run)
  const teller = createMessageTeller()
  const subagents = createSubagents({ callOf: thread.callOf, follow: followChild, retold })
  const sharedState = createSharedState()
  const known = new Set(run.known)
  /** Events of children that a client which resumes has. */
  const heardChildren: EventOf<'child.started' | 'child.finished'>[] = []
  let phase: 'opened' | 'started' | 'ended' = 'opened'
  /** The last event, while the end of a child is on its way. */
  let ending: AgUiChunk | null = null
  /** Whether the client lacks something of other turns. */
  let isBehind = false
  /** Whether the client may have reasoning, which it keeps where a snapshot has none. */
  let hasReasoning = run.isBack && heard === undefined
  /** Whether a client that resumes may have been cut inside the next event that it gets something of. */
  let mayHavePart = heard !== undefined
  if (heard) await resume(heard)
  return { take, hasEnded: () => phase === 'ended', isPlace: event => taskIdOf(event) === task }

  async function resume(events: AsyncIterable<LoggedEvent>): Promise<void> {
    for await (const { cursor, event } of events) {
      thread.apply(cursor, event)
      if (event.type === 'child.started' || event.type === 'child.finished') heardChildren.push(event)
    }
    await thread.completePast()
  }

  function take(cursor: Cursor, event: Event | WireEvent | TokenEvent): AgUiChunk[] {
    if (phase === 'ended') return []
    if (taskIdOf(event) !== task) return [...subagents.take(cursor, event), ...endIfReady()]
    if (ending && event.type !== 'deleted') return []
    switch (event.type) {
      case 'snapshot':
        return begin(cursor, event)
      case 'deleted':
        return finish(errorOf({ code: 'task_not_found', message: 'The task was deleted' }))
      case 'caught_up':
        return catchUp()
      case 'token':
      case 'end':
        return []
      default:
        return follow(cursor, event)
    }
  }

  /** A client that has everything the log has gets the outcome again, if there is one. */
  function catchUp(): AgUiChunk[] {
    thread.joinLatest()
    const opening = phase === 'opened' ? start() : []
    return [...opening, ...endIfOver()]
  }

  function begin(cursor: Cursor, snapshot: Snapshot): AgUiChunk[] {
    thread.restore(cursor, snapshot)
    const opening = phase === 'opened' ? start() : [...retold(), ...changedState(), ...subagents.begin(thread.turn()?.waits)]
    isBehind ||= thread.hasOtherTurns()
    return [...opening, ...endIfOver()]
  }

  function follow(cursor: Cursor, event: Event): AgUiChunk[] {
    if (event.type === 'turn.queued' || event.type === 'turn.started') thread.join(event.turn)
    // What the client has, before what follows.
    const opening = phase === 'opened' && thread.hasTurn() ? start() : []
    if (!thread.apply(cursor, event)) return opening
    const chunks = [...changedState(), ...(thread.isFollowed(event.turn) ? tell(event) : note(event))]
    if (chunks.length > 0) mayHavePart = false
    return [...opening, ...chunks]
  }

  function tell(event: Event): AgUiChunk[] {
    switch (event.type) {
      case 'turn.started': {
        const inputs = thread.turnMessages().filter(({ author }) => author === 'user')
        return isBehind || !teller.isBlank() || inputs.some(input => !known.has(idOf(input))) ? retold() : []
      }
      case 'message.delta':
        return teller.grow(event.index, event.delta, event.offset) ?? tellAt(event.index)
      case 'message.replaced':
      case 'message.started':
      case 'message.finished':
        return tellAt(event.index, event.type === 'message.replaced')
      case 'custom':
        return [{ type: 'CUSTOM', name: event.name, value: event.data }]
      case 'turn.waiting':
        return [...subagents.begin([event.wait], null, 'log'), ...(event.more === true ? [] : [...messagesIfAsking(), ...pauseIfAsking()])]
      case 'turn.finished':
        return end(endOf(ids(), thread.turn()))
      case 'child.started':
      case 'child.finished':
        return subagents.tell(event)
      case 'turn.queued':
      case 'turn.resumed':
      case 'state.changed':
      case 'turn.discarded':
      case 'turn.joined':
        return []
      default:
        return event satisfies never
    }
  }

  /** The client gets what another turn says with the next snapshot. From here on it gets a turn that this one has joined. */
  function note(event: Event): AgUiChunk[] {
    if (event.type === 'turn.joined' && thread.isOwn(event.turn)) return [...retold(), ...subagents.begin(thread.turn()?.waits)]
    const isAside = event.type === 'turn.queued' || event.type === 'state.changed' || event.type.startsWith('child.')
    if (!isAside) isBehind = true
    return []
  }

  function tellAt(index: number, isReplaced = false): AgUiChunk[] {
    const message = thread.messageAt(index)
    if (!message) return []
    known.add(idOf(message))
    hasReasoning ||= message.content.type === 'reasoning'
    if (subagents.isHeld()) return []
    // The client keeps the part it has of a reasoning that its snapshot does not have, so it gets another snapshot.
    if (mayHavePart && message.content.type === 'reasoning') return retold()
    // The client gets a message that does not only grow when it is closed, or at once if the agent has replaced it on purpose.
    if (isReplaced && teller.replaces(message)) return retold()
    return teller.tell(message, thread.turnMessages) ?? retold()
  }

  function start(): AgUiChunk[] {
    phase = 'started'
    const started = [{ type: 'RUN_STARTED', ...ids(), protocolVersion: '1.0' }, ...changedState()]
    for (const event of heardChildren) if (thread.isFollowed(event.turn)) subagents.hear(event)
    subagents.note(thread.turn()?.waits)
    // The client may have something of children, of an earlier run of this turn.
    hasReasoning ||= subagents.hasAny()
    const messages = thread.messages()
    const needsAll = run.known === null || subagents.hasAny() || messages.some(({ role, id }) => role !== 'activity' && !known.has(id))
    hasReasoning ||= messages.some(({ role }) => role === 'reasoning')
    const children = subagents.begin()
    subagents.hold()
    const shown = needsAll ? retold() : teller.restart(thread.turnMessages())
    return [...started, ...shown, ...children]
  }

  /** The state of the task, if the client does not have it. */
  function changedState(): AgUiChunk[] {
    return phase === 'started' ? sharedState.tell(thread.agentState()) : []
  }

  /** Everything again, for a client that has something else. */
  function retold(): AgUiChunk[] {
    if (subagents.isHeld()) return []
    const closing = [...teller.close(), ...subagents.close()]
    const messages = [...thread.messages(), ...subagents.messages()]
    hasReasoning ||= subagents.hasReasoning()
    const withReasoning = messages.some(({ role }) => role === 'reasoning')
    const shown: AgUiMessage[] =
      hasReasoning && !withReasoning ? [...messages, { id: `${task}:none`, role: 'reasoning', content: '' }] : messages
    hasReasoning ||= withReasoning
    isBehind = false
    for (const { id } of messages) known.add(id)
    const metadata = { '@ag-ui/client': { authoritativeActivityTypes: storedActivities } }
    const all = { type: 'MESSAGES_SNAPSHOT', messages: shown, metadata }
    // A snapshot keeps the order of what the client has, so its input comes behind the others by a second one.
    const waiting = run.input && thread.isQueued() ? [{ ...all, messages: [...shown, run.input] }] : []
    return [...closing, all, ...waiting, ...teller.restart(thread.turnMessages()), ...subagents.restart()]
  }

  function endIfOver(): AgUiChunk[] {
    const turn = thread.turn()
    return !thread.hasTurn() || (turn && hasEnded(turn.status)) ? end(endOf(ids(), turn)) : pauseIfAsking()
  }

  function pauseIfAsking(): AgUiChunk[] {
    const asked = openQuestions()
    return asked.length === 0 ? [] : end(interruptionOf(ids(), asked, thread.callOf))
  }

  /** AG-UI wants the messages before an interrupt. A client would lose the earlier ones by a part of them. Tools of the client are not an interrupt. */
  function messagesIfAsking(): AgUiChunk[] {
    return thread.isWhole() && openQuestions().some(({ kind }) => kind !== 'tool') ? retold() : []
  }

  function openQuestions(): Wait[] {
    return (thread.turn()?.waits ?? []).filter(isAsked)
  }

  function isAsked({ id, kind, status }: Wait): boolean {
    return status === 'open' && isAnsweredByRequest(kind) && !run.answered.has(id)
  }

  /** The run ends once everything is here that its children have said. */
  function end(last: AgUiChunk): AgUiChunk[] {
    ending = last
    return endIfReady()
  }

  function endIfReady(): AgUiChunk[] {
    return ending && !subagents.isAwaited() ? finish(ending) : []
  }

  /** What is open is closed before the last event. */
  function finish(last: AgUiChunk): AgUiChunk[] {
    phase = 'ended'
    return [...teller.close(), ...subagents.close(), ...subagents.suspend(), last]
  }

  function ids() {
    return { threadId, runId: thread.runId() }
  }
}
