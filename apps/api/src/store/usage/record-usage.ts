/**
 * Stores what responses of a turn used. A record is stored once, however often it is reported: the worker with a step, the fold of the log when an
 * attempt ends, or a worker that has lost the turn. So it needs no transaction with the end of the attempt.
 */
import type { Budget, TurnId, Usage } from '@rivulet/protocol'
import { eq, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import type { TaskRow } from '../rows.ts'
import { children, tasks, turns, usage } from '../schema.ts'
import { endedList } from '../turns/turn-states.ts'

/** `cost` is in US dollars; null: unknown. */
export type UsageRow = { id: string; model: string | null; usage: Usage; tokens: number; cost: number | null }

type NewUsage = { agent: string; model: string | null; tokens: number }

/** Nothing is stored of a turn that is gone. Returns what was not stored before. */
export async function recordUsage(db: Database | Transaction, turnId: TurnId, rows: readonly UsageRow[]): Promise<NewUsage[]> {
  if (rows.length === 0) return []
  const { rows: stored } = await db.execute<NewUsage>(sql`
    insert into ${usage} (turn, id, tenant, task, root, agent, concurrency_key, attempt, model, usage, tokens, cost)
    select turns.id, given.id, turns.tenant, turns.task,
      coalesce((select root from ${children} where child = turns.task), turns.task), tasks.agent, tasks.concurrency_key, turns.attempt, given.model, given.usage, given.tokens, given.cost
    from json_to_recordset(${JSON.stringify(rows)}) as given (id text, model text, usage json, tokens float8, cost numeric),
      turns join tasks on tasks.id = turns.task
    where turns.id = ${turnId}
    on conflict do nothing returning agent, model, tokens`)
  if (stored.length === 0) return []
  // What is reported after the end is part of the totals, too.
  await db
    .update(turns)
    .set(totals)
    .where(sql`${turns.id} = ${turnId} and ${turns.status} in (${sql.raw(endedList)})`)
  return stored
}

/** What all attempts of a turn have used. Null without any usage; the cost is null also where a part of it is unknown. */
export const totals = {
  usageTotal: sql<Usage | null>`(
    select json_object_agg(name, total order by name) from (
      select name, sum(count::float8) as total from usage, json_each_text(usage.usage) as each (name, count) where usage.turn = turns.id group by name
    ) as sums
  )`,
  cost: sql<number | null>`(
    select case when count(*) = count(usage.cost) then sum(usage.cost)::float8 end from usage where usage.turn = turns.id
  )`,
}

type Budgeted = Pick<TaskRow, 'id' | 'budget'>

/** The rest of the root's budget for the tree of a task; null without a budget. */
export async function readBudgetLeft(db: Database | Transaction, task: Budgeted & Pick<TaskRow, 'parent'>): Promise<Budget | null> {
  const { id, budget } = task.parent === null ? task : await rootOf(db, task)
  if (!budget) return null
  const [spent] = await db
    .select({ tokens: sql<number>`coalesce(sum(tokens), 0)::float8`, usd: sql<number>`coalesce(sum(cost), 0)::float8` })
    .from(usage)
    .where(eq(usage.root, id))
  const { tokens = 0, usd = 0 } = spent ?? {}
  return {
    ...(budget.tokens !== undefined && { tokens: budget.tokens - tokens }),
    ...(budget.usd !== undefined && { usd: budget.usd - usd }),
  }
}

/** Whether a budget is used up, by what is left of it. */
export function isUsedUp({ tokens = 1, usd = 1 }: Budget): boolean {
  return tokens <= 0 || usd <= 0
}

/** The task itself, if it is a fork, or if its root was deleted. */
async function rootOf(db: Database | Transaction, task: Budgeted): Promise<Budgeted> {
  const [root] = await db
    .select({ id: tasks.id, budget: tasks.budget })
    .from(children)
    .innerJoin(tasks, eq(tasks.id, children.root))
    .where(eq(children.child, task.id))
  return root ?? task
}

/** The same for the task of a turn. */
export async function isTurnOverBudget(db: Database | Transaction, turnId: TurnId): Promise<boolean> {
  const [task] = await db
    .select({ id: tasks.id, budget: tasks.budget, parent: tasks.parent })
    .from(turns)
    .innerJoin(tasks, eq(tasks.id, turns.task))
    .where(eq(turns.id, turnId))
  const left = task ? await readBudgetLeft(db, task) : null
  return left !== null && isUsedUp(left)
}
