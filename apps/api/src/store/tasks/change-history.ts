/**
 * A conversation that no agent has responded in yet: all of its turns were imported, and no log has them. So its history may still change, and the agent of
 * its first response takes it over.
 */
import { type HistoryMessage, taskDefaults } from '@rivulet/contract/fields'
import { maxHistoryMessages, RivuletError, type TaskId } from '@rivulet/protocol'
import { and, asc, eq, gt, ne, or } from 'drizzle-orm'
import { requireAgent } from '../agents/agents.ts'
import type { Transaction } from '../connection/database.ts'
import type { Readable } from '../connection/tenant.ts'
import type { MessageRow, TaskRow } from '../rows.ts'
import { messages, tasks, turns } from '../schema.ts'
import { importHistory } from './accept/import-history.ts'
import { lockTask, raiseEpoch } from './held-task.ts'

/** Returns the rows of the messages that it has added. */
export async function addHistory(tx: Transaction, caller: Readable, id: TaskId, history: readonly HistoryMessage[]): Promise<MessageRow[]> {
  const { task, rows } = await holdUnanswered(tx, caller, id)
  if (rows.length + history.length > maxHistoryMessages)
    throw new RivuletError('bad_request', `A conversation without a response has at most ${maxHistoryMessages} items`)
  const last = rows.at(-1)
  await importHistory(tx, task, history, { index: (last?.index ?? -1) + 1, turn: (last?.turn ?? 0) + 1 })
  await raiseEpoch(tx, id, 'completed')
  return (await messagesOf(tx, id)).slice(rows.length)
}

/** The last message alone, because the places of the others are their ids. */
export async function dropLastMessage(tx: Transaction, caller: Readable, id: TaskId, index: number): Promise<void> {
  const { task, rows } = await holdUnanswered(tx, caller, id)
  const last = rows.at(-1)
  if (!last || index > last.index) throw new RivuletError('not_found', 'No such item')
  if (last.index !== index) throw new RivuletError('bad_request', 'Only the last item of a conversation can be deleted')
  const kept = rows.filter(row => row.turn === last.turn && row !== last)
  await tx.delete(turns).where(and(eq(turns.task, id), eq(turns.number, last.turn)))
  await importHistory(tx, task, kept, { index: kept[0]?.index ?? 0, turn: last.turn })
  await raiseEpoch(tx, id, rows.length > 1 ? 'completed' : 'queued')
}

/** False for a conversation of another agent that has responded, or that is known by a name of that agent. */
export async function moveToAgent(tx: Transaction, task: TaskRow, agent: string): Promise<boolean> {
  if (task.name !== null || task.parent !== null || (await hasOwnTurn(tx, task.id))) return false
  const { timeoutMs = taskDefaults.timeoutMs, maxAttempts = taskDefaults.maxAttempts } = await requireAgent(tx, task.tenant, agent)
  await tx.update(tasks).set({ agent, timeoutMs, maxAttempts }).where(eq(tasks.id, task.id))
  return true
}

async function holdUnanswered(tx: Transaction, caller: Readable, id: TaskId): Promise<{ task: TaskRow; rows: MessageRow[] }> {
  const task = await lockTask(tx, caller, id)
  if (await hasOwnTurn(tx, id))
    throw new RivuletError('bad_request', 'Items change before the first response alone; send new ones as the input of a response')
  return { task, rows: await messagesOf(tx, id) }
}

/** A turn that was imported is complete, and was never sent to the queue. */
async function hasOwnTurn(tx: Transaction, task: TaskId): Promise<boolean> {
  const isOwn = and(eq(turns.task, task), or(ne(turns.status, 'completed'), gt(turns.dispatch, 0)))
  return (await tx.select({ id: turns.id }).from(turns).where(isOwn).limit(1)).length > 0
}

function messagesOf(tx: Transaction, task: TaskId): Promise<MessageRow[]> {
  return tx.select().from(messages).where(eq(messages.task, task)).orderBy(asc(messages.index))
}
