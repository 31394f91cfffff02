/** Reads a committed task: itself, whether it exists, and the version of its rows. */
import { type Cursor, maxPageSize, type Task, type TaskId } from '@rivulet/protocol'
import { and, eq } from 'drizzle-orm'
import { batcherPerTenant, createBatcher } from '../connection/batcher.ts'
import type { Database, DatabaseHandle, Transaction } from '../connection/database.ts'
import { everyTenant, isOf, type Readable, type Tenant, taskNotFound } from '../connection/tenant.ts'
import { toTask } from '../rows.ts'
import { tasks } from '../schema.ts'

export async function getTask(db: Database | Transaction, tenant: Tenant, id: string): Promise<Task> {
  const [row] = await db
    .select()
    .from(tasks)
    .where(and(eq(tasks.id, id), isOf(tenant, tasks.tenant)))
  if (!row) throw taskNotFound()
  return toTask(row)
}

/** Whether there is such a task, without what it carries. */
export async function requireTask(db: Database, tenant: Tenant, id: string): Promise<void> {
  const [row] = await db
    .select({ id: tasks.id })
    .from(tasks)
    .where(and(eq(tasks.id, id), isOf(tenant, tasks.tenant)))
  if (!row) throw taskNotFound()
}

/** The same of several tasks: the error lists the ones that do not exist. */
export async function requireTasks(db: Database, tenant: Tenant, ids: readonly TaskId[]): Promise<void> {
  const exist = await tasksExist(db, tenant, ids)
  const missing = ids.filter((_, i) => !exist[i])
  if (missing.length > 0) throw taskNotFound(missing.map(id => ({ path: `/tasks/${id}`, reason: 'No such task' })))
}

/** Of one statement. */
const mostTasks = 200

/** As `requireTask`, for callers that come at the same time: those of one tenant share a statement. */
export function createTaskCheck(databaseFor: DatabaseHandle['databaseFor']): (caller: Readable, task: TaskId) => Promise<void> {
  const batcherOf = batcherPerTenant<TaskId, boolean>(tenant =>
    createBatcher(mostTasks, ids => tasksExist(databaseFor(tenant), tenant, ids)),
  )
  return async (caller, task) => {
    const { tenant, agents } = caller
    if (agents) await requireTask(databaseFor(caller), tenant, task)
    else if (!(await batcherOf(tenant)(task))) throw taskNotFound()
  }
}

async function tasksExist(db: Database, tenant: Tenant, ids: readonly TaskId[]): Promise<boolean[]> {
  const { rows } = await db.$client.query({ name: 'tasks_exist', text: tasksExistText, values: [ids, tenant] })
  return (rows as { exists: boolean }[]).map(({ exists }) => exists)
}

/** $1 tasks, $2 tenant. */
const tasksExistText = `
select exists (select from tasks where tasks.id = wanted.id and $2 in (tenant, '${everyTenant}'))
from unnest($1::uuid[]) with ordinality as wanted (id, place) order by place`

export type TaskVersion = {
  /** Rises with every change of the task's rows. */
  epoch: number
  /** The cursor behind the last end in the task's log; null while a turn has not ended, or an end is not in the log yet. */
  endCursor: Cursor | null
}

/** Of its latest hundred turns, the end that was announced last is the last in the log: a turn that waited may end before the one that runs. */
export async function readTaskVersion(db: Database, tenant: Tenant, task: TaskId): Promise<TaskVersion> {
  const { rows } = await db.$client.query({ name: 'task_version', text: taskVersionText, values: [task, tenant] })
  const [found] = rows as { epoch: string; endCursor: Cursor | null }[]
  if (!found) throw taskNotFound()
  return { epoch: Number(found.epoch), endCursor: found.endCursor }
}

/** $1 task, $2 tenant. */
const taskVersionText = `
select epoch, (
  select case when bool_and(announced) then (array_agg(end_cursor order by
    split_part(end_cursor, '-', 1)::bigint desc nulls last, split_part(end_cursor, '-', 2)::bigint desc nulls last))[1] end
  from (select announced, end_cursor from turns where task = $1 order by number desc limit ${maxPageSize}) as latest
) as "endCursor"
from tasks where id = $1 and $2 in (tenant, '${everyTenant}')`
