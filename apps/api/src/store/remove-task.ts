/** Removing a task that has ended, with its turns and messages. */
import { RivuletError } from '@rivulet/protocol'
import { eq } from 'drizzle-orm'
import type { Database } from './database.ts'
import { lockTask, pendingTurns } from './queue-turn.ts'
import { tasks } from './schema.ts'

export async function removeTask(db: Database, id: string): Promise<void> {
  await db.transaction(async tx => {
    await lockTask(tx, id)
    if ((await pendingTurns(tx, id)).length > 0) throw new RivuletError('task_busy', 'A turn of this task has not ended')
    await tx.delete(tasks).where(eq(tasks.id, id))
  })
}
