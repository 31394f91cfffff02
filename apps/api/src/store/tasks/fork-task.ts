/**
 * A copy of a task, up to the end of one of its turns: it goes on by itself, and the source does not change. Everything that has been said is copied;
 * what belongs to a run of a turn (its claim, its steps, its place in a log) is not.
 */
import type { ForkTask } from '@rivulet/contract/tasks'
import { RivuletError, type TaskId } from '@rivulet/protocol'
import { and, eq, lte, sql } from 'drizzle-orm'
import { v7 as uuidv7 } from 'uuid'
import type { Transaction } from '../connection/database.ts'
import { columnsOf } from '../connection/json-rows.ts'
import type { Readable } from '../connection/tenant.ts'
import { copyReferences } from '../files/file-references.ts'
import type { TaskRow, TurnRow } from '../rows.ts'
import { messages, tasks, turns } from '../schema.ts'
import { copyStates } from '../states/task-state.ts'
import { pendingTurns } from '../turns/turn-states.ts'
import { checkTurnParams } from './accept/check-params.ts'
import type { AcceptedTurn } from './accept/create-task.ts'
import { queueTurn } from './accept/queue-turn.ts'
import { lockTask } from './held-task.ts'
import { copySecrets } from './task-secrets.ts'

/** Without an input the copy has no turn to run, and `turn` is the last one that was copied. */
export async function forkTask(
  tx: Transaction,
  caller: Readable,
  id: TaskId,
  request: ForkTask,
  maxQueued: number,
  traceparent?: string,
): Promise<AcceptedTurn> {
  const source = await lockTask(tx, caller, id)
  const last = await lastTurn(tx, source, request.after)
  const copy = await insertCopy(tx, source, last, request.name)
  const { input, params } = request
  if (!input) return { task: copy, turn: await turnOf(tx, copy.id, last.number), isNew: true, isQueued: false }
  await checkTurnParams(tx, copy.tenant, copy.agent, params)
  const turn = await queueTurn(tx, copy, { input, ...(params !== undefined && { params }), maxQueued, traceparent })
  return { task: await lockTask(tx, caller, copy.id), turn, isNew: true, isQueued: true }
}

/** The turn after which the copy ends. It and all before it have ended: a copy of a turn that runs would be without its end. */
async function lastTurn(tx: Transaction, { id }: TaskRow, after: number | undefined): Promise<TurnRow> {
  const [oldest] = await pendingTurns(tx, id)
  const number = after ?? (oldest ? oldest.number - 1 : undefined)
  const isPending = oldest !== undefined && (number ?? 0) >= oldest.number
  const found = isPending || number === 0 ? null : await turnOf(tx, id, number)
  if (!found) throw new RivuletError('task_busy', 'The turn to fork after has not ended')
  return found
}

async function turnOf(tx: Transaction, task: TaskId, number?: number): Promise<TurnRow> {
  const own = and(eq(turns.task, task), number === undefined ? undefined : eq(turns.number, number))
  const [turn] = await tx.select().from(turns).where(own).orderBy(sql`number desc`).limit(1)
  if (!turn) throw new RivuletError('not_found', 'No such turn in this task')
  return turn
}

async function insertCopy(tx: Transaction, source: TaskRow, last: TurnRow, name: string | undefined): Promise<TaskRow> {
  const id = uuidv7()
  const own = { id, parent: source.id, name: name ?? null, status: last.status }
  const [copy] = await tx
    .insert(tasks)
    // Its rows have changed since it was empty, so it has no log of its first epoch.
    .values({ ...source, ...own, epoch: 2, createdAt: sql`now()`, updatedAt: sql`now()` })
    .onConflictDoNothing({ target: [tasks.tenant, tasks.agent, tasks.name] })
    .returning()
  if (!copy) throw new RivuletError('name_taken', 'A task of this agent has this name')
  await tx.execute(sql`
    insert into ${turns} (id, task, announced, ${turnColumns})
    select gen_random_uuid(), ${id}, true, ${turnColumns} from ${turns} where ${and(eq(turns.task, source.id), lte(turns.number, last.number))}`)
  await tx.execute(sql`
    insert into ${messages} (task, ${messageColumns})
    select ${id}, ${messageColumns} from ${messages} where ${and(eq(messages.task, source.id), lte(messages.turn, last.number))}`)
  await copyStates(tx, source, copy, last.number)
  await copyReferences(tx, source, copy)
  await copySecrets(tx, source, copy, last.number)
  return copy
}

/** Of a run: the copy has none. */
const ofRuns = ['dispatch', 'epoch', 'claim', 'worker', 'lease_until', 'canceling', 'end_cursor', 'traceparent']
const turnColumns = sql.raw(columnsOf(turns, { except: ['id', 'task', 'announced', ...ofRuns] }))
const messageColumns = sql.raw(columnsOf(messages, { except: ['task'] }))
