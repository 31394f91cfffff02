/**
 * The thread of a run, as far as the log has been read: the fold, the stored messages before it, and the turn that the client gets.
 *
 * The run has one turn of its own, which may join another one: from then on the client gets that one.
 */
import {
  applyOrSkip,
  type Cursor,
  type Event,
  emptyState,
  type FoldedTurn,
  hasEnded,
  type Message,
  messageAt,
  messagesOf,
  noState,
  restoreState,
  type Snapshot,
  type TaskId,
  type Wait,
} from '@rivulet/protocol'
import { type AgUiMessage, agUiMessages, callIdOf, clientIdsOf } from './ag-ui-message.ts'

export type ThreadOptions = {
  task: TaskId
  /** Null for a viewer: it gets the id of the run that it joins. */
  runId: string | null
  /** The turn of the run. Null for a viewer: the first that has not ended, else the last. */
  turnNumber: number | null
  /** The stored messages before an index, for a client that resumes in a log that does not have them. */
  earlier: (index: number) => Promise<Message[]>
}

export function createThread({ task, runId, turnNumber, earlier }: ThreadOptions) {
  let state = emptyState
  /** Messages before those of the fold. */
  let history: Message[] = []
  let own = turnNumber
  return {
    apply,
    completePast,
    restore,
    join,
    joinLatest,
    hasTurn: () => own !== null,
    isOwn: (number: number) => number === own,
    isFollowed: (number: number) => number === target(),
    turn: () => turnOf(target()),
    isQueued,
    hasOtherTurns,
    /** Whether the messages begin with the first of the task. */
    isWhole: () => (history[0]?.index ?? state.messagesFrom) === 0,
    messages,
    turnMessages,
    messageAt: (index: number) => messageAt(state, index)?.message,
    agentState: () => state.agentState,
    callOf,
    runId: idOfRun,
  }

  /** Whether the event has changed something. */
  function apply(cursor: Cursor, event: Event): boolean {
    const before = state
    state = applyOrSkip(before, event, cursor)
    return state !== before && state.discarded === before.discarded
  }

  /** After the events that a client has which resumes. */
  async function completePast(): Promise<void> {
    if (state.messagesFrom > 0) history = await earlier(state.messagesFrom)
    own ??= unfinished()
  }

  function restore(cursor: Cursor, { task: { status }, turns, messages, messagesFrom, state: agentState = noState }: Snapshot): void {
    history = [...history, ...messagesOf(state)].filter(({ index }) => index < messagesFrom)
    state = restoreState(cursor, { status, turns, messages, messagesFrom, state: agentState })
    joinLatest()
  }

  /** Makes this turn that of the run, unless the run has one. */
  function join(number: number): void {
    own ??= number
  }

  function joinLatest(): void {
    own ??= unfinished() ?? state.turns.at(-1)?.number ?? null
  }

  function unfinished(): number | null {
    return state.turns.find(({ status }) => !hasEnded(status))?.number ?? null
  }

  /** Whether the run's own turn waits behind another one. */
  function isQueued(): boolean {
    const turn = own === null ? undefined : turnOf(own)
    return turn?.status === 'queued' && turn.joinedTo === undefined
  }

  /** Whether a turn that the client does not get has not ended. */
  function hasOtherTurns(): boolean {
    return state.turns.some(({ number, status }) => number !== target() && !hasEnded(status))
  }

  function messages(): AgUiMessage[] {
    const left = new Set(state.turns.flatMap(({ number, status }) => (status === 'discarded' ? [number] : [])))
    return agUiMessages([...history, ...messagesOf(state)].filter(({ turn }) => !left.has(turn)))
  }

  function turnMessages(): Message[] {
    const number = target()
    return messagesOf(state).filter(({ turn }) => turn === number)
  }

  /** The call that a wait or a child is about, under the id that the client knows. */
  function callOf({ callId }: Pick<Wait, 'callId'>): string | undefined {
    const request = turnMessages().findLast(({ content }) => content.type === 'tool_request' && content.callId === callId)
    return callId === undefined || !request ? undefined : callIdOf(request)
  }

  function idOfRun(): string {
    if (runId !== null) return runId
    const input = turnMessages().find(message => clientIdsOf(message).run !== undefined)
    return (input && clientIdsOf(input).run) ?? `${task}.${target()}`
  }

  /** The turn that the client gets: the run's own, or the one that it has joined. */
  function target(): number {
    return (own === null ? undefined : turnOf(own)?.joinedTo) ?? own ?? 0
  }

  function turnOf(number: number): FoldedTurn | undefined {
    return state.turns.find(turn => turn.number === number)
  }
}
