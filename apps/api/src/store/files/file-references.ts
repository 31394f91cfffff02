/** Which files a task or a schedule refers to. A reference is committed with the message or the input that has it, and keeps the file. */
import { type Content, type FileId, RivuletError } from '@rivulet/protocol'
import { and, eq, inArray, sql } from 'drizzle-orm'
import { sqlStateOf, type Transaction } from '../connection/database.ts'
import type { TaskRow } from '../rows.ts'
import { files, scheduleFiles, taskFiles } from '../schema.ts'

export function filesIn(contents: readonly (Content | null | undefined)[]): FileId[] {
  const ids = contents.flatMap(content => (content && 'file' in content && content.file !== undefined ? [content.file] : []))
  return [...new Set(ids)]
}

type Referring = Pick<TaskRow, 'id' | 'tenant'>

/** Of callers: the files were there when the request was checked. */
export async function referToFiles(tx: Transaction, task: Referring, contents: readonly (Content | null | undefined)[]): Promise<void> {
  await orRejected(addReferences(tx, task, filesIn(contents)))
}

/** Each run of the schedule is a task with references of its own. */
export async function keepFiles(
  tx: Transaction,
  { id: schedule, tenant }: { id: string; tenant: string },
  contents: readonly (Content | null | undefined)[],
): Promise<void> {
  const ids = filesIn(contents)
  if (ids.length === 0) return
  await orRejected(tx.insert(scheduleFiles).values(ids.map(file => ({ schedule, tenant, file }))))
  await noteUse(tx, tenant, ids)
}

async function orRejected(work: PromiseLike<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (sqlStateOf(error) !== '23503') throw error
    throw new RivuletError('validation_failed', 'A file was removed while this request was carried out')
  }
}

/** Throws Postgres' own error for a file that is not there. */
export async function addReferences(tx: Transaction, { id: task, tenant }: Referring, ids: readonly FileId[]): Promise<void> {
  if (ids.length === 0) return
  await tx
    .insert(taskFiles)
    .values(ids.map(file => ({ task, tenant, file })))
    .onConflictDoNothing()
  await noteUse(tx, tenant, ids)
}

async function noteUse(tx: Transaction, tenant: string, ids: readonly FileId[]): Promise<void> {
  await tx
    .update(files)
    .set({ isUsed: true })
    .where(and(inArray(files.id, [...ids]), eq(files.tenant, tenant), eq(files.isUsed, false)))
}

/** For a copy of a task, which may refer to less, and for a child, which may read the files of its parent. */
export async function copyReferences(tx: Transaction, from: Referring, to: Referring): Promise<void> {
  await tx.execute(sql`
    insert into ${taskFiles} (task, tenant, file) select ${to.id}, tenant, file from ${taskFiles} where task = ${from.id} and tenant = ${to.tenant}
    on conflict do nothing`)
}
