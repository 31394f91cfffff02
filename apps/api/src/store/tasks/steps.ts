/**
 * The steps of a turn. Only the worker that holds the turn may add one, and a stored step never changes: a request that is repeated, because its
 * response was lost, gets the same result. What a step came to is kept until its turn has ended, its name and times as long as the task.
 */

import type { StepBody, StepResult } from '@rivulet/contract/internal'
import type { Step } from '@rivulet/contract/tasks'
import { outcomeStatusSchema, type TaskId, type TurnId } from '@rivulet/protocol'
import { and, desc, eq, inArray, isNotNull, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { requireTask } from '../reads/tasks.ts'
import { steps, turns } from '../schema.ts'
import { lockHeldTurn } from '../turns/held-turn.ts'

/** Of one task, in a response. */
const maxListed = 500

/** @param also what is stored with the step */
export async function rememberStep(
  db: Database,
  { turnId, claimId, name, memory, durationMs }: StepBody,
  maxBytes: number,
  also: (tx: Transaction) => Promise<void> = async () => {},
): Promise<StepResult['result']> {
  return db.transaction(async tx => {
    if (!(await lockHeldTurn(tx, turnId, claimId))) return 'superseded'
    if ((await bytesWith(tx, turnId, name, memory)) > maxBytes) return 'too_large'
    await tx.insert(steps).values({ turn: turnId, name, memory, durationMs }).onConflictDoNothing()
    await also(tx)
    return 'remembered'
  })
}

/** In SQL about a turn under this name: a list of `RememberedStep`. */
export function rememberedSteps(alias: string): string {
  const list = `coalesce(json_agg(json_build_object('name', name, 'memory', memory)), '[]')`
  return `(select ${list} from steps where steps.turn = ${alias}.id and steps.memory is not null)`
}

/** The latest steps of a task, the earliest of them first. */
export async function listSteps(db: Database, tenant: Tenant, task: TaskId): Promise<Step[]> {
  await requireTask(db, tenant, task)
  const rows = await db
    .select({ turn: turns.number, name: steps.name, finishedAt: steps.finishedAt, durationMs: steps.durationMs })
    .from(steps)
    .innerJoin(turns, eq(turns.id, steps.turn))
    .where(and(eq(turns.task, task), isOf(tenant, turns.tenant)))
    .orderBy(desc(steps.finishedAt), desc(steps.name))
    .limit(maxListed)
  return rows.toReversed().map(({ turn, name, finishedAt, durationMs }) => ({
    ...{ turn, name },
    ...(durationMs !== null && { startedAt: new Date(finishedAt.getTime() - durationMs).toISOString() }),
    finishedAt: finishedAt.toISOString(),
  }))
}

/** No attempt needs what the steps of an ended turn came to. */
export async function forgetSteps(db: Database): Promise<void> {
  const ended = db
    .select({ id: turns.id })
    .from(turns)
    .where(inArray(turns.status, [...outcomeStatusSchema.options]))
  await db
    .update(steps)
    .set({ memory: null })
    .where(and(isNotNull(steps.memory), inArray(steps.turn, ended)))
}

/** What the turn would remember in all. */
async function bytesWith(tx: Transaction, turnId: TurnId, name: string, memory: string): Promise<number> {
  const others = and(eq(steps.turn, turnId), sql`${steps.name} <> ${name}`)
  const [sum] = await tx
    .select({ bytes: sql<number>`coalesce(sum(octet_length(${steps.memory})), 0)::float8` })
    .from(steps)
    .where(others)
  return (sum?.bytes ?? 0) + Buffer.byteLength(memory)
}
