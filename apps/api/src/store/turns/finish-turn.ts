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
import { createTransactionBatcher } from '../connection/batcher.ts'
import { type Database, sqlStateOf, type Transaction } from '../connection/database.ts'
import { assignments, columnsOf, fromJsonRow, type JsonRow, toJsonRow } from '../connection/json-rows.ts'
import { msFromNow, msUntil } from '../connection/moments.ts'
import { everyone } from '../connection/tenant.ts'
import { addReferences, filesIn } from '../files/file-references.ts'
import { completeFile, type NewFile } from '../files/file-rows.ts'
import { type TurnRow, toMessageRow } from '../rows.ts'
import { messages, turns } from '../schema.ts'
import { storeState } from '../states/task-state.ts'
import { type CancelBegun, cancelChildren } from '../tasks/cancel-task.ts'
import { heldTurns, holdFreeTasksOf, holdTaskOf, lockTask, raisedEpoch, raiseEpoch, resultsOf } from '../tasks/held-task.ts'
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
export type Way = (holding: Holding, end: TurnEnd) => Promise<FinishResult | null>

/** The ways of a process, whose usual ends are made together if they come at the same time. */
export function waysToEnd(db: Database): Way[] {
  return [createEndAtOnce(db), createEndStepwise(db)]
}

/** Takes the first of `ways` that leads to an end. A test takes one at a time, and holds both to the same result. */
export async function finishTurn(
  db: Database,
  holding: Holding,
  end: TurnEnd,
  ways: readonly Way[] = waysToEnd(db),
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
      const result = await way(holding, end)
      if (result) return result
    }
    throw new RivuletError('internal', 'The store could not end the turn')
  }
}

/**
 * The usual end, of a turn without files and of a task without a state, a parent or children, behind which no other waits: in one round trip, together with
 * those that come at the same time. It does everything or nothing. `endStepwise` takes 10.2 ms for the same end that takes 3.9 ms here (median of 400, one at
 * a time, on a busy machine with two cores).
 */
export function createEndAtOnce(db: Database): Way {
  const endUsual = createTransactionBatcher(
    maxTogether,
    ({ turnId }: WantedEnd) => turnId,
    (wanted, how) => endAll(db, wanted, how),
  )
  return async (holding, end) => {
    const wanted = wantedEnd(holding, end)
    if (!wanted) return null
    if (wanted.json.length <= maxTogetherLength) return endUsual(wanted)
    const [ended = null] = await endAll(db, [wanted], { isAlone: true })
    return ended
  }
}

/** Turns that end in one statement. */
const maxTogether = 50
/** A turn that has said more ends alone, because 50 of them would fill the memory. */
const maxTogetherLength = 65_536

type WantedEnd = { turnId: TurnId; json: string }

/** Null for an end that takes more than one statement. */
function wantedEnd(
  { turnId, tenant, epoch, canceling, claim }: Holding,
  { outcome, messages: said, state, retryAfterMs }: TurnEnd,
): WantedEnd | null {
  const { status, stopReason, usage = null, error = null, detail = null } = outcome
  if (state && state.version > 0) return null
  if ((status === 'failed' && retryAfterMs) || filesIn(said.map(({ content }) => content)).length > 0) return null
  const before: TaskStatus[] = canceling ? turnStatusesBefore(status) : ['running']
  const rows = said.map(message => toJsonRow(messages, toMessageRow(message, tenant)))
  return {
    turnId,
    json: JSON.stringify({ turnId, epoch, canceling, claim, before, status, stopReason, usage, error, detail, messages: rows }),
  }
}

/** Null for each that does not end this way, undefined for each that was left out. */
async function endAll(
  db: Database,
  wanted: readonly WantedEnd[],
  { isAlone }: { isAlone: boolean },
): Promise<(FinishResult | null | undefined)[]> {
  const turnIds = wanted.map(({ turnId }) => turnId)
  const [locked, ended] = await db.$client.transact([
    isAlone ? holdTaskOf(turnIds[0] as TurnId) : holdFreeTasksOf(turnIds),
    { name: 'finish_turns', text: endText, values: [`[${wanted.map(({ json }) => json).join(',')}]`] },
  ])
  const found = new Map((ended.rows as { turn: JsonRow; agent: string }[]).map(({ turn, agent }) => [turn.id, committed(turn, agent)]))
  return resultsOf(turnIds, found, { locked, isAlone })
}

function committed(turn: JsonRow, agent: string): FinishResult {
  return { result: 'committed', turn: { ...fromJsonRow(turns, turn), agent, parent: null }, joined: [], queued: [], canceled: [] }
}

const endParameters = {
  status: sql.raw('wanted.status'),
  stopReason: sql.raw(`wanted."stopReason"`),
  usage: sql.raw('wanted.usage'),
  error: sql.raw('wanted.error'),
  errorDetail: sql.raw('wanted.detail'),
}

/** $1: the ends, each with the states that its turn may be in. Returns the turns and their agents. */
const endText = `
with wanted as (
  select * from json_to_recordset($1) as each (
    "turnId" uuid, epoch bigint, canceling boolean, claim text, before text[],
    status text, "stopReason" text, usage json, error json, detail text, messages json
  ) where "turnId" = any(${heldTurns})
), ended as (
  update turns set ${assignments(endColumns(endParameters))}
  from wanted
  where turns.id = "turnId" and turns.epoch = wanted.epoch and turns.canceling = wanted.canceling and turns.status = any(wanted.before)
    and (wanted.claim is null or turns.claim = wanted.claim)
    and not exists (select from waits where waits.turn = turns.id and waits.status = 'open')
    and not exists (select from children where children.turn = turns.id)
    and not exists (select from children where children.child = turns.task)
    and not exists (select from turns other where other.task = turns.task and other.id <> turns.id and other.status not in (${endedList}))
  returning turns.*
), said as (
  insert into messages (${columnsOf(messages)})
  select ${columnsOf(messages, { of: 'own' })} from ended join wanted on "turnId" = ended.id, json_populate_recordset(null::messages, messages) as own
), settled as (
  update tasks set status = ended.status, epoch = ${raisedEpoch}, updated_at = now() from ended where tasks.id = ended.task returning tasks.id, tasks.agent
)
select to_json(ended) as turn, agent from ended join settled on settled.id = ended.task`

/** Every other end, or the reason why the turn does not end. */
export function createEndStepwise(db: Database): Way {
  return (holding, end) => db.transaction(tx => endStepwise(tx, holding, end))
}

async function endStepwise(
  tx: Transaction,
  holding: Holding,
  { outcome, messages: said, spills = [], joins = new Map(), state = null, retryAfterMs }: TurnEnd,
): Promise<FinishResult> {
  const [found] = await tx.select({ task: turns.task }).from(turns).where(eq(turns.id, holding.turnId))
  if (!found) return { result: 'superseded' }
  const task = await lockTask(tx, everyone, found.task)
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
  for (const file of spills) await completeFile(tx, file, noQuota)
  await addReferences(tx, task, filesIn(said.map(({ content }) => content)))
  // Before its waits are closed: an end of a child holds the child first, and then closes its wait.
  const canceled = await cancelChildren(tx, turn.id)
  return { result: 'committed', canceled, ...(await endTurn(tx, turn, outcome)) }
}

/** The end of a turn never fails for want of room: `spill` has checked the quota before it wrote the bytes. */
const noQuota = Number.POSITIVE_INFINITY

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
      isDelayed: delayMs > 0,
    })
    .where(and(eq(turns.id, turn.id), eq(turns.status, 'running')))
    .returning()
  await dispatch(tx, turn.id)
  await raiseEpoch(tx, turn.task, 'queued')
  return queued ?? turn
}
