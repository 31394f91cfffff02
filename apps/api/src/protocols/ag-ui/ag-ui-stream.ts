/**
 * A run of AG-UI: one segment of a turn, from its start or an answer to its end or the next question to a person.
 *
 * Every response is a run of its own for the client: it begins with RUN_STARTED. A client that has posted an input has the thread already. Any other
 * gets a snapshot of the messages first, with what is open as far as it is, and the rest as it comes. A new attempt, a replaced message and a gap
 * come as a snapshot, too, because nothing else takes something back.
 *
 * The cursor of a run is a place in the log of its own task. The logs of its children need none: a client that resumes gets their output as it is now.
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
import { endOf, errorOf, interruptionOf } from './run-ending.ts'
import { type AgUiChunk, createSentMessages } from './sent-messages.ts'
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
  received: AsyncIterable<LoggedEvent> | undefined,
  followChild?: StreamOptions['follow'],
): Promise<DialectStream<AgUiChunk>> {
  const { task, threadId } = run
  const thread = createThread(run)
  const sentMessages = createSentMessages()
  const subagents = createSubagents({ callOf: thread.callOf, follow: followChild, resent })
  const sharedState = createSharedState()
  const known = new Set(run.known)
  /** Events of children that a client which resumes has. */
  const receivedChildren: EventOf<'child.started' | 'child.finished'>[] = []
  let phase: 'opened' | 'started' | 'ended' = 'opened'
  /** The last event, while the end of a child is on its way. */
  let ending: AgUiChunk | null = null
  /** Whether the client lacks something of other turns. */
  let isBehind = false
  /** Whether the client may have reasoning, which it keeps where a snapshot has none. */
  let hasReasoning = run.isBack && received === undefined
  /** Whether a client that resumes may have been cut inside the next event that it gets something of. */
  let mayHavePart = received !== undefined
  if (received) await resume(received)
  return { take, hasEnded: () => phase === 'ended', isPlace: event => taskIdOf(event) === task }

  async function resume(events: AsyncIterable<LoggedEvent>): Promise<void> {
    for await (const { cursor, event } of events) {
      thread.apply(cursor, event)
      if (event.type === 'child.started' || event.type === 'child.finished') receivedChildren.push(event)
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
    const opening = phase === 'opened' ? start() : [...resent(), ...changedState(), ...subagents.begin(thread.turn()?.waits)]
    isBehind ||= thread.hasOtherTurns()
    return [...opening, ...endIfOver()]
  }

  function follow(cursor: Cursor, event: Event): AgUiChunk[] {
    if (event.type === 'turn.queued' || event.type === 'turn.started') thread.join(event.turn)
    // The client gets what was there before, and then what follows.
    const opening = phase === 'opened' && thread.hasTurn() ? start() : []
    if (!thread.apply(cursor, event)) return opening
    const chunks = [...changedState(), ...(thread.isFollowed(event.turn) ? send(event) : note(event))]
    if (chunks.length > 0) mayHavePart = false
    return [...opening, ...chunks]
  }

  function send(event: Event): AgUiChunk[] {
    switch (event.type) {
      case 'turn.started': {
        const inputs = thread.turnMessages().filter(({ author }) => author === 'user')
        return isBehind || !sentMessages.isBlank() || inputs.some(input => !known.has(idOf(input))) ? resent() : []
      }
      case 'message.delta':
        return sentMessages.grow(event.index, event.delta, event.offset) ?? sendAt(event.index)
      case 'message.replaced':
      case 'message.started':
      case 'message.finished':
        return sendAt(event.index, event.type === 'message.replaced')
      case 'custom':
        return [{ type: 'CUSTOM', name: event.name, value: event.data }]
      case 'turn.waiting':
        return [...subagents.begin([event.wait], null, 'log'), ...(event.more === true ? [] : [...messagesIfAsking(), ...pauseIfAsking()])]
      case 'turn.finished':
        return end(endOf(ids(), thread.turn()))
      case 'child.started':
      case 'child.finished':
        return subagents.send(event)
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
    if (event.type === 'turn.joined' && thread.isOwn(event.turn)) return [...resent(), ...subagents.begin(thread.turn()?.waits)]
    const isAside = event.type === 'turn.queued' || event.type === 'state.changed' || event.type.startsWith('child.')
    if (!isAside) isBehind = true
    return []
  }

  function sendAt(index: number, isReplaced = false): AgUiChunk[] {
    const message = thread.messageAt(index)
    if (!message) return []
    known.add(idOf(message))
    hasReasoning ||= message.content.type === 'reasoning'
    if (subagents.isHeld()) return []
    // The client keeps the part it has of a reasoning that its snapshot does not have, so it gets another snapshot.
    if (mayHavePart && message.content.type === 'reasoning') return resent()
    // The client gets a message that does not only grow when it is closed, or at once if the agent has replaced it on purpose.
    if (isReplaced && sentMessages.replaces(message)) return resent()
    return sentMessages.send(message, thread.turnMessages) ?? resent()
  }

  function start(): AgUiChunk[] {
    phase = 'started'
    const started = [{ type: 'RUN_STARTED', ...ids(), protocolVersion: '1.0' }, ...changedState()]
    for (const event of receivedChildren) if (thread.isFollowed(event.turn)) subagents.recall(event)
    subagents.note(thread.turn()?.waits)
    // The client may have something of children, of an earlier run of this turn.
    hasReasoning ||= subagents.hasAny()
    const messages = thread.messages()
    const needsAll = run.known === null || subagents.hasAny() || messages.some(({ role, id }) => role !== 'activity' && !known.has(id))
    hasReasoning ||= messages.some(({ role }) => role === 'reasoning')
    const children = subagents.begin()
    subagents.hold()
    const shown = needsAll ? resent() : sentMessages.restart(thread.turnMessages())
    return [...started, ...shown, ...children]
  }

  /** The state of the task, if the client does not have it. */
  function changedState(): AgUiChunk[] {
    return phase === 'started' ? sharedState.send(thread.agentState()) : []
  }

  /** Everything again, for a client that has something else. */
  function resent(): AgUiChunk[] {
    if (subagents.isHeld()) return []
    const closing = [...sentMessages.close(), ...subagents.close()]
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
    return [...closing, all, ...waiting, ...sentMessages.restart(thread.turnMessages()), ...subagents.restart()]
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
    return thread.isWhole() && openQuestions().some(({ kind }) => kind !== 'tool') ? resent() : []
  }

  function openQuestions(): Wait[] {
    return (thread.turn()?.waits ?? []).filter(isAsked)
  }

  function isAsked({ id, kind, status }: Wait): boolean {
    return status === 'open' && isAnsweredByRequest(kind) && !run.answered.has(id)
  }

  /** The run ends once everything is here that its children have sent. */
  function end(last: AgUiChunk): AgUiChunk[] {
    ending = last
    return endIfReady()
  }

  function endIfReady(): AgUiChunk[] {
    return ending && !subagents.isAwaited() ? finish(ending) : []
  }

  /** Closes what is open before the last event. */
  function finish(last: AgUiChunk): AgUiChunk[] {
    phase = 'ended'
    return [...sentMessages.close(), ...subagents.close(), ...subagents.suspend(), last]
  }

  function ids() {
    return { threadId, runId: thread.runId() }
  }
}
