/**
 * The children of a turn, and theirs, as AG-UI's subagents: that they start and end, and their output between, marked with `subagentRunId`.
 *
 * Each child has a log of its own, which the response follows beside that of the run. The logs are not in step: the log of the parent may have the end of a
 * child before the child's own words are here. So a subagent ends where its own log does, and a run that ends waits for those that its log knows to
 * have ended. AG-UI's client rejects a subagent that starts twice in a run, and a run that finishes while one is active.
 */
import {
  type Cursor,
  type Event,
  type EventOf,
  hasEnded,
  outcomeOf,
  type TaskId,
  type TokenEvent,
  type Wait,
  type WireEvent,
} from '@rivulet/protocol'
import type { StreamOptions } from '../../stream/dialects/dialect.ts'
import { type AgUiMessage, agUiMessages } from './ag-ui-message.ts'
import { type AgUiChunk, createSentMessages } from './sent-messages.ts'
import { createThread } from './thread.ts'

type ChildEvent = EventOf<'child.started' | 'child.finished'>
type Outcome = EventOf<'child.finished'>['status']
type About = { name: string; callId?: string | undefined }
type Subagent = ReturnType<typeof createSubagent>

export type SubagentsOptions = {
  /** The id under which the client knows a call of the run's turn. */
  callOf: (about: Pick<About, 'callId'>) => string | undefined
  /** Without it, subagents only start and end. */
  follow: StreamOptions['follow']
  /** A snapshot of all messages, where a client has something of a child that is no longer true. */
  resent: () => AgUiChunk[]
}

export function createSubagents({ callOf, follow, resent }: SubagentsOptions) {
  const known = new Map<TaskId, Subagent>()
  /** Whether the client may have reasoning of a child. */
  let hasReasoning = false
  /** Whether the client gets nothing of messages, because a snapshot of them waits for the output of the children. */
  let isHeld = false
  return {
    recall,
    note,
    begin,
    hold,
    isHeld: () => isHeld,
    send,
    take,
    close,
    messages,
    restart,
    isAwaited,
    suspend,
    hasAny: () => known.size > 0,
    hasReasoning: () => hasReasoning,
  }

  /** For a client that resumes: what it may have got in an earlier run. */
  function recall(event: ChildEvent): void {
    if (event.type === 'child.started') add(event.child, event, null)
    else report(event)
  }

  /** The children that a snapshot has, as waits. */
  function note(waits: readonly Wait[] = [], parent: Subagent | null = null): void {
    for (const { kind, status, child, name, callId, answer } of waits) {
      if (kind !== 'task' || child === undefined) continue
      add(child, { name, callId }, parent)
      if (status === 'answered') report({ child, status: outcomeIn(answer?.content) })
    }
  }

  /** The children that the client has not got in this run, as they are now, or, for a wait that has just come, with all their output. */
  function begin(waits: readonly Wait[] = [], parent: Subagent | null = null, from: 'log' | null = null): AgUiChunk[] {
    note(waits, parent)
    return [...known.values()].flatMap(child => (child.phase === 'no' ? startOf(child, from) : []))
  }

  /** A client that comes back may have messages of these children, which would leave it by a snapshot without them. */
  function hold(): void {
    isHeld = isLoading()
  }

  function isLoading(): boolean {
    return [...known.values()].some(child => child.isLoading)
  }

  /** The snapshot, once all of them are here. */
  function release(): AgUiChunk[] {
    if (!isHeld || isLoading()) return []
    isHeld = false
    return [...resent(), ...[...known.values()].flatMap(endIfOver)]
  }

  /** An event of the log of the run, or of the log of a child. */
  function send(event: ChildEvent, parent: Subagent | null = null): AgUiChunk[] {
    if (event.type === 'child.finished') return endIfOver(report(event))
    const child = add(event.child, event, parent)
    return child.phase === 'no' ? startOf(child, 'log') : []
  }

  /** An event of the log of a child. */
  function take(cursor: Cursor, event: Event | WireEvent | TokenEvent): AgUiChunk[] {
    const child = known.get(taskIdOf(event))
    if (child?.phase !== 'started') return []
    switch (event.type) {
      case 'deleted':
        child.isFollowed = false
        child.isLoading = false
        return [...endIfOver(child), ...release()]
      case 'snapshot': {
        const isNew = child.sentMessages.isBlank()
        child.isLoading = false
        child.thread.restore(cursor, event)
        const turn = child.thread.turn()
        // It has had so many turns since that its first is not in the snapshot.
        if (!turn) child.isFollowed = false
        const words = isNew ? child.output().flatMap(message => sendMessage(child, message.index)) : resent()
        return [...words, ...begin(turn?.waits, child), ...endIfOver(child), ...release()]
      }
      case 'caught_up':
        return endIfOver(child)
      case 'token':
      case 'end':
        return []
      default:
        // Only the first turn of a child is for its parent.
        return event.turn === 1 && child.thread.apply(cursor, event) ? chunksOf(child, event) : []
    }
  }

  function chunksOf(child: Subagent, event: Event): AgUiChunk[] {
    switch (event.type) {
      case 'turn.started':
        return child.sentMessages.isBlank() ? [] : resent()
      case 'message.delta': {
        const growth = isHeld ? null : child.sentMessages.grow(event.index, event.delta, event.offset)
        return growth ? growth.map(child.mark) : sendMessage(child, event.index)
      }
      case 'message.started':
      case 'message.replaced':
      case 'message.finished':
        return sendMessage(child, event.index, event.type === 'message.replaced')
      case 'custom':
        return [child.mark({ type: 'CUSTOM', name: event.name, value: event.data })]
      case 'child.started':
      case 'child.finished':
        return send(event, child)
      case 'turn.finished':
      case 'turn.discarded':
        return endIfOver(child)
      case 'turn.waiting':
        return begin([event.wait], child, 'log')
      case 'turn.queued':
      case 'turn.resumed':
      case 'turn.joined':
      case 'state.changed':
        return []
      default:
        return event satisfies never
    }
  }

  function sendMessage({ thread, sentMessages, mark }: Subagent, index: number, isReplaced = false): AgUiChunk[] {
    const message = thread.messageAt(index)
    if (!message || message.author === 'user') return []
    hasReasoning ||= message.content.type === 'reasoning'
    if (isHeld) return []
    if (isReplaced && sentMessages.replaces(message)) return resent()
    return sentMessages.send(message, thread.turnMessages)?.map(mark) ?? resent()
  }

  /** The messages of children that the client has, for a snapshot of all messages. */
  function messages(): AgUiMessage[] {
    return active().flatMap(child => agUiMessages(child.output()).map(message => child.mark(message)))
  }

  /** Closes what is open, before a snapshot or an end. */
  function close(): AgUiChunk[] {
    return active().flatMap(({ sentMessages, mark }) => sentMessages.close().map(mark))
  }

  function restart(): AgUiChunk[] {
    return active().flatMap(({ sentMessages, mark, output }) => sentMessages.restart(output()).map(mark))
  }

  /** Whether a child has ended whose end is not here yet. */
  function isAwaited(): boolean {
    return isHeld || [...known.values()].some(({ phase, reported }) => phase === 'started' && reported !== null)
  }

  /** Before a run ends: children that go on without it. */
  function suspend(): AgUiChunk[] {
    return active().flatMap(child => {
      if (child.phase !== 'started') return []
      child.phase = 'ended'
      return [{ type: 'SUBAGENT_FINISHED', subagentRunId: child.id, outcome: { type: 'suspended' } }]
    })
  }

  function active(): Subagent[] {
    return [...known.values()].filter(({ phase }) => phase !== 'no')
  }

  function add(id: TaskId, about: About, parent: Subagent | null): Subagent {
    const child = known.get(id) ?? createSubagent(id, about, parent)
    known.set(id, child)
    return child
  }

  function report({ child: id, status }: { child: TaskId; status: Outcome }): Subagent | undefined {
    const child = known.get(id)
    if (child) child.reported ??= status
    return child
  }

  /** @param from `log`: with all its output; null: as it is now */
  function startOf(child: Subagent, from: 'log' | null): AgUiChunk[] {
    const { id, about, parent } = child
    child.phase = 'started'
    child.isFollowed = follow !== undefined
    child.isLoading = child.isFollowed && from === null
    follow?.(id, from)
    const parentToolCallId = parent ? parent.thread.callOf(about) : callOf(about)
    const started = { type: 'SUBAGENT_STARTED', subagentRunId: id, name: about.name }
    const above = { ...(parent && { parentSubagentRunId: parent.id }), ...(parentToolCallId !== undefined && { parentToolCallId }) }
    return [{ ...started, ...above }, ...endIfOver(child)]
  }

  /** A child ends with its own log; one whose log is not followed, when the log of its parent has its end. */
  function endIfOver(child: Subagent | undefined): AgUiChunk[] {
    if (child?.phase !== 'started' || isHeld) return []
    const turn = child.thread.turn()
    const status = turn && hasEnded(turn.status) ? outcomeOf(turn.status) : child.isFollowed ? null : child.reported
    if (status === null) return []
    child.phase = 'ended'
    return [...child.sentMessages.close().map(child.mark), endOf(child.id, status)]
  }
}

/** One child. `phase`: what the client has of it in this run. `reported`: its outcome in the log of its parent. */
function createSubagent(id: TaskId, about: About, parent: { id: TaskId; thread: ReturnType<typeof createThread> } | null) {
  const thread = createThread({ task: id, runId: null, turnNumber: 1, earlier: async () => [] })
  return {
    ...{ id, about, parent, thread, sentMessages: createSentMessages() },
    phase: 'no' as 'no' | 'started' | 'ended',
    reported: null as Outcome | null,
    /** False for a child whose task was removed, or is not for this caller. */
    isFollowed: false,
    /** Whether its output is on its way. */
    isLoading: false,
    /** Without its input, which its parent wrote. */
    output: () => thread.turnMessages().filter(({ author }) => author !== 'user'),
    mark: <Marked extends object>(chunk: Marked): Marked => ({ ...chunk, subagentRunId: id }),
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
