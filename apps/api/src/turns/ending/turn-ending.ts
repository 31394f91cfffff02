/**
 * How a turn ends: fold its log, commit, announce. A worker that is done ends its turn here, every other end is in `turn-canceling.ts`. Both fold the log, so
 * stored text is streamed text by construction, and a viewer that sees `turn.finished` can read the rows.
 */

import type { FinishBody } from '@rivulet/contract/internal'
import { backoffMs, digestOf, errorTable, isErrorCode } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { TurnRow } from '../../store/rows.ts'
import type { Outcome } from '../../store/turns/end-turn.ts'
import { type FinishResult, finishTurn, waysToEnd } from '../../store/turns/finish-turn.ts'
import { aboutTurn } from '../about-turn.ts'
import { createEndedTurns, loggedFailure } from './ended-turns.ts'
import { createTurnCanceling, type TurnEndingDeps } from './turn-canceling.ts'
import { closeTurn, foldWhole, joinsAndState, newMessages, type WholeFold } from './turn-fold.ts'

type WorkerOutcome = FinishBody['outcome']

type FinishRequest = { turn: TurnRow; epoch: number; claim: string; outcome: WorkerOutcome; appended: number; digest?: string }

/** `leavesWork`: this turn or the one behind it may wait in the outbox. */
type Finish = { result: FinishResult['result'] | 'gap'; leavesWork: boolean }

export type TurnEnding = ReturnType<typeof createTurnEnding>

export function createTurnEnding(deps: TurnEndingDeps) {
  const { db, reader, announcing, spilling, usage, logger, metrics } = deps
  const { tellRelatives, ...canceling } = createTurnCanceling(deps)
  const endedTurns = createEndedTurns(deps)
  const ways = waysToEnd(db)
  return { finish, ...canceling }

  /** The worker reports that it is done. `gap` when the log does not have all that it appended: then it has to reopen the log. */
  async function finish({ turn, epoch, claim, outcome: reported, appended, digest }: FinishRequest): Promise<Finish> {
    // Before its log is read, because a caller that does not hold the turn must learn nothing of it.
    if (turn.claim !== claim) return superseded(turn, epoch)
    const folded = await foldWhole(reader, turn, { epoch, appended })
    if (!folded) return { result: 'gap', leavesWork: false }
    const { state } = folded
    const outcome = trueOutcome(reported, folded)
    const end = outcomeOf(outcome)
    const closed = closeTurn(state, turn, end)
    const messages = newMessages(closed.state, turn)
    await usage.fold(turn.id, messages)
    if (failpoint) await failpoint('folded')
    const finished = await finishTurn(
      db,
      { turnId: turn.id, tenant: turn.tenant, epoch, canceling: false, claim },
      { outcome: end, ...joinsAndState(closed.state, turn), ...(await spilling.spill(turn.tenant, messages)), ...retryRule(outcome) },
      ways,
    )
    const about = aboutTurn(turn)
    switch (finished.result) {
      case 'committed':
        if (digest && digestOf(messages) !== digest) {
          metrics.digestMismatches.inc()
          logger.warn(about, 'worker and server folded the turn differently; the log is stored')
        }
        for (const one of [finished.turn, ...finished.joined]) endedTurns.note(one)
        if (failpoint) await failpoint('committed')
        await announcing.announceEnds([finished.turn, ...finished.joined], closed.events, finished.queued)
        await tellRelatives(finished.turn, finished.canceled)
        break
      case 'already':
        await announcing.announceOwed(finished.turn)
        break
      case 'retrying':
        metrics.retries.inc()
        logger.info(
          { ...about, error: loggedFailure(outcome.error, outcome.detail), runAt: finished.turn.runAt },
          'attempt failed; the turn will be retried',
        )
        break
      case 'superseded':
        return superseded(turn, epoch)
      default:
        finished satisfies never
    }
    return { result: finished.result, leavesWork: finished.result !== 'committed' || finished.queued.length > 0 }
  }

  function superseded(turn: TurnRow, epoch: number): Finish {
    metrics.fenced.inc({ write: 'finish' })
    logger.warn({ ...aboutTurn(turn), epoch }, 'a worker tried to finish a turn that it no longer holds')
    return { result: 'superseded', leavesWork: true }
  }
}

/** A turn is not completed if viewers have received output that cannot be stored. */
function trueOutcome(outcome: WorkerOutcome, { misplaced }: WholeFold): WorkerOutcome {
  if (misplaced === null || outcome.status !== 'completed') return outcome
  const message = `The worker sent output for message ${misplaced}, which cannot be stored: that message is closed, or is not the next one`
  return { ...outcome, status: 'failed', stopReason: 'error', error: { code: 'index_out_of_order', message } }
}

function outcomeOf({ status, stopReason, usage, error, detail }: WorkerOutcome): Outcome {
  const end = { status, stopReason: stopReason ?? (status === 'completed' ? 'stop' : 'error') } as const
  return { ...end, ...(usage && { usage }), ...(error && { error }), ...(detail !== undefined && { detail }) }
}

function retryRule({ error }: WorkerOutcome): { retryAfterMs?: (failures: number) => number } {
  const isFinal = error && isErrorCode(error.code) && !errorTable[error.code].retry
  return isFinal ? {} : { retryAfterMs: attemptDelayMs }
}

/** 1 s, 2 s, 4 s … at most 30 s, ± a fifth. */
function attemptDelayMs(failures: number): number {
  return backoffMs(failures, { firstMs: 1_000, maxMs: 30_000, jitter: [0.8, 1.2] })
}
