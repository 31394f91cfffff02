/** The secrets of tasks and turns, encrypted. Only the claim of a turn reads them: those of the turn, else those of the task. */
import type { TaskId } from '@rivulet/protocol'
import { and, eq, lte, type SQL, sql } from 'drizzle-orm'
import type { Sealed, Vault } from '../access/vault.ts'
import type { Database, Transaction } from '../connection/database.ts'
import type { TaskRow, TurnRow } from '../rows.ts'
import { taskSecrets } from '../schema.ts'

/** The turn that stands for the whole task. */
const wholeTask = 0

/** Of a turn that is new in its task, or of the whole task. */
export async function storeSecrets(tx: Transaction, { id, tenant }: TaskRow, turn: TurnRow | null, sealed: Sealed): Promise<void> {
  const target = [taskSecrets.task, taskSecrets.turn]
  const row = { task: id, tenant, turn: turn?.number ?? wholeTask, ...sealed }
  await tx.insert(taskSecrets).values(row).onConflictDoUpdate({ target, set: sealed })
}

/** Those of the task; turns keep their own. */
export async function removeSecrets(tx: Transaction, { id }: TaskRow): Promise<void> {
  await tx.delete(taskSecrets).where(and(eq(taskSecrets.task, id), eq(taskSecrets.turn, wholeTask)))
}

/** For a turn that another one repeats. */
export async function repeatSecrets(tx: Transaction, from: TurnRow, to: TurnRow): Promise<void> {
  await copyRows(tx, from.task, sql`${from.task}, ${to.number}`, eq(taskSecrets.turn, from.number))
}

/** For a copy of a task, up to a turn. */
export async function copySecrets(tx: Transaction, from: TaskRow, to: TaskRow, upTo: number): Promise<void> {
  await copyRows(tx, from.id, sql`${to.id}::uuid, turn`, lte(taskSecrets.turn, upTo))
}

async function copyRows(tx: Transaction, task: TaskId, target: SQL, which: SQL): Promise<void> {
  await tx.execute(sql`
    insert into ${taskSecrets} (task, turn, tenant, key, sealed)
    select ${target}, tenant, key, sealed from ${taskSecrets} where ${and(eq(taskSecrets.task, task), which)}`)
}

/** What a claimed turn gets, in SQL about a row with the columns of a turn; null: nothing. */
export const sealedOf = (alias: string) => `(
  select json_build_object('key', key, 'sealed', sealed) from task_secrets
  where task_secrets.task = ${alias}.task and task_secrets.turn in (${wholeTask}, ${alias}.number) order by task_secrets.turn desc limit 1
)`

/** Moves up to `limit` rows of an old key to the current one, and returns how many it moved. Rows that `rewrap` cannot open stay as they are. */
export async function rewrapSecrets(db: Database, oldKeyName: string, rewrap: Vault['rewrap'], limit: number): Promise<number> {
  return db.transaction(async tx => {
    const rows = await tx.select().from(taskSecrets).where(eq(taskSecrets.key, oldKeyName)).limit(limit).for('update', { skipLocked: true })
    const moved = rows.flatMap(({ task, turn, tenant, ...row }) => {
      const sealed = rewrap(tenant, row)
      return sealed ? [{ task, turn, sealed }] : []
    })
    for (const { task, turn, sealed } of moved)
      await tx
        .update(taskSecrets)
        .set(sealed)
        .where(and(eq(taskSecrets.task, task), eq(taskSecrets.turn, turn)))
    return moved.length
  })
}
