/** The answer to a wait: a compare-and-set in Postgres. The first wins, the same again is repeated, and any other is refused. */
import { isDeepStrictEqual } from 'node:util'
import type { AnswerBody } from '@rivulet/contract/waits'
import {
  checkOf,
  type ErrorDetail,
  formFaults,
  isAnsweredByRequest,
  isObject,
  type Json,
  RivuletError,
  type TaskId,
  type Wait,
  type WaitId,
} from '@rivulet/protocol'
import { and, eq, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { readNow } from '../connection/moments.ts'
import { isOf, type Readable, type Tenant } from '../connection/tenant.ts'
import { requireTask } from '../reads/tasks.ts'
import type { TurnRow } from '../rows.ts'
import { waits } from '../schema.ts'
import { lockTask } from '../tasks/held-task.ts'
import { closeAndResume, isWait } from './close-waits.ts'
import { toWait, type WaitRow } from './wait-rows.ts'

/** `turn` is null when the same answer was given before. */
export type Answered = { wait: Wait; turn: TurnRow | null }

type GivenAnswer = AnswerBody & { by?: string | undefined }

export async function answerWait(tx: Transaction, caller: Readable, task: TaskId, id: WaitId, given: GivenAnswer): Promise<Answered> {
  await lockTask(tx, caller, task)
  const { row, isDue } = await findWait(tx, caller.tenant, task, id)
  const { action, content, comment, by } = given
  const answer = { action, ...(content !== undefined && { content }), ...(comment !== undefined && { comment }), ...(by && { by }) }
  if (row.status === 'answered' && row.answer) {
    const { at: _, ...winner } = row.answer
    if (isDeepStrictEqual(winner, answer)) return { wait: toWait(row), turn: null }
    throw new RivuletError('already_answered', 'This wait was answered before', { details: detailsOfWinner(row.answer) })
  }
  if (row.status !== 'open' || isDue)
    throw new RivuletError('wait_closed', `This wait is ${row.status === 'open' ? 'expired' : row.status}`)
  checkAnswer(row, given)
  const turn = await closeAndResume(tx, row.turn, { status: 'answered', answer: { ...answer, at: await readNow(tx) } }, isWait(id))
  const wait = turn?.waits?.find(known => known.id === id)
  if (!wait) throw new RivuletError('internal', 'A wait whose task is held cannot have been closed')
  return { wait, turn }
}

export async function getWait(db: Database, tenant: Tenant, task: TaskId, id: WaitId): Promise<Wait> {
  await requireTask(db, tenant, task)
  return toWait((await findWait(db, tenant, task, id)).row)
}

type Found = { row: WaitRow; isDue: boolean }

async function findWait(db: Database | Transaction, tenant: Tenant, task: TaskId, id: WaitId): Promise<Found> {
  const [found] = await db
    .select({ row: waits, isDue: sql<boolean>`${waits.expiresAt} <= now()` })
    .from(waits)
    .where(and(eq(waits.id, id), eq(waits.task, task), isOf(tenant, waits.tenant)))
  if (!found) throw new RivuletError('not_found', 'No such wait in this task')
  return found
}

function checkAnswer({ kind, request }: WaitRow, { action, content }: AnswerBody): void {
  if (!isAnsweredByRequest(kind)) throw new RivuletError('bad_request', `A wait of kind ${kind} is not answered by a request`)
  if (!request.actions.includes(action)) throw invalid([{ path: '/action', reason: `Use one of ${request.actions.join(', ')}` }])
  const faults = contentFaults(request, action, content)
  if (faults.length > 0) throw invalid(faults.map(({ path, reason }) => ({ path: path === '/' ? '/content' : `/content${path}`, reason })))
}

/** A form has its content. What an approval edits is an object of arguments. What declines has a comment, and no content. */
function contentFaults(
  { schema, argumentsSchema }: Pick<Wait, 'schema' | 'argumentsSchema'>,
  action: AnswerBody['action'],
  content: Json | undefined,
): ErrorDetail[] {
  if (action === 'decline') return content === undefined ? [] : [{ path: '/', reason: 'A decline has no content' }]
  if (schema) return formFaults(schema, content)
  if (action !== 'edit') return []
  if (!isObject(content)) return [{ path: '/', reason: 'Expected an object: the edited arguments' }]
  return (argumentsSchema && checkOf(argumentsSchema, '')?.(content)) ?? []
}

function detailsOfWinner({ action, by, at }: NonNullable<WaitRow['answer']>): ErrorDetail[] {
  const winner = { action, ...(by !== undefined && { by }), at }
  return Object.entries(winner).map(([name, value]) => ({ path: `/answer/${name}`, reason: value }))
}

function invalid(details: ErrorDetail[]): RivuletError {
  return new RivuletError('validation_failed', 'Request validation failed', { details })
}
