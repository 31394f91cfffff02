/**
 * The state of a task in one event: turns that are in the log as the log has them, all others as Postgres has them.
 *
 * Postgres may be ahead of the log (a turn that was just committed or queued). The snapshot leaves that out, because its event follows in the log, and
 * a viewer would get it twice.
 *
 * A large value of a turn that has ended in the log is the file that Postgres has in its place. A turn is committed before its end is in the log, so the form
 * of a value depends on the cursor alone, whichever API makes the snapshot.
 */
import {
  hasEnded,
  type Message,
  maxPageSize,
  messagesOf,
  type Snapshot,
  type SnapshotReason,
  type TaskId,
  type TaskState,
  type Turn,
} from '@rivulet/protocol'
import type { DatabaseHandle } from '../store/connection/database.ts'
import type { Tenant } from '../store/connection/tenant.ts'
import { mayBecomeFile } from '../store/files/large-values.ts'
import { fitTurns, newestFitting } from '../store/reads/snapshot-budget.ts'
import { createStoredTaskReader, type StoredTask } from '../store/reads/stored-task.ts'
import { readTaskVersion, type TaskVersion } from '../store/reads/tasks.ts'

/** The rows of Postgres. Good until the log speaks of a turn after `upTo`. */
export type SnapshotBase = StoredTask & { upTo: number }

/** The queries of the hub to Postgres. */
export type StoredTasks = {
  /** `turnNumber`: the last turn in the reader's log. A turn is committed before it is appended, so the result has it if it exists. */
  base(tenant: Tenant, task: TaskId, turnNumber: number): Promise<SnapshotBase>
  /** Whether the rows are still those that were read before. Throws when the task was removed. */
  version(tenant: Tenant, task: TaskId): Promise<TaskVersion>
}

export function createStoredTasks(databaseFor: DatabaseHandle['databaseFor'], maxBytes: number): StoredTasks {
  const read = createStoredTaskReader(databaseFor, maxBytes)
  return {
    async base(tenant, task, turnNumber) {
      const stored = await read(tenant, task)
      return { ...stored, upTo: Math.max(turnNumber, stored.turns.at(-1)?.number ?? 0) }
    },
    version: (tenant, task) => readTaskVersion(databaseFor(tenant), tenant, task),
  }
}

export function covers(base: SnapshotBase, state: TaskState): boolean {
  return base.upTo >= (state.turns.at(-1)?.number ?? 0)
}

/** Whether nothing is left to come. The log decides; where it knows of no turn, Postgres does. A task without a turn has yet to start. */
export function isTaskSettled(state: TaskState, base: SnapshotBase): boolean {
  const turns = state.turns.length > 0 ? state.turns : base.turns
  return turns.length > 0 && turns.every(turn => hasEnded(turn.status))
}

export function makeSnapshot(reason: SnapshotReason, state: TaskState, base: SnapshotBase, maxBytes: number): Snapshot {
  const firstOfLog = firstTurnOfLog(state)
  const older = base.messages.filter(message => message.turn < firstOfLog)
  const turns = fitTurns(turnsOf(state, base), base, maxBytes)
  const unfinished = new Set(turns.filter(turn => !hasEnded(turn.status)).map(turn => turn.number))
  const known = [...older, ...storedForm(state, base)]
  // Postgres has left out the newest of these rows because they do not fit; without its row, it is not known whether a value is a file.
  const unread = known.findLastIndex(message => message.index < firstRead(base) && isEndedValue(state, message))
  const messages = newestFitting(known.slice(unread + 1), maxBytes, ({ turn: turnNumber }) => unfinished.has(turnNumber))
  const status = state.turns.length > 0 ? state.status : base.task.status
  const messagesFrom = messages[0]?.index ?? lastIndex(known, base, firstOfLog) + 1
  const agentState = state.agentState ?? base.state
  const stateField = agentState && agentState.version > 0 ? { state: agentState } : {}
  return { type: 'snapshot', reason, task: { ...base.task, status }, turns, messages, messagesFrom, ...stateField }
}

/** The messages of the log; a large value of a turn that has ended as its row has it. */
function storedForm(state: TaskState, { messages }: SnapshotBase): Message[] {
  const rows = new Map(messages.map(row => [row.index, row]))
  return messagesOf(state).map(message => {
    const row = isEndedValue(state, message) ? rows.get(message.index) : undefined
    const hasFile = row?.turn === message.turn && 'file' in row.content && row.content.file !== undefined
    return hasFile ? { ...message, content: row.content } : message
  })
}

function isEndedValue({ turns }: TaskState, { turn: turnNumber, content }: Message): boolean {
  return mayBecomeFile(content) && turns.some(({ number, status }) => number === turnNumber && hasEnded(status))
}

/** The index of the first message that was read; those before it did not fit. */
function firstRead({ messages, nextIndex }: SnapshotBase): number {
  return messages[0]?.index ?? nextIndex
}

/** The lowest turn whose messages the log holds or is going to hold. */
function firstTurnOfLog(state: TaskState): number {
  const first = state.turns.find(turn => turn.firstIndex !== undefined || !hasEnded(turn.status))
  if (first) return first.number
  const last = state.turns.at(-1)
  return last ? last.number + 1 : Number.POSITIVE_INFINITY
}

function turnsOf(state: TaskState, base: SnapshotBase): Turn[] {
  const last = state.turns.at(-1)?.number ?? Number.POSITIVE_INFINITY
  const folds = new Map(state.turns.map(turn => [turn.number, turn]))
  return base.turns
    .filter(({ number, status }) => number <= last && (folds.size === 0 || folds.has(number) || hasEnded(status)))
    .map(turn => {
      const fold = folds.get(turn.number)
      if (!fold) return turn
      const { id, task, input, inputs, params, queuedAt, startedAt } = turn
      const { firstIndex: _, ...fields } = fold
      // The log has the time of the announcement, which is a moment later.
      const times = { queuedAt, ...(fields.startedAt && startedAt && { startedAt }) }
      return { id, task, ...(input && { input }), ...(inputs && { inputs }), ...(params !== undefined && { params }), ...fields, ...times }
    })
    .slice(-maxPageSize)
}

/** The index of the last message before those that are still to come, whether or not a budget let us have it. */
function lastIndex(known: readonly Message[], { starts, nextIndex }: SnapshotBase, firstOfLog: number): number {
  return known.at(-1)?.index ?? (starts.find(({ turnNumber }) => turnNumber >= firstOfLog)?.index ?? nextIndex) - 1
}
