/**
 * What the steps of a turn have come to. Only who holds the turn may add to it, and what is remembered never changes: a question that is asked
 * again, because its answer was lost, is answered the same.
 */
import { outcomeStatusSchema, type StepBody, type StepResult, type TurnId } from '@rivulet/protocol'
import { and, eq, inArray, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { steps, turns } from '../schema.ts'

/** @param also what is stored with the step */
export async function rememberStep(
  db: Database,
  { turnId, claimId, name, memory }: StepBody,
  maxBytes: number,
  also: (tx: Transaction) => Promise<void> = async () => {},
): Promise<StepResult['result']> {
  return db.transaction(async tx => {
    const held = and(eq(turns.id, turnId), eq(turns.claim, claimId), eq(turns.status, 'running'), eq(turns.canceling, false))
    // Held until the commit: a process that takes the turn away waits for it, and the worker that claims it next finds this step.
    const [holder] = await tx.select({ id: turns.id }).from(turns).where(held).for('no key update')
    if (!holder) return 'superseded'
    if ((await bytesWith(tx, turnId, name, memory)) > maxBytes) return 'too_large'
    await tx.insert(steps).values({ turn: turnId, name, memory }).onConflictDoNothing()
    await also(tx)
    return 'remembered'
  })
}

/** In SQL about a turn under this name: a list of `RememberedStep`. */
export function rememberedSteps(alias: string): string {
  return `(select coalesce(json_agg(json_build_object('name', name, 'memory', memory)), '[]') from steps where steps.turn = ${alias}.id)`
}

/** The steps of an ended turn are no longer needed. */
export async function forgetSteps(db: Database): Promise<void> {
  const ended = db
    .select({ id: turns.id })
    .from(turns)
    .where(inArray(turns.status, [...outcomeStatusSchema.options]))
  await db.delete(steps).where(inArray(steps.turn, ended))
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
