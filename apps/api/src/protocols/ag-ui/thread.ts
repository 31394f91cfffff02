/**
 * The thread of a run, as far as its client has it: the narrator of its turn, and the stored messages before those of the narrator.
 *
 * The run has one turn of its own, which may join another one: from then on the client gets that one.
 */
import { Narrator } from '@rivulet/narrator'
import { type Cursor, hasEnded, type Message, messagesOf, type Snapshot, type TaskId, type Wait } from '@rivulet/protocol'
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

export class Thread {
  readonly narrator: Narrator
  readonly #options: ThreadOptions
  /** Messages before those of the narrator. */
  #history: Message[] = []

  constructor(options: ThreadOptions) {
    this.#options = options
    this.narrator = new Narrator({ turnNumber: options.turnNumber, followsJoins: true })
  }

  /** After the events that a client has which resumes. */
  async completePast(): Promise<void> {
    const { messagesFrom } = this.narrator.state
    if (messagesFrom > 0) this.#history = await this.#options.earlier(messagesFrom)
  }

  restore(cursor: Cursor, snapshot: Snapshot): void {
    this.#history = this.#allMessages().filter(({ index }) => index < snapshot.messagesFrom)
    this.narrator.take(cursor, snapshot)
  }

  /** Whether the run's own turn waits behind another one. */
  isQueued(): boolean {
    const { state, turnNumber } = this.narrator
    return state.turns.some(({ number, status, joinedTo }) => number === turnNumber && status === 'queued' && joinedTo === undefined)
  }

  /** Whether a turn that the client does not get has not ended. */
  hasOtherTurns(): boolean {
    const { state, turn } = this.narrator
    return state.turns.some(({ number, status }) => number !== turn.number && !hasEnded(status))
  }

  /** Whether the messages begin with the first of the task. */
  isWhole(): boolean {
    return (this.#history[0]?.index ?? this.narrator.state.messagesFrom) === 0
  }

  messages(): AgUiMessage[] {
    const { state, turn } = this.narrator
    // A turn of the run that still has its ends to send is not over, although it is discarded.
    const open = hasEnded(turn.status) ? null : turn.number
    const discarded = new Set(state.turns.flatMap(({ number, status }) => (status === 'discarded' && number !== open ? [number] : [])))
    return agUiMessages(this.#allMessages().filter(({ turn }) => !discarded.has(turn)))
  }

  runId(): string {
    const { runId, task } = this.#options
    if (runId !== null) return runId
    const { messages, turn } = this.narrator
    const input = messages.find(message => clientIdsOf(message).run !== undefined)
    return (input && clientIdsOf(input).run) ?? `${task}.${turn.number}`
  }

  #allMessages(): Message[] {
    return [...this.#history, ...messagesOf(this.narrator.state)]
  }
}

/** The call that a wait or a child is about, under the id that the client knows. */
export function callOf({ messages }: Narrator, { callId }: Pick<Wait, 'callId'>): string | undefined {
  const request = messages.findLast(({ content }) => content.type === 'tool_request' && content.callId === callId)
  return callId === undefined || !request ? undefined : callIdOf(request)
}
