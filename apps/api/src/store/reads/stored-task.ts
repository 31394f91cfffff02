/**
 * The committed state of a task: the task, its latest turns and its newest messages, of one moment and in one round trip. Tasks of one tenant that are read
 * at the same time share it, because all viewers of an API that was restarted come back at once.
 *
 * Postgres applies two budgets of the same size: one for the messages, one for metadata, params and inputs. It never sends values that do not
 * fit, and the reader learns what was left out: `omitted` lists values, `nextIndex` and `starts` give the indexes of messages.
 */
import { type Message, maxPageSize, type State, type Task, type TaskId, type Turn } from '@rivulet/protocol'
import { batcherPerTenant, createBatcher } from '../connection/batcher.ts'
import type { Database, DatabaseHandle } from '../connection/database.ts'
import { columnsOf, fromJsonRow, type JsonRow } from '../connection/json-rows.ts'
import { everyTenant, type Tenant, taskNotFound } from '../connection/tenant.ts'
import { toMessage, toTask, toTurn } from '../rows.ts'
import { messages, tasks, turns } from '../schema.ts'
import { bytesOf } from './byte-budget.ts'
import { type TurnJsonRow, turnParts } from './latest-turns.ts'
import { newestFitting } from './snapshot-budget.ts'

export type StoredTask = {
  task: Task
  /** The version of these rows: others have another. */
  epoch: number
  /** Ascending. */
  turns: Turn[]
  /** Ascending, without holes, as many of the newest as fit. */
  messages: Message[]
  /** The index after the last message that is stored, whether or not it is among `messages`. */
  nextIndex: number
  /** Where the messages of the latest turns begin; ascending. A turn that never ran has none. */
  starts: { turnNumber: number; index: number }[]
  /** As the last turn that ended or parked has left it; null while it was never set. */
  state: State | null
}

/** Of one statement. */
const mostTasks = 20
/** So long the next statement waits for this one. Not longer, because large tasks are read faster on several connections. */
const patienceMs = 50
/** Of the result of one statement, at most. */
const resultBytes = 16 * 1_024 * 1_024

export function createStoredTaskReader(databaseFor: DatabaseHandle['databaseFor'], maxBytes: number) {
  // A task may have its budget twice: in messages, and in other values.
  const most = Math.max(1, Math.min(mostTasks, Math.floor(resultBytes / (2 * maxBytes))))
  const batcherOf = batcherPerTenant<TaskId, StoredTask | null>(tenant =>
    createBatcher(most, tasks => readStoredTasks(databaseFor(tenant), tenant, tasks, maxBytes), patienceMs),
  )
  return async function read(tenant: Tenant, task: TaskId): Promise<StoredTask> {
    const found = await batcherOf(tenant)(task)
    if (!found) throw taskNotFound()
    return found
  }
}

/** In their order; null for a task that this tenant does not have. */
async function readStoredTasks(db: Database, tenant: Tenant, ids: readonly TaskId[], maxBytes: number): Promise<(StoredTask | null)[]> {
  const { rows } = await db.$client.query({ name: 'stored_tasks', text: storedTasksText, values: [ids, tenant, maxBytes] })
  return (rows as (FoundRows | Record<keyof FoundRows, null>)[]).map(row => (row.task ? toStoredTask(row, maxBytes) : null))
}

function toStoredTask(found: FoundRows, maxBytes: number): StoredTask {
  const { nextIndex, starts, state } = found
  const taskRow = fromJsonRow(tasks, found.task)
  const turnRows = found.turns.map(row => fromJsonRow(turns, row))
  const newest = found.messages.map(row => toMessage(fromJsonRow(messages, row)))
  return {
    task: toTask(taskRow, found.task.omitted),
    epoch: taskRow.epoch,
    turns: turnRows.map((row, i) => toTurn(row, found.turns[i]?.omitted)),
    messages: newestFitting(newest, maxBytes),
    ...{ nextIndex, starts, state },
  }
}

type FoundRows = Pick<StoredTask, 'nextIndex' | 'starts' | 'state'> & {
  task: JsonRow & { omitted: string[] }
  turns: TurnJsonRow[]
  messages: JsonRow[]
}

/** What a message takes beside its values, at least. */
const messageBytes = 200

/**
 * About one task, `wanted.id`; $2 tenant, $3 bytes. Indexes have no holes, so messages are measured from the last index down, until the budget is
 * spent; the exact bytes of what is left are counted where it arrives.
 */
const storedTaskText = `
with recursive sized as (
  select *, ${bytesOf('metadata')} as metadata_bytes, ${bytesOf('params')} as params_bytes
  from tasks where id = wanted.id and $2 in (tenant, '${everyTenant}')
), carried as (
  select *, metadata_bytes <= $3 as has_metadata, case when metadata_bytes <= $3 then metadata_bytes else 0 end + params_bytes <= $3 as has_params
  from sized
), task_row as (
  select to_json(shown) as task from (
    select ${columnsOf(tasks, { except: ['metadata', 'params'] })},
      case when has_metadata then metadata else '{}' end as metadata, case when has_params then params end as params,
      array(select 'params' where not has_params union all select 'metadata' where not has_metadata) as omitted
    from carried
  ) as shown
),${turnParts({
  condition: 'task = wanted.id',
  maxBytes: '$3',
  spent: 'select case when has_metadata then metadata_bytes else 0 end + case when has_params then params_bytes else 0 end from carried',
})}, message_walk (index, bytes) as (
  select (select max(index) + 1 from messages where task = wanted.id), 0::bigint
  union all
  select index - 1, bytes + (
    select ${messageBytes} + ${['content', 'metadata', 'usage', 'response', 'error'].map(bytesOf).join(' + ')}
    from messages where task = wanted.id and index = message_walk.index - 1
  )
  from message_walk where index > 0 and bytes <= $3
)
select task, turn_rows.rows as turns,
  (select coalesce(json_agg(to_json(messages) order by index), '[]') from messages
    where task = wanted.id and index >= (select min(index) from message_walk where bytes <= $3)) as messages,
  (select coalesce(max(index) + 1, 0) from messages where task = wanted.id) as "nextIndex",
  (select coalesce(json_agg(start order by start."turnNumber"), '[]') from (
    select number as "turnNumber", coalesce((select min(index) from messages where task = wanted.id and turn = number), first_index) as index
    from turns where task = wanted.id and first_index is not null order by number desc limit ${maxPageSize}
  ) as start) as starts,
  (select json_build_object('version', version, 'value', value) from states where task = wanted.id order by turn desc limit 1) as state
from task_row, turn_rows`

/** $1: the tasks. */
const storedTasksText = `
select found.* from unnest($1::uuid[]) with ordinality as wanted (id, place)
left join lateral (${storedTaskText}) as found on true
order by place`
