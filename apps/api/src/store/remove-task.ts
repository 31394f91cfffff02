/** Removing a task that has ended, with its turns and messages. */
import { RivuletError } from '@rivulet/protocol'
import { and, eq } from 'drizzle-orm'
import type { Database } from './database.ts'
import { lockTask, pendingTurns } from './queue-turn.ts'
import { tasks } from './schema.ts'
import { isOf, type Tenant } from './tenant.ts'

export async function removeTask(db: Database, tenant: Tenant, id: string): Promise<void> {
  await db.transaction(async tx => {
    await lockTask(tx, tenant, id)
    if ((await pendingTurns(tx, id)).length > 0) throw new RivuletError('task_busy', 'A turn of this task has not ended')
    await tx.delete(tasks).where(and(eq(tasks.id, id), isOf(tenant, tasks.tenant)))
  })
}
