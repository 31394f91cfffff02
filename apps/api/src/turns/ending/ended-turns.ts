/** Counts and logs the turns that have ended: one line for each turn, with the times that explain a slow one. */
import type { Failure, TurnFailure } from '@rivulet/protocol'
import type { FastifyBaseLogger } from 'fastify'
import type { EndedTurn } from '../../store/turns/end-turn.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { aboutTurn } from '../about-turn.ts'

/** The origin of a cancel: a call, an input that interrupts, the end of the parent, or the reconciler for a caller that is gone. */
export type Canceler = 'call' | 'interrupt' | 'parent' | 'reconciler'

export function createEndedTurns({ logger, metrics }: { logger: FastifyBaseLogger; metrics: Metrics }) {
  return { note }

  function note(turn: EndedTurn, by?: Canceler): void {
    const { status, attempt, deaths, failures, queuedAt, startedAt, finishedAt, error, errorDetail } = turn
    const agent = metrics.agentLabel(turn.agent)
    metrics.turns.inc({ status, agent })
    if (by && status === 'canceled') metrics.cancels.inc({ by })
    if (turn.joinedTo !== null && turn.joins) metrics.joins.inc({ how: turn.joins })
    const waitedMs = startedAt && between(queuedAt, startedAt)
    const ranMs = startedAt && finishedAt && between(startedAt, finishedAt)
    if (ranMs !== null) metrics.turnRun.observe({ agent, status }, ranMs / 1_000)
    if (ranMs !== null) metrics.turnAttempts.observe({ agent }, attempt)
    const times = { ...(waitedMs !== null && { waitedMs }), ...(ranMs !== null && { ranMs }) }
    // The reason of a cancel is private to the caller, so it is not logged.
    const failure = status === 'canceled' ? error && { code: error.code } : loggedFailure(error, errorDetail)
    const tries = { ...(failures > 0 && { failures }), ...(deaths > 0 && { deaths }) }
    logger.info({ ...aboutTurn(turn), agent: turn.agent, status, ...times, ...tries, by, error: failure ?? undefined }, 'turn ended')
  }
}

/** The log is the operator's: it has what was thrown, too. */
export function loggedFailure(error: Failure | null | undefined, detail: string | null | undefined): TurnFailure | undefined {
  return error ? { ...error, ...(typeof detail === 'string' && { detail }) } : undefined
}

function between(from: Date, to: Date): number {
  return to.getTime() - from.getTime()
}
