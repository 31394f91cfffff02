/** Accepting work: the task, its turn and the intent to dispatch it are committed together, or not at all. */
import { type CreateTask, type CreateTurn, RivuletError } from '@rivulet/protocol'
import { and, desc, eq, sql } from 'drizzle-orm'
import { v7 as uuidv7 } from 'uuid'
import type { Transaction } from '../connection/database.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { isAgentOf } from '../reads/agents.ts'
import type { TaskRow, TurnRow } from '../rows.ts'
import { agents, tasks, turns } from '../schema.ts'
import { lockTask, pendingTurns, queueTurn } from './queue-turn.ts'

export type Accepted = { task: TaskRow; turn: TurnRow; isNew: boolean; isQueued: boolean }

/** With a name that a task of this tenant and agent already has, it is that task which goes on: an input becomes its next turn. */
export async function createTask(
  tx: Transaction,
  tenant: Tenant,
  request: CreateTask,
  maxQueued: number,
  traceparent?: string,
): Promise<Accepted> {
  await requireAgent(tx, tenant, request.agent)
  const created = await insertTask(tx, tenant, request)
  const { input, params, delayMs } = request
  if (created)
    return {
      task: created,
      turn: await queueTurn(tx, created, { ...(input && { input }), delayMs, maxQueued, traceparent }),
      isNew: true,
      isQueued: true,
    }

  const task = await lockNamedTask(tx, tenant, request)
  if (!input) return { task, turn: await latestTurn(tx, task.id), isNew: false, isQueued: false }
  const turn = await queueTurn(tx, task, { input, ...(params !== undefined && { params }), delayMs, maxQueued, traceparent })
  return { task: await lockTask(tx, tenant, task.id), turn, isNew: false, isQueued: true }
}

export async function createTurn(
  tx: Transaction,
  tenant: Tenant,
  id: string,
  request: CreateTurn,
  maxQueued: number,
  traceparent?: string,
): Promise<Accepted> {
  const { input, params, ifBusy } = request
  const task = await lockTask(tx, tenant, id)
  if (ifBusy === 'reject' && (await pendingTurns(tx, id)).length > 0) {
    throw new RivuletError('task_busy', 'A turn of this task has not ended')
  }
  const turn = await queueTurn(tx, task, { ...(input && { input }), ...(params !== undefined && { params }), maxQueued, traceparent })
  return { task, turn, isNew: false, isQueued: true }
}

async function requireAgent(tx: Transaction, tenant: Tenant, name: string): Promise<void> {
  const known = await tx
    .select({ name: agents.name })
    .from(agents)
    .where(and(eq(agents.name, name), isAgentOf(tenant)))
  if (known.length === 0) throw new RivuletError('unknown_agent', 'No worker has ever registered this agent')
}

/** A task before Postgres has said when it was created. */
export type UntimedTask = Omit<TaskRow, 'createdAt' | 'updatedAt'>

export function newTask(tenant: Tenant, request: CreateTask): UntimedTask {
  const { agent, name, params, metadata, priority, timeoutMs, maxAttempts } = request
  return {
    id: uuidv7(),
    tenant,
    agent,
    priority,
    timeoutMs,
    maxAttempts,
    name: name ?? null,
    status: 'queued',
    params: params ?? null,
    metadata: metadata ?? {},
    // The log of a new task is opened under this epoch.
    epoch: 1,
  }
}

async function insertTask(tx: Transaction, tenant: Tenant, request: CreateTask): Promise<TaskRow | undefined> {
  const rows = await tx
    .insert(tasks)
    .values({ ...newTask(tenant, request), createdAt: sql`now()`, updatedAt: sql`now()` })
    .onConflictDoNothing({ target: [tasks.tenant, tasks.agent, tasks.name] })
    .returning()
  return rows[0]
}

async function lockNamedTask(tx: Transaction, tenant: Tenant, { agent, name = '' }: CreateTask): Promise<TaskRow> {
  const [task] = await tx
    .select()
    .from(tasks)
    .where(and(isOf(tenant, tasks.tenant), eq(tasks.agent, agent), eq(tasks.name, name)))
    .for('update')
  if (!task) throw new RivuletError('in_flight', 'The task of this name is being removed')
  return task
}

async function latestTurn(tx: Transaction, task: string): Promise<TurnRow> {
  const [turn] = await tx.select().from(turns).where(eq(turns.task, task)).orderBy(desc(turns.number)).limit(1)
  if (!turn) throw new Error('A task has at least one turn')
  return turn
}
