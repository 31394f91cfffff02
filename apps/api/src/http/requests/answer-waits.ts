/** Closes waits with the responses of a client, for the dialects of other protocols. */
import { type AnswerBody, answerBody } from '@rivulet/contract/waits'
import { detailsOf, RivuletError, type TaskId, type WaitId } from '@rivulet/protocol'
import type { FastifyRequest } from 'fastify'
import type { TurnRow } from '../../store/rows.ts'
import { taskTransaction } from '../../store/tasks/task-line.ts'
import { answerWait } from '../../store/waits/answer-wait.ts'
import type { Services } from '../services.ts'
import { createAudit } from './audited.ts'

export type WaitResponse = { wait: WaitId; answer: AnswerBody }

export function createAnswerWaits(services: Pick<Services, 'databaseFor' | 'waiting' | 'metrics' | 'refusals'>) {
  const { databaseFor, waiting } = services
  const { note } = createAudit(services)
  /** All of them, or none where one does not fit its wait. A wait that was closed meanwhile stays as it is. */
  return async function answerWaits(request: FastifyRequest, task: TaskId, responses: readonly WaitResponse[]): Promise<void> {
    const { principal } = request
    const changed = new Map<string, TurnRow>()
    await taskTransaction(databaseFor(principal.tenant), task, async tx => {
      for (const { wait, answer: given } of responses) {
        const answer = checked(given)
        const { turn } = await answerWait(tx, principal, task, wait, answer).catch(unlessClosed)
        if (!turn) continue
        changed.set(turn.id, turn)
        await note(request, answered(task, wait, answer))(tx)
      }
    })
    for (const turn of changed.values()) await waiting.changed(turn)
  }
}

/** Text of other protocols has come another way than a body of `/v1`, whose schema these are. */
function checked(given: AnswerBody): AnswerBody {
  const { data, error } = answerBody.safeParse(given)
  if (data) return data
  throw new RivuletError('validation_failed', 'Request validation failed', { details: detailsOf(error) })
}

/** Without the content, which belongs to the conversation. */
export function answered(task: TaskId, wait: WaitId, { action }: AnswerBody) {
  return { action: 'wait.answered', target: task, details: { wait, action } } as const
}

function unlessClosed(error: unknown): { turn: null } {
  if (error instanceof RivuletError && (error.code === 'already_answered' || error.code === 'wait_closed')) return { turn: null }
  throw error
}
