/** Changes the name and the metadata of a task. Its turns, and what its agent gets, stay as they are. */
import type { ChangeTask } from '@rivulet/contract/tasks'
import { limitNames, mergePatch, RivuletError, type TaskId } from '@rivulet/protocol'
import { eq, sql } from 'drizzle-orm'
import { sqlStateOf, type Transaction } from '../connection/database.ts'
import type { Readable } from '../connection/tenant.ts'
import type { TaskRow } from '../rows.ts'
import { tasks } from '../schema.ts'
import { lockTask, raiseEpoch } from './held-task.ts'

/** @param maxBytes of the metadata: every change adds to what is there, so the limit of a body is not enough. */
export async function changeTask(
  tx: Transaction,
  caller: Readable,
  id: TaskId,
  { name, metadata }: ChangeTask,
  maxBytes: number,
): Promise<TaskRow> {
  const held = await lockTask(tx, caller, id)
  const merged = metadata === undefined ? held.metadata : mergePatch(held.metadata, metadata)
  if (metadata !== undefined && Buffer.byteLength(JSON.stringify(merged)) > maxBytes)
    throw new RivuletError('body_too_large', `The metadata of a task may have at most ${maxBytes} bytes (${limitNames.bodyBytes})`)
  const changed = { name: name === undefined ? held.name : name, metadata: merged, updatedAt: sql`now()` }
  try {
    await tx.update(tasks).set(changed).where(eq(tasks.id, id))
  } catch (error) {
    if (sqlStateOf(error) === uniqueViolation) throw new RivuletError('name_taken', 'Another task of this agent has this name')
    throw error
  }
  return raiseEpoch(tx, id)
}

const uniqueViolation = '23505'
