/**
 * A run of AG-UI: one segment of a turn, from its start or an answer to its end or the next question to a person.
 *
 * Every response is a run of its own for the client: it begins with RUN_STARTED. A client that has posted an input has the thread already. Any other
 * gets a snapshot of the messages first, with what is open as far as it is, and the rest as it comes. A new attempt, a replaced message and a gap
 * come as a snapshot, too, because nothing else takes something back.
 */
import {
  applyOrSkip,
  type Cursor,
  type Event,
  emptyState,
  type FoldedTurn,
  hasEnded,
  isAnsweredByRequest,
  type Message,
  messageAt,
  messagesOf,
  outcomeOf,
  restoreState,
  type Snapshot,
  type TaskId,
  type TokenEvent,
  type Usage,
  type Wait,
  type WireEvent,
} from '@rivulet/protocol'
import type { DialectStream, LoggedEvent } from '../dialect.ts'
import { type AgUiMessage, agUiMessages, callIdOf, clientIdsOf, idOf, storedActivities } from './ag-ui-message.ts'
import { interruptOf } from './interrupts.ts'
import { type AgUiChunk, createMessageTeller } from './message-teller.ts'
import { createSubagents } from './subagents.ts'

export type AgUiRun = {
  task: TaskId
  threadId: string
  /** Null for a viewer: it gets the id of the run that it joins. */
  runId: string | null
  /** The turn of the run. Null for a viewer: the first that has not ended, else the last. */
  turnNumber: number | null
  /** Ids of the messages that the client has; null for a client that needs a snapshot. */
  known: ReadonlySet<string> | null
  /** Waits that this request has answered. */
  answered: ReadonlySet<string>
  /** The input of the client, which is not a message before its turn starts. */
  input: AgUiMessage | null
  /** Whether the client may have messages of an earlier connection. */
  isBack: boolean
  /** The stored messages before an index, for a client that resumes in a log that does not have them. */
  earlier: (index: number) => Promise<Message[]>
}

export async function openAgUiStream(run: AgUiRun, heard: AsyncIterable<LoggedEvent> | undefined): Promise<DialectStream<AgUiChunk>> {
  const { task, threadId } = run
  const teller = createMessageTeller()
  const subagents = createSubagents(callOf)
  let state = emptyState
  /** Messages before those of the fold. */
  let history: Message[] = []
  const known = new Set(run.known)
  let phase: 'opened' | 'started' | 'ended' = 'opened'
  let own = run.turnNumber
  /** Whether the client lacks something of other turns. */
  let isBehind = false
  /** Whether the client may have reasoning, which it keeps where a snapshot has none. */
  let hasReasoning = run.isBack && heard === undefined
  let shownState = state.agentState
  /** Whether a client that resumes may have been cut inside the next event that it gets something of. */
  let mayHavePart = heard !== undefined
  if (heard) await resume(heard)
  return { take, hasEnded: () => phase === 'ended' }

  async function resume(events: AsyncIterable<LoggedEvent>): Promise<void> {
    for await (const { cursor, event } of events) {
      state = applyOrSkip(state, event, cursor)
      if (event.type === 'child.started' || event.type === 'child.finished') subagents.hear(event)
    }
    if (state.messagesFrom > 0) history = await run.earlier(state.messagesFrom)
    own ??= unfinished()
  }

  function take(cursor: Cursor, event: Event | WireEvent | TokenEvent): AgUiChunk[] {
    if (phase === 'ended') return []
    switch (event.type) {
      case 'snapshot':
        return begin(cursor, event)
      case 'deleted':
        return fail({ code: 'task_not_found', message: 'The task was deleted' })
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
    own ??= state.turns.at(-1)?.number ?? null
    const opening = phase === 'opened' ? start() : []
    return [...opening, ...endIfOver()]
  }

  function endIfOver(): AgUiChunk[] {
    const turn = own === null ? undefined : turnOf(target())
    return own === null || (turn && hasEnded(turn.status)) ? end(turn) : pauseIfAsking()
  }

  function begin(cursor: Cursor, { task: { status }, turns, messages, messagesFrom, state: shared }: Snapshot): AgUiChunk[] {
    history = [...history, ...messagesOf(state)].filter(({ index }) => index < messagesFrom)
    state = restoreState(cursor, { status, turns, messages, messagesFrom, state: shared })
    own ??= unfinished() ?? turns.at(-1)?.number ?? null
    const opening = phase === 'opened' ? start() : [...retold(), ...changedState()]
    isBehind ||= state.turns.some(({ number, status: other }) => number !== target() && !hasEnded(other))
    return [...opening, ...endIfOver()]
  }

  function follow(cursor: Cursor, event: Event): AgUiChunk[] {
    if (own === null && (event.type === 'turn.queued' || event.type === 'turn.started')) own = event.turn
    // What the client has, before what follows.
    const opening = phase === 'opened' && own !== null ? start() : []
    const before = state
    state = applyOrSkip(before, event, cursor)
    if (state === before || state.discarded > before.discarded) return opening
    const chunks = [...changedState(), ...(event.turn === target() ? tell(event) : note(event))]
    if (chunks.length > 0) mayHavePart = false
    return [...opening, ...chunks]
  }

  function tell(event: Event): AgUiChunk[] {
    switch (event.type) {
      case 'turn.started': {
        const inputs = ownMessages().filter(({ author }) => author === 'user')
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
        return event.more === true ? [] : pauseIfAsking()
      case 'turn.finished':
        return end(turnOf(event.turn))
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
    if (event.type === 'turn.joined' && event.turn === own) return retold()
    const isAside = event.type === 'turn.queued' || event.type === 'state.changed' || event.type.startsWith('child.')
    if (!isAside) isBehind = true
    return []
  }

  function tellAt(index: number, isReplaced = false): AgUiChunk[] {
    const message = messageAt(state, index)?.message
    if (!message) return []
    known.add(idOf(message))
    hasReasoning ||= message.content.type === 'reasoning'
    // The client keeps the part it has of a reasoning that its snapshot does not have, so it gets another snapshot.
    if (mayHavePart && message.content.type === 'reasoning') return retold()
    // The client gets a message that does not only grow when it is closed, or at once if the agent has replaced it on purpose.
    if (isReplaced && teller.replaces(message)) return retold()
    return teller.tell(message, ownMessages) ?? retold()
  }

  function start(): AgUiChunk[] {
    phase = 'started'
    const started = [{ type: 'RUN_STARTED', threadId, runId: runId(), protocolVersion: '1.0' }, ...changedState()]
    const messages = thread()
    const needsAll = run.known === null || messages.some(({ role, id }) => role !== 'activity' && !known.has(id))
    hasReasoning ||= messages.some(({ role }) => role === 'reasoning')
    const shown = needsAll ? retold() : teller.restart(ownMessages())
    return [...started, ...shown, ...subagents.begin(turnOf(target())?.waits)]
  }

  /** The state of the task, if the client does not have it. */
  function changedState(): AgUiChunk[] {
    const { agentState } = state
    if (phase !== 'started' || agentState === null || agentState === shownState) return []
    shownState = agentState
    return [{ type: 'STATE_SNAPSHOT', snapshot: agentState.value }]
  }

  /** Everything again, for a client that has something else. */
  function retold(): AgUiChunk[] {
    const closing = teller.close()
    const messages = thread()
    const withReasoning = messages.some(({ role }) => role === 'reasoning')
    const shown: AgUiMessage[] =
      hasReasoning && !withReasoning ? [...messages, { id: `${task}:none`, role: 'reasoning', content: '' }] : messages
    hasReasoning ||= withReasoning
    isBehind = false
    for (const { id } of messages) known.add(id)
    const metadata = { '@ag-ui/client': { authoritativeActivityTypes: storedActivities } }
    const all = { type: 'MESSAGES_SNAPSHOT', messages: shown, metadata }
    // A snapshot keeps the order of what the client has, so its input comes behind the others by a second one.
    const waiting = queuedInput().map(input => ({ ...all, messages: [...shown, input] }))
    return [...closing, all, ...waiting, ...teller.restart(ownMessages())]
  }

  /** The client's input while its turn waits behind another one. */
  function queuedInput(): AgUiMessage[] {
    const isQueued = own !== null && turnOf(own)?.status === 'queued' && turnOf(own)?.joinedTo === undefined
    return run.input && isQueued ? [run.input] : []
  }

  /** The run ends where the turn needs an answer of its client, because the answer is another request. */
  function pauseIfAsking(): AgUiChunk[] {
    const open = (turnOf(target())?.waits ?? []).filter(isAsked)
    if (open.length === 0) return []
    phase = 'ended'
    const interrupts = open.map(wait => interruptOf(wait, callOf(wait)))
    const calls = interrupts.flatMap(({ toolCallId = [] }) => toolCallId)
    const isForTools = open.every(({ kind }) => kind === 'tool') && calls.length === open.length
    const outcome = isForTools ? { type: 'success', pendingToolCallIds: calls } : { type: 'interrupt', interrupts }
    return [...closeAll(), { type: 'RUN_FINISHED', threadId, runId: runId(), outcome }]
  }

  function isAsked({ id, kind, status }: Wait): boolean {
    return status === 'open' && isAnsweredByRequest(kind) && !run.answered.has(id)
  }

  /** The call that a wait is about, under the id that the client knows. */
  function callOf({ callId }: Pick<Wait, 'callId'>): string | undefined {
    const request = ownMessages().findLast(({ content }) => content.type === 'tool_request' && content.callId === callId)
    return callId === undefined || !request ? undefined : callIdOf(request)
  }

  /** A thread without a turn has succeeded. */
  function end(turn: Pick<FoldedTurn, 'status' | 'error' | 'usage'> | undefined): AgUiChunk[] {
    const usage = turn?.usage && { usage: [usageOf(turn.usage)] }
    const status = turn && hasEnded(turn.status) ? outcomeOf(turn.status) : 'completed'
    if (status === 'failed') return fail(turn?.error ?? { code: 'agent_error', message: 'The turn failed' }, usage)
    phase = 'ended'
    const outcome = { type: status === 'canceled' ? 'cancelled' : 'success' }
    return [...closeAll(), { type: 'RUN_FINISHED', threadId, runId: runId(), outcome, ...usage }]
  }

  /** What is open, before the run ends. */
  function closeAll(): AgUiChunk[] {
    return [...teller.close(), ...subagents.suspend()]
  }

  function fail({ code, message }: { code: string; message: string }, usage: object = {}): AgUiChunk[] {
    phase = 'ended'
    return [...closeAll(), { type: 'RUN_ERROR', message, code, ...usage }]
  }

  function thread(): AgUiMessage[] {
    const left = new Set(state.turns.flatMap(({ number, status }) => (status === 'discarded' ? [number] : [])))
    return agUiMessages([...history, ...messagesOf(state)].filter(({ turn }) => !left.has(turn)))
  }

  function ownMessages(): Message[] {
    const number = target()
    return messagesOf(state).filter(({ turn }) => turn === number)
  }

  /** The turn that the client gets: the run's own, or the one that it has joined. */
  function target(): number {
    return (own === null ? undefined : turnOf(own)?.joinedTo) ?? own ?? 0
  }

  function turnOf(number: number): FoldedTurn | undefined {
    return state.turns.find(turn => turn.number === number)
  }

  function unfinished(): number | null {
    return state.turns.find(({ status }) => !hasEnded(status))?.number ?? null
  }

  function runId(): string {
    if (run.runId !== null) return run.runId
    const input = ownMessages().find(message => clientIdsOf(message).run !== undefined)
    return (input && clientIdsOf(input).run) ?? `${task}.${target()}`
  }
}

function usageOf({ inputTokens, outputTokens, totalTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens }: Usage): object {
  const counts = {
    inputTokens,
    outputTokens,
    totalTokens,
    reasoningTokens,
    cachedInputTokens: cacheReadTokens,
    cacheWriteInputTokens: cacheWriteTokens,
  }
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== undefined))
}
