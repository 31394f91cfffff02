/** Closes waits with the responses of a client, for the dialects of other protocols. */
import { type AnswerBody, RivuletError, type TaskId, type WaitId } from '@rivulet/protocol'
import type { Tenant } from '../../store/connection/tenant.ts'
import type { TurnRow } from '../../store/rows.ts'
import { answerWait } from '../../store/waits/answer-wait.ts'
import type { Services } from '../services.ts'

export type WaitResponse = { wait: WaitId; answer: AnswerBody }

export function createAnswerWaits({ databaseFor, waiting }: Pick<Services, 'databaseFor' | 'waiting'>) {
  /** All of them, or none where one does not fit its wait. A wait that was closed meanwhile stays as it is. */
  return async function answerWaits(tenant: Tenant, task: TaskId, responses: readonly WaitResponse[]): Promise<void> {
    const changed = new Map<string, TurnRow>()
    await databaseFor(tenant).transaction(async tx => {
      for (const { wait, answer } of responses) {
        const { turn } = await answerWait(tx, tenant, task, wait, answer).catch(unlessClosed)
        if (turn) changed.set(turn.id, turn)
      }
    })
    for (const turn of changed.values()) await waiting.changed(turn)
  }
}

function unlessClosed(error: unknown): { turn: null } {
  if (error instanceof RivuletError && (error.code === 'already_answered' || error.code === 'wait_closed')) return { turn: null }
  throw error
}
