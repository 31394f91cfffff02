/**
 * The one way in which a turn ends, whoever ends it: its messages, its outcome, the task's state and the next turn's dispatch are one
 * transaction. Only after it may the end be announced.
 */
import { type Failure, hasEnded, type Message, RivuletError, type StopReason, turnStatusesBefore, type Usage } from '@rivulet/protocol'
import { and, eq, getTableColumns, inArray, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { sqlStateOf } from '../connection/database.ts'
import { msFromNow, msUntil } from '../connection/moments.ts'
import { everyTenant } from '../connection/tenant.ts'
import { type TurnRow, toMessageRow } from '../rows.ts'
import { messages, tasks, turns } from '../schema.ts'
import { dispatch, lockTask, pendingTurns, raiseEpoch } from '../tasks/queue-turn.ts'
import { endOnly } from './end-only.ts'

export type Outcome = {
  status: 'completed' | 'failed' | 'canceled'
  stopReason: StopReason
  usage?: Usage
  error?: Failure
  detail?: string
}

/** A turn of a tenant, the epoch under which it may be ended, and the claim of the worker that ends it; the server needs none. */
export type Holding = { turn: string; tenant: string; epoch: number; canceling: boolean; claim?: string }

/** With the agent of its task, for those who count. */
export type EndedTurn = TurnRow & { agent: string }

export type FinishAnswer =
  | { answer: 'committed'; turn: EndedTurn; queued: TurnRow[] }
  | { answer: 'retrying'; turn: TurnRow }
  | { answer: 'already'; turn: TurnRow }
  | { answer: 'superseded' }

/** `retryAfterMs` gives a failed attempt another try instead, when the turn has one left. */
export async function finishTurn(
  db: Database,
  holding: Holding,
  { outcome, messages: said, retryAfterMs }: { outcome: Outcome; messages: Message[]; retryAfterMs?: (failures: number) => number },
): Promise<FinishAnswer> {
  try {
    return await commit(said, outcome)
  } catch (error) {
    // 22, 23 and 54: values, and messages where one is stored or of a turn that is not there, that Postgres will never take. Trying again would
    // fail for ever.
    if (!/^(22|23|54)/.test(sqlStateOf(error) ?? '')) throw error
    const rejected = { code: 'result_rejected', message: 'The database refused what this turn said' }
    return commit([], { status: 'failed', stopReason: 'error', error: rejected })
  }

  async function commit(rows: Message[], end: Outcome): Promise<FinishAnswer> {
    const mayRetry = end.status === 'failed' && retryAfterMs !== undefined
    const ended = mayRetry ? null : await endOnly(db, holding, { outcome: end, said: rows })
    if (ended) return { answer: 'committed', turn: ended, queued: [] }
    return db.transaction(async tx => {
      const [found] = await tx.select({ task: turns.task }).from(turns).where(eq(turns.id, holding.turn))
      if (!found) return { answer: 'superseded' }
      const task = await lockTask(tx, everyTenant, found.task)
      const columns = { turn: turns, timeLeftMs: msUntil(turns.deadline) }
      const [held] = await tx.select(columns).from(turns).where(eq(turns.id, holding.turn))
      if (!held) return { answer: 'superseded' }
      const { turn, timeLeftMs } = held
      if (turn.epoch !== holding.epoch || turn.canceling !== holding.canceling) return { answer: 'superseded' }
      if (holding.claim !== undefined && turn.claim !== holding.claim) return { answer: 'superseded' }
      if (hasEnded(turn.status)) return { answer: 'already', turn }
      if (turn.status !== 'running' && !holding.canceling) return { answer: 'superseded' }
      const delay =
        end.status === 'failed' &&
        retryAfterMs &&
        retryDelay({ failures: turn.failures + 1, maxAttempts: task.maxAttempts, timeLeftMs }, retryAfterMs)
      if (typeof delay === 'number') return { answer: 'retrying', turn: await retry(tx, turn, delay) }
      if (rows.length > 0) await tx.insert(messages).values(rows.map(message => toMessageRow(message, turn.tenant)))
      return { answer: 'committed', ...(await endTurn(tx, turn, end)) }
    })
  }
}

/** Ends a turn that is held, and sends the next one on its way. */
export async function endTurn(tx: Transaction, turn: TurnRow, outcome: Outcome): Promise<{ turn: EndedTurn; queued: TurnRow[] }> {
  const ended = await setOutcome(tx, turn, outcome)
  const pending = await pendingTurns(tx, turn.task)
  const [next] = pending
  const queued = pending.filter(({ status }) => status === 'queued')
  // A turn that waited can end, by its deadline, before the one that runs: then nothing becomes free.
  const isFree = !next || next.number > turn.number
  if (next && isFree) await dispatch(tx, next.id)
  await raiseEpoch(tx, turn.task, !isFree ? undefined : next ? 'queued' : outcome.status)
  return { turn: ended, queued }
}

/** Ends a turn behind the one that is being ended. `isLast` when no other end will tell the task's state. */
export async function endWaitingTurn(tx: Transaction, turn: TurnRow, outcome: Outcome, isLast: boolean): Promise<EndedTurn> {
  if (isLast) await raiseEpoch(tx, turn.task, outcome.status)
  return setOutcome(tx, turn, outcome)
}

async function setOutcome(tx: Transaction, turn: TurnRow, outcome: Outcome): Promise<EndedTurn> {
  const { status, stopReason } = outcome
  const said = { usage: outcome.usage ?? null, error: outcome.error ?? null, errorDetail: outcome.detail ?? null }
  const [ended] = await tx
    .update(turns)
    .set({ status, stopReason, ...said, finishedAt: sql`now()`, leaseUntil: null, canceling: false })
    .from(tasks)
    .where(and(eq(turns.id, turn.id), eq(tasks.id, turns.task), inArray(turns.status, turnStatusesBefore(status))))
    .returning({ ...getTableColumns(turns), agent: tasks.agent })
  if (!ended) throw new RivuletError('internal', 'A turn that is held cannot have ended')
  return ended
}

/** Null when the turn has no try left, or no time for one. */
function retryDelay(
  { failures, maxAttempts, timeLeftMs }: { failures: number; maxAttempts: number; timeLeftMs: number },
  retryAfterMs: (failures: number) => number,
): number | null {
  const delay = retryAfterMs(failures)
  return failures < maxAttempts && timeLeftMs > delay ? delay : null
}

async function retry(tx: Transaction, turn: TurnRow, delayMs: number): Promise<TurnRow> {
  const [queued] = await tx
    .update(turns)
    .set({
      ...{ status: 'queued', claim: null, worker: null, leaseUntil: null },
      failures: sql`${turns.failures} + 1`,
      runAt: msFromNow(delayMs),
    })
    .where(and(eq(turns.id, turn.id), eq(turns.status, 'running')))
    .returning()
  await dispatch(tx, turn.id)
  await raiseEpoch(tx, turn.task, 'queued')
  return queued ?? turn
}
