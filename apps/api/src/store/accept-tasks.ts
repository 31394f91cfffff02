/**
 * The short way in, for tasks that have no name and so cannot be there yet. Task, turn, the intent to dispatch it and the answer under its
 * Idempotency-Key are committed together in one round trip, and tasks of one tenant that come together share it.
 *
 * What cannot go this way is told so and has changed nothing: its agent is unknown, its key was used before, or Postgres refused one of the
 * batch. The long way (`createTask`) finds out which.
 */
import type { CreateTask, Json } from '@rivulet/protocol'
import { type Accepted, newTask } from './create-task.ts'
import { type DatabaseHandle, sqlStateOf } from './database.ts'
import { createGathering, type Gathering } from './gathering.ts'
import { type Answer, type IdempotencyKey, inFlight, keptFor } from './idempotency.ts'
import { columnsOf, type JsonRow, toJsonRow } from './json-rows.ts'
import type { Intent } from './outbox.ts'
import { newTurn } from './queue-turn.ts'
import { toTask, toTurn } from './rows.ts'
import { tasks, turns } from './schema.ts'
import type { Tenant } from './tenant.ts'

/** Of one statement. */
const mostTasks = 100

type Wanted = { task: JsonRow; turn: JsonRow; key?: IdempotencyKey & Answer }

export type TaskAcceptance = ReturnType<typeof createTaskAcceptance>

export function createTaskAcceptance(of: DatabaseHandle['of']) {
  // Tenants are as many as somebody made keys for.
  const gatherings = new Map<Tenant, Gathering<Wanted, number | null>>()
  return { accept }

  async function accept(
    tenant: Tenant,
    request: CreateTask,
    key: IdempotencyKey | null,
    traceparent?: string,
  ): Promise<{ accepted: Accepted; answer: Answer; intent: Intent } | null> {
    if (request.name !== undefined) return null
    const { input, delayMs } = request
    const task = newTask(tenant, request)
    const turn = { ...newTurn(task, 1, { ...(input && { input }), delayMs, traceparent }), dispatch: 1 }
    const answer: Answer = { status: 201, body: { task: toTask(task), turn: toTurn(turn) } as Json }
    const wanted = { task: toJsonRow(tasks, task), turn: toJsonRow(turns, turn), ...(key && { key: { ...key, ...answer } }) }
    // One that waits for another request under its key keeps nobody else waiting.
    const id = key ? (await insert(tenant, [wanted]))[0] : await gatheringOf(tenant)(wanted)
    if (!id) return null
    const { agent, priority } = task
    const { number, attempt, dispatch, runAt } = turn
    const intent = { id, turn: turn.id, task: task.id, number, agent, attempt, dispatch, runAt, priority, traceparent: turn.traceparent }
    return { accepted: { task, turn, isNew: true, isQueued: true }, answer, intent }
  }

  function gatheringOf(tenant: Tenant): Gathering<Wanted, number | null> {
    const gathering = gatherings.get(tenant) ?? createGathering(mostTasks, wanted => insert(tenant, wanted))
    gatherings.set(tenant, gathering)
    return gathering
  }

  /** The id of the intent to dispatch each of them, or null where it could not be accepted. */
  async function insert(tenant: Tenant, wanted: readonly Wanted[]): Promise<(number | null)[]> {
    const ids = wanted.map(({ turn }) => turn.id)
    try {
      // failpoint: accepting
      const { rows } = await of(tenant).$client.transact([
        { name: 'accept_tasks', text: insertTasks, values: [JSON.stringify(wanted)] },
        { name: 'dispatch_accepted', text: insertIntents, values: [ids] },
      ])
      const intents = new Map(rows.map(({ turn, id }) => [turn, Number(id)]))
      return ids.map(id => intents.get(id) ?? null)
    } catch (error) {
      const state = sqlStateOf(error) ?? ''
      if (state === '55P03' && wanted[0]?.key) throw inFlight()
      // Data that Postgres does not take: that is for whoever brought it, not for the batch.
      if (!/^(22|54)/.test(state)) throw error
      return wanted.map(() => null)
    }
  }
}

/** $1: an array of what is wanted. A key that nobody has asked for within a day is free again. */
const insertTasks = `
with wanted as (
  select value as entry from json_array_elements($1) where value->'task'->>'agent' in (select name from agents)
), keyed as (
  insert into idempotency_keys (tenant, key, fingerprint, status, body)
  select own.tenant, own.key, own.fingerprint, own.status, own.body
  from wanted, json_populate_record(null::idempotency_keys, entry->'key') as own where own.key is not null
  on conflict (tenant, key) do update
    set fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body, created_at = now()
    where idempotency_keys.created_at < now() - ${keptFor}
  returning key
), fresh as (
  select entry from wanted where entry->'key' is null or entry->'key'->>'key' in (select key from keyed)
), added as (
  insert into tasks (${columnsOf(tasks)}) select ${columnsOf(tasks)} from fresh, json_populate_record(null::tasks, entry->'task')
)
insert into turns (${columnsOf(turns)}) select ${columnsOf(turns)} from fresh, json_populate_record(null::turns, entry->'turn')`

/**
 * $1: the turns. A statement of its own: whose turn an intent is about is looked at as it is written, and the turn has to be there by then.
 * They are looked up one by one: how `= any` is done is decided once for a connection, on a new database by reading all turns there are.
 */
const insertIntents = `
insert into outbox (turn)
select own.id from unnest($1::uuid[]) as wanted (id) cross join lateral (select id from turns where turns.id = wanted.id offset 0) as own
returning id, turn`
