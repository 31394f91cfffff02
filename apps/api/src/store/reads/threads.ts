/** The threads and runs of other protocols: a thread is a task, by its name or its id, and a run is a turn that has the ids of its client. */
import { agentNameSchema, type TaskId, type TurnId, taskIdSchema } from '@rivulet/protocol'
import { and, desc, eq, or, sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import type { TurnRow } from '../rows.ts'
import { tasks, turns } from '../schema.ts'

/** Null for a thread that no task of the agent is. A name takes precedence over an id. */
export async function findThread(db: Database, tenant: Tenant, agent: string, thread: string): Promise<TaskId | null> {
  const id = taskIdSchema.safeParse(thread).data
  const isThread = id === undefined ? eq(tasks.name, thread) : or(eq(tasks.name, thread), eq(tasks.id, id))
  const found = await db
    .select({ id: tasks.id, name: tasks.name })
    .from(tasks)
    .where(and(isOf(tenant, tasks.tenant), eq(tasks.agent, agentNameSchema.parse(agent)), isThread))
    .limit(2)
  return (found.find(({ name }) => name === thread) ?? found[0])?.id ?? null
}

/** A turn of this tenant, with the agent and the name of its task; undefined where there is no such turn. */
export async function findOwnTurn(
  db: Database,
  tenant: Tenant,
  id: TurnId,
): Promise<{ turn: TurnRow; agent: string; name: string | null } | undefined> {
  const [found] = await db
    .select({ turn: turns, agent: tasks.agent, name: tasks.name })
    .from(turns)
    .innerJoin(tasks, eq(tasks.id, turns.task))
    .where(and(eq(turns.id, id), isOf(tenant, turns.tenant)))
  return found
}

/** The number of the latest turn that has this id of its client under `protocol`; null where no turn has it. */
export async function findRun(
  db: Database,
  tenant: Tenant,
  task: TaskId,
  protocol: string,
  { name, id }: { name: string; id: string },
): Promise<number | null> {
  const isRun = sql`${turns.inputMetadata} -> ${protocol}::text ->> ${name}::text = ${id}`
  const [found] = await db
    .select({ number: turns.number })
    .from(turns)
    .where(and(eq(turns.task, task), isOf(tenant, turns.tenant), isRun))
    .orderBy(desc(turns.number))
    .limit(1)
  return found?.number ?? null
}
