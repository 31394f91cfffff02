/**
 * Ends a turn that a worker holds, or that the server ends in its place: its messages, its outcome, the task's state and the next turn's dispatch are
 * one transaction. Only after it may the end be announced. A turn that no worker has claimed ends in `end-turn.ts`.
 */
import {
  agentFailed,
  hasEnded,
  type Message,
  RivuletError,
  type State,
  type TaskStatus,
  type TurnId,
  turnStatusesBefore,
} from '@rivulet/protocol'
import { and, eq, sql } from 'drizzle-orm'
import { type Database, sqlStateOf, type Transaction } from '../connection/database.ts'
import { assignments, columnsOf, fromJsonRow, type JsonRow, toJsonRow } from '../connection/json-rows.ts'
import { msFromNow, msUntil } from '../connection/moments.ts'
import { everyTenant } from '../connection/tenant.ts'
import { addReferences, filesIn } from '../files/file-references.ts'
import { completeFile, type NewFile } from '../files/file-rows.ts'
import { type TurnRow, toMessageRow } from '../rows.ts'
import { messages, turns } from '../schema.ts'
import { storeState } from '../states/task-state.ts'
import { type CancelBegun, cancelChildren } from '../tasks/cancel-task.ts'
import { holdTaskOf, lockTask, raisedEpoch, raiseEpoch } from '../tasks/held-task.ts'
import { dispatch } from '../tasks/outbox.ts'
import { keepAttempt } from './attempts.ts'
import { endColumns, endTurn, type Outcome, type TurnsEnded } from './end-turn.ts'
import { confirmJoins, type Joins } from './join-turns.ts'
import { endedList } from './turn-states.ts'

/** A turn of a tenant, the epoch under which it may be ended, and the claim of the worker that ends it; the server needs none. */
export type Holding = { turnId: TurnId; tenant: string; epoch: number; canceling: boolean; claim?: string }

export type FinishResult =
  /** `canceled`: its children that end with it. */
  | ({ result: 'committed'; canceled: CancelBegun[] } & TurnsEnded)
  | { result: 'retrying'; turn: TurnRow }
  | { result: 'already'; turn: TurnRow }
  | { result: 'superseded' }

/** `retryAfterMs` gives a failed attempt another try instead, when the turn has one left. */
export type TurnEnd = {
  outcome: Outcome
  messages: Message[]
  /** Files that become complete with the messages that refer to them. */
  spills?: NewFile[]
  /** The state of the task as the log has it; null where the log does not tell it. */
  state?: State | null
  /** Turns that have joined with these messages. */
  joins?: Joins
  retryAfterMs?: (failures: number) => number
}

/** Null where this way does not lead to an end. */
type Way = (db: Database, holding: Holding, end: TurnEnd) => Promise<FinishResult | null>

/** Takes the first of `ways` that leads to an end. A test takes one at a time, and holds both to the same result. */
export async function finishTurn(
  db: Database,
  holding: Holding,
  end: TurnEnd,
  ways: readonly Way[] = [endAtOnce, endStepwise],
): Promise<FinishResult> {
  try {
    return await commit(end)
  } catch (error) {
    // 22, 23 and 54: values, and messages where one is stored or of a turn that is not there, that Postgres will never take. Trying again would
    // fail for ever.
    if (!/^(22|23|54)/.test(sqlStateOf(error) ?? '')) throw error
    const rejected = { code: 'result_rejected', message: 'The database refused what this turn said' }
    return commit({
      ...end,
      messages: [],
      spills: [],
      joins: new Map(),
      state: null,
      outcome: { status: 'failed', stopReason: 'error', error: rejected },
    })
  }

  async function commit(end: TurnEnd): Promise<FinishResult> {
    for (const way of ways) {
      const result = await way(db, holding, end)
      if (result) return result
    }
    throw new RivuletError('internal', 'The store could not end the turn')
  }
}

/**
 * The usual end, of a turn without files and of a task without a state, a parent or children, behind which no other waits, in one round trip: it
 * does everything or nothing. `endStepwise` takes 10.2 ms for the same end, instead of 3.9 ms (median of 400 on a busy machine with two cores).
 */
export async function endAtOnce(
  db: Database,
  holding: Holding,
  { outcome, messages: said, state, retryAfterMs }: TurnEnd,
): Promise<FinishResult | null> {
  const { turnId, tenant, epoch, canceling, claim } = holding
  const { status, stopReason, usage = null, error = null, detail = null } = outcome
  if (state && state.version > 0) return null
  if ((status === 'failed' && retryAfterMs) || filesIn(said.map(({ content }) => content)).length > 0) return null
  const rows = said.map(message => toJsonRow(messages, toMessageRow(message, tenant)))
  const before: TaskStatus[] = canceling ? turnStatusesBefore(status) : ['running']
  const values = [turnId, epoch, canceling, before, status, stopReason, usage, error, detail, JSON.stringify(rows), claim ?? null]
  const result = await db.$client.transact([holdTaskOf(turnId), { name: 'finish_turn', text: endText, values }])
  const [found] = result.rows as { turn: JsonRow; agent: string }[]
  return found
    ? {
        result: 'committed',
        turn: { ...fromJsonRow(turns, found.turn), agent: found.agent, parent: null },
        joined: [],
        queued: [],
        canceled: [],
      }
    : null
}

const endParameters = {
  status: sql.raw('$5'),
  stopReason: sql.raw('$6'),
  usage: sql.raw('$7'),
  error: sql.raw('$8'),
  errorDetail: sql.raw('$9'),
}

/**
 * $1 turn, $2 epoch, $3 canceling, $4 states it may be in, $5 to $9 `endParameters`, $10 messages, $11 claim or null. Returns turn and agent.
 */
const endText = `
with ended as (
  update turns set ${assignments(endColumns(endParameters))}
  where id = $1 and epoch = $2 and canceling = $3 and status = any($4) and ($11::text is null or claim = $11)
    and not exists (select from waits where waits.turn = turns.id and waits.status = 'open')
    and not exists (select from children where children.turn = turns.id)
    and not exists (select from children where children.child = turns.task)
    and not exists (select from turns other where other.task = turns.task and other.id <> turns.id and other.status not in (${endedList}))
  returning *
), said as (
  insert into messages (${columnsOf(messages)})
  select ${columnsOf(messages)} from json_populate_recordset(null::messages, $10) where exists (select from ended)
), settled as (
  update tasks set status = $5, epoch = ${raisedEpoch}, updated_at = now() from ended where tasks.id = ended.task returning tasks.agent
)
select to_json(ended) as turn, agent from ended, settled`

/** Every other end, or the reason why the turn does not end. */
export async function endStepwise(
  db: Database,
  holding: Holding,
  { outcome, messages: said, spills = [], joins = new Map(), state = null, retryAfterMs }: TurnEnd,
): Promise<FinishResult> {
  return db.transaction(async tx => {
    const [found] = await tx.select({ task: turns.task }).from(turns).where(eq(turns.id, holding.turnId))
    if (!found) return { result: 'superseded' }
    const task = await lockTask(tx, everyTenant, found.task)
    const columns = { turn: turns, timeLeftMs: msUntil(turns.deadline) }
    const [held] = await tx.select(columns).from(turns).where(eq(turns.id, holding.turnId))
    if (!held) return { result: 'superseded' }
    const { turn, timeLeftMs } = held
    if (turn.epoch !== holding.epoch || turn.canceling !== holding.canceling) return { result: 'superseded' }
    if (holding.claim !== undefined && turn.claim !== holding.claim) return { result: 'superseded' }
    if (hasEnded(turn.status)) return { result: 'already', turn }
    if (turn.status !== 'running' && !holding.canceling) return { result: 'superseded' }
    const delay =
      outcome.status === 'failed' &&
      retryAfterMs &&
      retryDelay({ failures: turn.failures + 1, maxAttempts: task.maxAttempts, timeLeftMs }, retryAfterMs)
    if (typeof delay === 'number') {
      const { error = { code: 'agent_error', message: agentFailed }, usage, detail } = outcome
      await keepAttempt(tx, turn, { status: 'failed', error, usage, detail, messages: said })
      return { result: 'retrying', turn: await retry(tx, turn, delay) }
    }
    if (said.length > 0) await tx.insert(messages).values(said.map(message => toMessageRow(message, turn.tenant)))
    await storeState(tx, turn, state)
    await confirmJoins(tx, turn, joins)
    for (const file of spills) await completeFile(tx, file)
    await addReferences(tx, task, filesIn(said.map(({ content }) => content)))
    // Before its waits are closed: an end of a child holds the child first, and then closes its wait.
    const canceled = await cancelChildren(tx, turn.id)
    return { result: 'committed', canceled, ...(await endTurn(tx, turn, outcome)) }
  })
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
