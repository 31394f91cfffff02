/** Adds a turn to a task whose row the caller has locked. */
import { type Content, hasEnded, type Json, type JsonObject, limitNames, RivuletError } from '@rivulet/protocol'
import { sql } from 'drizzle-orm'
import { v7 as uuidv7 } from 'uuid'
import type { Transaction } from '../../connection/database.ts'
import { referToFiles } from '../../files/file-references.ts'
import type { TaskRow, TurnRow } from '../../rows.ts'
import { outbox, turns } from '../../schema.ts'
import { type Debounce, putOff } from '../../turns/join-turns.ts'
import { pendingTurns } from '../../turns/turn-states.ts'
import { raiseEpoch } from '../held-task.ts'
import { timesFromNow } from './turn-times.ts'

export async function queueTurn(
  tx: Transaction,
  task: TaskRow,
  {
    input,
    inputMetadata,
    params,
    delayMs = 0,
    joins,
    debounce,
    discardsFrom,
    maxQueued,
    isFirst = false,
    traceparent,
  }: {
    input?: Content | Content[]
    /** Of the messages that the inputs become. */
    inputMetadata?: JsonObject | undefined
    params?: Json
    delayMs?: number
    /** How it may become a part of another turn. */
    joins?: TurnRow['joins']
    debounce?: Debounce
    /** The first of the turns that were discarded for this one. */
    discardsFrom?: number | null
    maxQueued: number
    /** Of a task that this transaction creates, under its first epoch. */
    isFirst?: boolean
    traceparent?: string | undefined
  },
): Promise<TurnRow> {
  const pending = await pendingTurns(tx, task.id)
  if (pending.filter(turn => turn.status === 'queued').length >= maxQueued) {
    throw new RivuletError('too_many_turns', `A task may have at most ${maxQueued} waiting turns (${limitNames.queuedTurns})`)
  }
  const said = { ...(input && { input }), inputMetadata, ...(params !== undefined && { params }), traceparent }
  const isPutOff = debounce ? await putOff(tx, pending, debounce) : true
  const ownDelayMs = debounce && !isPutOff ? Math.min(debounce.ms, debounce.maxMs) : delayMs
  const isDispatched = pending.length === 0
  const fresh = { ...newTurn(task, 0, said), joins: joins ?? null, discardsFrom: discardsFrom ?? null, dispatch: isDispatched ? 1 : 0 }
  const times = timesFromNow(ownDelayMs, task.timeoutMs)
  const next = sql<number>`(select coalesce(max(number), 0) + 1 from turns where task = ${task.id})`
  const [turn] = await tx
    .insert(turns)
    .values({ ...fresh, ...times, number: next })
    .returning()
  if (!turn) throw new Error('The turn was not inserted')
  await referToFiles(tx, task, [input].flat())
  if (isDispatched) await tx.insert(outbox).values({ turn: turn.id })
  // With its status also the time of its last change: the removal of old tasks looks at that.
  if (!isFirst) await raiseEpoch(tx, task.id, hasEnded(task.status) || turn.number === 1 ? 'queued' : undefined)
  return turn
}

/** A turn before Postgres has said when it was queued. */
export type UntimedTurn = Omit<TurnRow, 'queuedAt' | 'runAt' | 'deadline'>

/** A turn as it is before a worker has claimed it or the relay has dispatched it. */
export function newTurn(
  task: Pick<TaskRow, 'id' | 'tenant'>,
  number: number,
  {
    input,
    inputMetadata,
    params,
    traceparent,
  }: { input?: Content | Content[]; inputMetadata?: JsonObject | undefined; params?: Json; traceparent?: string | undefined },
): UntimedTurn {
  const inputs = input === undefined ? [] : [input].flat()
  return {
    id: uuidv7(),
    task: task.id,
    tenant: task.tenant,
    number,
    status: 'queued',
    attempt: 0,
    input: inputs[0] ?? null,
    inputs: inputs.length > 1 ? inputs : null,
    inputMetadata: inputMetadata ?? null,
    params: params ?? null,
    stopReason: null,
    usage: null,
    usageTotal: null,
    cost: null,
    error: null,
    errorDetail: null,
    startedAt: null,
    attemptAt: null,
    finishedAt: null,
    failures: 0,
    deaths: 0,
    dispatch: 0,
    isDelayed: false,
    sent: null,
    firstIndex: null,
    epoch: null,
    claim: null,
    claims: [],
    worker: null,
    version: null,
    leaseUntil: null,
    canceling: false,
    announced: false,
    endCursor: null,
    traceparent: traceparent ?? null,
    discarded: false,
    discardsFrom: null,
    joins: null,
    joinedTo: null,
    joinIndex: null,
    waits: null,
    waitsVersion: 0,
    keptTo: null,
    parkedAt: null,
    resumed: null,
  }
}
