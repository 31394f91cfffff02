/**
 * Everything that is stored of a task, as lines of JSON: the task, its turns, its messages, its state, and the usage of all turns together.
 *
 * It holds one turn or one page of messages at a time, whatever the task has. The lines are of several moments: a task that runs meanwhile may have gone on.
 */
import { maxPageSize, sumUsage, type TaskId, type Turn, type Usage } from '@rivulet/protocol'
import { and, asc, eq, gt } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { type TurnRow, toTurn } from '../rows.ts'
import { turns } from '../schema.ts'
import { getState } from '../states/task-state.ts'
import { listMessages } from './messages.ts'
import { getTask } from './tasks.ts'

/** Of the messages in memory at a time. */
const pageBytes = 1024 * 1024

type Shown = (row: TurnRow) => Turn

/** Throws before its first line if there is no such task. */
export async function* exportTask(db: Database, tenant: Tenant, id: TaskId, toShown: Shown = row => toTurn(row)): AsyncGenerator<string> {
  yield toLine({ type: 'task', task: await getTask(db, tenant, id) })
  let usage: Usage | undefined
  for await (const turn of readTurns(db, tenant, id)) {
    usage = sumUsage([usage, turn.usageTotal ?? turn.usage ?? undefined])
    yield toLine({ type: 'turn', turn: toShown(turn) })
  }
  for (let after: number | null = -1; after !== null; ) {
    const page: Awaited<ReturnType<typeof listMessages>> = await listMessages(db, tenant, id, { after, limit: maxPageSize }, pageBytes)
    for (const message of page.data) yield toLine({ type: 'message', message })
    after = page.nextCursor
  }
  const state = await getState(db, tenant, id)
  if (state.version > 0) yield toLine({ type: 'state', state })
  yield toLine({ type: 'usage', usage: usage ?? {} })
}

/** One by one, because each may have megabytes of input and params. */
async function* readTurns(db: Database, tenant: Tenant, id: TaskId): AsyncGenerator<TurnRow> {
  for (let last = 0; ; ) {
    const next = and(eq(turns.task, id), isOf(tenant, turns.tenant), gt(turns.number, last))
    const [turn] = await db.select().from(turns).where(next).orderBy(asc(turns.number)).limit(1)
    if (!turn) return
    yield turn
    last = turn.number
  }
}

function toLine(value: object): string {
  return `${JSON.stringify(value)}\n`
}
