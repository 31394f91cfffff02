/** Rows as the entities of the protocol: the same names, without nulls and internal columns. */
import { type Content, hasEnded, type Json, type Message, type Task, type Turn } from '@rivulet/protocol'
import type { messages, tasks, turns } from './schema.ts'

export type TaskRow = typeof tasks.$inferSelect
/** `hasLargeInput` of a row without its large values: the input is in Postgres alone. */
export type TurnRow = typeof turns.$inferSelect & { hasLargeInput?: boolean }
export type MessageRow = typeof messages.$inferSelect

/** @param omitted values that were left in Postgres */
export function toTask(row: TaskRow, omitted: string[] = []): Task {
  const { id, agent, name, parent, concurrencyKey, budget, status, params, metadata, createdAt, updatedAt } = row
  const times = { createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() }
  const own = {
    ...(name !== null && { name }),
    ...(parent !== null && { parent }),
    ...(concurrencyKey !== null && { concurrencyKey }),
    ...(budget !== null && { budget }),
  }
  return { id, agent, ...own, status, params, metadata, ...(omitted.length > 0 && { omitted }), ...times }
}

/** @param omitted values that were left in Postgres */
export function toTurn(row: TurnRow, omitted: string[] = []): Turn {
  const {
    id,
    task,
    number,
    attempt,
    input,
    inputs,
    params,
    joinedTo,
    joinIndex,
    waits,
    stopReason,
    usage,
    usageTotal,
    cost,
    error,
    queuedAt,
    startedAt,
    finishedAt,
  } = row
  // The row of a turn that is being canceled already has its outcome; it is not visible before the turn has ended.
  const isOver = hasEnded(row.status)
  // A worker may hold a turn for a while before it parks: for viewers it waits already.
  const isWaiting = row.status === 'running' && waits?.some(wait => wait.status === 'open')
  // Until the turn that took it ends, it could still become a turn of its own, so it is queued in the database.
  const isJoined = row.status === 'queued' && joinedTo !== null
  const status = row.discarded && isOver ? 'discarded' : isWaiting ? 'waiting' : isJoined ? 'running' : row.status
  return {
    ...{ id, task, number, status, attempt },
    ...(input !== null && { input: input as Content }),
    ...(inputs !== null && { inputs }),
    ...(params !== null && { params: params as Json }),
    ...(omitted.length > 0 && { omitted }),
    ...(joinedTo !== null && { joinedTo }),
    ...(joinIndex !== null && { joinIndex }),
    ...(waits !== null && { waits }),
    ...(isOver && stopReason !== null && { stopReason }),
    ...(usage !== null && { usage }),
    ...(isOver && usageTotal !== null && { usageTotal }),
    ...(isOver && cost !== null && { cost }),
    ...(isOver && error !== null && { error }),
    queuedAt: queuedAt.toISOString(),
    ...(startedAt !== null && { startedAt: startedAt.toISOString() }),
    ...(finishedAt !== null && { finishedAt: finishedAt.toISOString() }),
  }
}

/** For callers with a key: with what was thrown, when it is due, the worker and the trace, which viewers do not get. */
export function toFullTurn(row: TurnRow, omitted: string[] = []): Turn {
  const turn = toTurn(row, omitted)
  const { errorDetail, worker, traceparent, status, queuedAt, runAt } = row
  // Its second part is the trace: `00-<trace>-<span>-<flags>`.
  const traceId = traceparent?.split('-')[1]
  return {
    ...turn,
    ...(turn.error && errorDetail !== null && { error: { ...turn.error, detail: errorDetail } }),
    ...(status === 'queued' && runAt > queuedAt && { dueAt: runAt.toISOString() }),
    ...(worker !== null && { worker }),
    ...(traceId && { traceId }),
  }
}

export function toMessage(row: MessageRow): Message {
  const { task, index, turn, attempt, author, content, metadata, status, stopReason, usage, response, error, createdAt, finishedAt } = row
  return {
    ...{ task, index, turn, attempt, author, content, metadata, status },
    ...(stopReason !== null && { stopReason }),
    ...(usage !== null && { usage }),
    ...(response !== null && { response }),
    ...(error !== null && { error }),
    createdAt: createdAt.toISOString(),
    ...(finishedAt !== null && { finishedAt: finishedAt.toISOString() }),
  }
}

export function toMessageRow(message: Message, tenant: string): MessageRow {
  const { stopReason = null, usage = null, response = null, error = null, createdAt, finishedAt, ...rest } = message
  const times = { createdAt: new Date(createdAt), finishedAt: finishedAt ? new Date(finishedAt) : null }
  return { ...rest, tenant, stopReason, usage, response, error, ...times }
}
