/**
 * The short way in, for tasks that have no name and so cannot be there yet. Task, turn, the intent to dispatch it and the answer under its
 * Idempotency-Key are committed together in one round trip, and tasks of one tenant that come together share it.
 *
 * What cannot go this way is told so and has changed nothing: its agent is unknown, its key was used before, or Postgres refused one of the
 * batch. The long way (`createTask`) finds out which.
 */

import { randomUUID } from 'node:crypto'
import type { CreateTask, Json } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import { type Answer, type IdempotencyKey, inFlight, isFree } from '../access/idempotency.ts'
import { type Batcher, createBatcher } from '../connection/batcher.ts'
import { type DatabaseHandle, sqlStateOf } from '../connection/database.ts'
import { askTwice } from '../connection/database-errors.ts'
import { columnsOf, type JsonRow, toJsonRow } from '../connection/json-rows.ts'
import type { Tenant } from '../connection/tenant.ts'
import { type TaskRow, type TurnRow, toTask, toTurn } from '../rows.ts'
import { tasks, turns } from '../schema.ts'
import { type Accepted, newTask, type UntimedTask } from './create-task.ts'
import type { Intent } from './outbox.ts'
import { newTurn, type UntimedTurn } from './queue-turn.ts'

/** Of one statement. */
const mostTasks = 100

type Wanted = { task: JsonRow; turn: JsonRow; delayMs: number; key?: IdempotencyKey & Answer }
/** The id of the intent to dispatch a turn, and when Postgres accepted it. */
type Inserted = { id: number; at: Date }

type AcceptedTask = { accepted: Accepted; answer: Answer; intent: Intent }

export type TaskAcceptance = ReturnType<typeof createTaskAcceptance>

export function createTaskAcceptance(databaseFor: DatabaseHandle['databaseFor']) {
  // Tenants are as many as somebody made keys for.
  const batchers = new Map<Tenant, Batcher<Wanted, Inserted | null>>()
  return { accept }

  async function accept(
    tenant: Tenant,
    request: CreateTask,
    key: IdempotencyKey | null,
    traceparent?: string,
  ): Promise<AcceptedTask | null> {
    if (request.name !== undefined) return null
    const accepting = () => acceptOnce(tenant, request, key, traceparent)
    // Under a key it is safe to ask twice: each try has ids of its own, so the second cannot take the rows of the first for its own.
    return key ? askTwice(accepting) : accepting()
  }

  async function acceptOnce(
    tenant: Tenant,
    request: CreateTask,
    key: IdempotencyKey | null,
    traceparent: string | undefined,
  ): Promise<AcceptedTask | null> {
    const { input, delayMs } = request
    const untimed = newTask(tenant, request)
    const untimedTurn = { ...newTurn(untimed, 1, { ...(input && { input }), traceparent }), dispatch: 1 }
    const kept = key && { ...key, status: 201, body: bodyAtMoment(untimed, untimedTurn) }
    const wanted = { task: toJsonRow(tasks, untimed), turn: toJsonRow(turns, untimedTurn), delayMs, ...(kept && { key: kept }) }
    // One under a key goes alone, because it may have to wait for another request under it.
    const inserted = key ? (await insert(tenant, [wanted]))[0] : await batcherFor(tenant)(wanted)
    if (!inserted) return null
    const { task, turn } = timed(untimed, untimedTurn, { delayMs, at: inserted.at })
    const answer: Answer = { status: 201, body: { task: toTask(task), turn: toTurn(turn) } as Json }
    const { agent, priority } = task
    const { number, attempt, dispatch, traceparent: trace } = turn
    const intent = {
      id: inserted.id,
      turn: turn.id,
      task: task.id,
      number,
      agent,
      attempt,
      dispatch,
      delayMs,
      priority,
      traceparent: trace,
    }
    return { accepted: { task, turn, isNew: true, isQueued: true }, answer, intent }
  }

  function batcherFor(tenant: Tenant): Batcher<Wanted, Inserted | null> {
    const batcher = batchers.get(tenant) ?? createBatcher(mostTasks, wanted => insert(tenant, wanted))
    batchers.set(tenant, batcher)
    return batcher
  }

  /** Null for each that could not be accepted. */
  async function insert(tenant: Tenant, wanted: readonly Wanted[]): Promise<(Inserted | null)[]> {
    const ids = wanted.map(({ turn }) => turn.id)
    try {
      if (failpoint) await failpoint('accepting')
      const { rows } = await databaseFor(tenant).$client.transact([
        { name: 'accept_tasks', text: insertTasks, values: [JSON.stringify(wanted), momentMark] },
        { name: 'dispatch_accepted', text: insertIntents, values: [ids] },
      ])
      const inserted = new Map(rows.map(({ turn, id, at }) => [turn, { id: Number(id), at }]))
      return ids.map(id => inserted.get(id) ?? null)
    } catch (error) {
      const state = sqlStateOf(error) ?? ''
      if (state === '55P03' && wanted[0]?.key) throw inFlight()
      // Data that Postgres does not take: that is for whoever brought it, not for the batch.
      if (!/^(22|54)/.test(state)) throw error
      return wanted.map(() => null)
    }
  }
}

/** As Postgres stores them, in `insertTasks`. */
function timed(task: UntimedTask, turn: UntimedTurn, { delayMs, at }: { delayMs: number; at: Date }): { task: TaskRow; turn: TurnRow } {
  const runAt = new Date(at.getTime() + delayMs)
  const deadline = new Date(runAt.getTime() + task.timeoutMs)
  return { task: { ...task, createdAt: at, updatedAt: at }, turn: { ...turn, queuedAt: at, runAt, deadline } }
}

/** Stands in a stored answer for the moment of its commit, which Postgres puts in. Random: no caller can have it in what it sends. */
const momentMark = randomUUID()

function bodyAtMoment(task: UntimedTask, turn: UntimedTurn): Json {
  const rows = timed(task, turn, { delayMs: 0, at: new Date(0) })
  const times = { createdAt: momentMark, updatedAt: momentMark }
  return { task: { ...toTask(rows.task), ...times }, turn: { ...toTurn(rows.turn), queuedAt: momentMark } } as Json
}

/** Times have milliseconds. Cut, not rounded: none is later than it is. */
const moment = `date_trunc('milliseconds', now())`
const momentText = `to_char(${moment} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
const ms = (json: string) => `(${json})::float8 * interval '1 millisecond'`
const taskColumns = columnsOf(tasks, { except: ['created_at', 'updated_at'] })
const turnColumns = columnsOf(turns, { except: ['queued_at', 'run_at', 'deadline'] })

/** $1: an array of what is wanted, $2: the mark of the moment. A key whose answer is older than a day is free again. */
const insertTasks = `
with wanted as (
  select value as entry from json_array_elements($1)
  where exists (
    select from agents where name = value->'task'->>'agent' and (agents.tenant is null or agents.tenant = value->'task'->>'tenant')
  )
), keyed as (
  insert into idempotency_keys (tenant, key, fingerprint, status, body)
  select own.tenant, own.key, own.fingerprint, own.status, replace(own.body::text, $2, ${momentText})::json
  from wanted, json_populate_record(null::idempotency_keys, entry->'key') as own where own.key is not null
  on conflict (tenant, key) do update
    set fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body, created_at = now()
    where ${isFree}
  returning key
), fresh as (
  select entry, ${ms(`entry->>'delayMs'`)} as delay, ${ms(`entry->'task'->>'timeout_ms'`)} as timeout
  from wanted where entry->'key' is null or entry->'key'->>'key' in (select key from keyed)
), added as (
  insert into tasks (${taskColumns}, created_at, updated_at)
  select ${taskColumns}, ${moment}, ${moment} from fresh, json_populate_record(null::tasks, entry->'task')
)
insert into turns (${turnColumns}, queued_at, run_at, deadline)
select ${turnColumns}, ${moment}, ${moment} + delay, ${moment} + delay + timeout from fresh, json_populate_record(null::turns, entry->'turn')`

/**
 * $1: the turns. A statement of its own: whose turn an intent is about is looked at as it is written, and the turn has to be there by then.
 * They are looked up one by one: how `= any` is done is decided once for a connection, on a new database by reading all turns there are.
 */
const insertIntents = `
insert into outbox (turn)
select own.id from unnest($1::uuid[]) as wanted (id) cross join lateral (select id from turns where turns.id = wanted.id offset 0) as own
returning id, turn, ${moment} as at`
