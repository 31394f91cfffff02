/**
 * The attempts of a turn. One that another follows is kept, with its error, its worker and what it had said, because its messages leave the task.
 * The latest one is read off the turn.
 */
import type { Attempt } from '@rivulet/contract/turns'
import { type Failure, type Message, RivuletError, type TaskId, type Usage } from '@rivulet/protocol'
import { and, asc, eq } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { requireTask } from '../reads/tasks.ts'
import { type TurnRow, toTurn } from '../rows.ts'
import { attempts, turns } from '../schema.ts'

/** Of the messages of one attempt, as JSON: all attempts of a turn fit into a page. */
const maxKeptBytes = 32_768

export type AttemptEnd = {
  status: 'failed' | 'lost'
  error: Failure
  detail?: string | undefined
  usage?: Usage | undefined
  messages: readonly Message[]
}

/** In the transaction that queues the turn again. */
export async function keepAttempt(tx: Transaction, turn: TurnRow, { status, error, detail, usage, messages }: AttemptEnd): Promise<void> {
  const kept = thoseThatFit(messages)
  await tx
    .insert(attempts)
    .values({
      ...{ turn: turn.id, tenant: turn.tenant, attempt: turn.attempt, status, worker: turn.worker },
      ...{ startedAt: turn.attemptAt, error, errorDetail: detail ?? null, usage: usage ?? null },
      ...{ messages: kept, isCut: kept.length < messages.length },
    })
    .onConflictDoNothing()
}

/** @param isFull with what only callers with a key get: the worker, and what was thrown */
export async function listAttempts(db: Database, tenant: Tenant, task: TaskId, number: number, isFull: boolean): Promise<Attempt[]> {
  await requireTask(db, tenant, task)
  const [turn] = await db
    .select()
    .from(turns)
    .where(and(eq(turns.task, task), isOf(tenant, turns.tenant), eq(turns.number, number)))
  if (!turn) throw new RivuletError('not_found', 'No such turn in this task')
  const rows = await db
    .select()
    .from(attempts)
    .where(and(eq(attempts.turn, turn.id), isOf(tenant, attempts.tenant)))
    .orderBy(asc(attempts.attempt))
  const earlier = rows.filter(({ attempt }) => attempt < turn.attempt || turn.status === 'queued')
  return [...earlier.map(row => toAttempt(row, isFull)), ...latestOf(turn, isFull, earlier.at(-1)?.attempt)]
}

function toAttempt(row: typeof attempts.$inferSelect, isFull: boolean): Attempt {
  const { attempt, status, worker, startedAt, finishedAt, error, errorDetail, usage, messages, isCut } = row
  return {
    ...{ attempt, status },
    ...(isFull && worker !== null && { worker }),
    ...(startedAt && { startedAt: startedAt.toISOString() }),
    finishedAt: finishedAt.toISOString(),
    error: { ...error, ...(isFull && errorDetail !== null && { detail: errorDetail }) },
    ...(usage && { usage }),
    messages,
    ...(isCut && { omitted: ['messages'] }),
  }
}

/** None for a turn that waits for its first attempt, or for the next one. Its messages are those of the task. */
function latestOf(row: TurnRow, isFull: boolean, kept: number | undefined): Attempt[] {
  const { attempt, status, worker, attemptAt, errorDetail } = row
  if (attempt === 0 || attempt === kept) return []
  const { startedAt, finishedAt, error, usage } = toTurn(row)
  const begun = attemptAt?.toISOString() ?? startedAt
  return [
    {
      ...{ attempt, status },
      ...(isFull && worker !== null && { worker }),
      ...(begun && { startedAt: begun }),
      ...(finishedAt && { finishedAt }),
      ...(error && { error: { ...error, ...(isFull && errorDetail !== null && { detail: errorDetail }) } }),
      ...(usage && { usage }),
    },
  ]
}

function thoseThatFit(messages: readonly Message[]): Message[] {
  let bytes = 0
  const kept: Message[] = []
  for (const message of messages) {
    bytes += Buffer.byteLength(JSON.stringify(message))
    if (bytes > maxKeptBytes) {
      const cut = beginningOf(message, maxKeptBytes - (bytes - Buffer.byteLength(JSON.stringify(message))))
      return cut ? [...kept, cut] : kept
    }
    kept.push(message)
  }
  return kept
}

/** A text that is too long is kept as far as it fits: it is what a person looks for. */
function beginningOf(message: Message, bytes: number): Message | null {
  if (message.content.type !== 'text' || bytes < 2_048) return null
  // A character takes at most six bytes as JSON, as an escaped one.
  const text = message.content.text.slice(0, Math.floor((bytes - 1_024) / 6)).replace(/[\uD800-\uDBFF]$/, '')
  return { ...message, content: { ...message.content, text } }
}
