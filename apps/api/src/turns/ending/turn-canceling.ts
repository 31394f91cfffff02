/**
 * Every end that is not the worker's own: a cancel, an interrupt, a passed deadline, a worker that died too often. The turn is taken from its worker, its
 * log is fenced and folded, and then the end is committed and announced.
 *
 * What has begun is completed by the reconciler if its process dies.
 */
import type { LogAnnouncer, LogReader } from '@rivulet/broker'
import type { CancelScope } from '@rivulet/contract/tasks'
import type { TaskId } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { SQL } from 'drizzle-orm'
import type { FastifyBaseLogger } from 'fastify'
import type { Spilling } from '../../files/spill.ts'
import { foldFrom } from '../../log/log-fold.ts'
import type { AuditNote } from '../../store/access/audit.ts'
import type { Database, DatabaseHandle, Transaction } from '../../store/connection/database.ts'
import type { Readable } from '../../store/connection/tenant.ts'
import type { TurnRow } from '../../store/rows.ts'
import {
  beginCancel,
  beginInterrupt,
  beginTurnCancel,
  type CancelBegun,
  endUnstarted,
  type ForcedOutcome,
  type Seized,
  seizeTurn,
} from '../../store/tasks/cancel-task.ts'
import { taskTransaction } from '../../store/tasks/task-line.ts'
import type { EndedTurn } from '../../store/turns/end-turn.ts'
import { finishTurn } from '../../store/turns/finish-turn.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { ChildTasks } from '../child-tasks.ts'
import type { TurnAnnouncing } from '../turn-announcing.ts'
import type { TurnUsage } from '../turn-usage.ts'
import { type Canceler, createEndedTurns } from './ended-turns.ts'
import { closeTurn, joinsAndState, newMessages } from './turn-fold.ts'

export type TurnEndingDeps = {
  /** Whatever is begun is completed for every tenant alike. */
  db: Database
  databaseFor: DatabaseHandle['databaseFor']
  reader: LogReader
  announcer: LogAnnouncer
  announcing: TurnAnnouncing
  childTasks: ChildTasks
  spilling: Spilling
  usage: TurnUsage
  logger: FastifyBaseLogger
  metrics: Metrics
}

export function createTurnCanceling(deps: TurnEndingDeps) {
  const { db, databaseFor, reader, announcer, announcing, childTasks, spilling, usage, logger } = deps
  const endedTurns = createEndedTurns(deps)
  return { cancel, cancelTurn, beginInterrupt: interrupt, completeInterrupt, completeCancel, end, tellRelatives }

  /** Ends every turn of a task that has not ended, or only the one that has begun. */
  async function cancel(
    caller: Readable,
    task: TaskId,
    { reason, scope = 'all' }: { reason?: string | undefined; scope?: CancelScope },
    note: AuditNote,
  ): Promise<void> {
    const outcome = canceled(reason)
    // What is begun has to be completed: with Redis away nothing is changed.
    await announcer.ping()
    const begin = (tx: Transaction) =>
      scope === 'all' ? beginCancel(tx, caller, task, outcome) : beginTurnCancel(tx, caller, task, null, outcome)
    await complete(await taskTransaction(databaseFor(caller.tenant), task, async tx => noted(tx, await begin(tx), note)), 'call')
  }

  /** Ends one turn, if it has not ended. */
  async function cancelTurn(caller: Readable, task: TaskId, turnNumber: number, note: AuditNote): Promise<void> {
    await announcer.ping()
    const begin = (tx: Transaction) => beginTurnCancel(tx, caller, task, turnNumber, canceled())
    await complete(await taskTransaction(databaseFor(caller.tenant), task, async tx => noted(tx, await begin(tx), note)), 'call')
  }

  /** A cancel that finds nothing to cancel changes nothing, so it has no entry in the audit log. */
  async function noted(tx: Transaction, begun: CancelBegun, note: AuditNote): Promise<CancelBegun> {
    if (begun.seized || begun.ended.length > 0) await note(tx)
    return begun
  }

  /** The first step of a cancel, in the transaction that also accepts the new turn. `keepsQueued`: the inputs that wait are merged with it. */
  async function interrupt(tx: Transaction, caller: Readable, task: TaskId, note: AuditNote, keepsQueued = false): Promise<CancelBegun> {
    await announcer.ping()
    const begin = keepsQueued ? beginInterrupt : beginCancel
    return noted(tx, await begin(tx, caller, task, canceled('interrupted')), note)
  }

  /** The new turn is accepted already: what cannot be completed now is left to the reconciler. */
  async function completeInterrupt(begun: CancelBegun): Promise<void> {
    await complete(begun, 'interrupt').catch(error => {
      logger.warn(
        { task: begun.task, turn: begun.seized?.claimed.turn.number, err: error },
        'cancel interrupted; the reconciler will complete it',
      )
    })
  }

  /** A cancel, or another end, that has lost its caller. It was decided when it began. */
  async function completeCancel(turn: TurnRow): Promise<boolean> {
    const seized = await seizeTurn(db, turn, canceled())
    return seized !== null && endSeized(seized, 'reconciler')
  }

  async function complete({ seized, ended: waiting, children }: CancelBegun, by: Canceler): Promise<void> {
    for (const turn of waiting) endedTurns.note(turn, by)
    if (seized) await endSeized(seized, by, waiting)
    else await announcing.announceEnds(waiting, [])
    await tellRelatives(seized ? undefined : waiting.at(-1), children)
  }

  /** After an end: completes the cancels of the children, and lets a parent go on. What fails is left to the reconciler. */
  async function tellRelatives(turn: EndedTurn | undefined, canceled: readonly CancelBegun[]): Promise<void> {
    const work = [
      ...canceled.map(begun => () => complete(begun, 'parent')),
      ...(turn && turn.parent !== null ? [() => childTasks.ended(turn.task)] : []),
    ]
    for (const each of work)
      await each().catch(error =>
        logger.warn({ task: turn?.task, err: error }, 'could not notify a parent or a child; the reconciler retries'),
      )
  }

  /** The server ends one turn by itself, if its reason still holds. */
  async function end(turn: TurnRow, outcome: ForcedOutcome, reason?: SQL): Promise<boolean> {
    if (turn.firstIndex === null) {
      const unstarted = await endUnstarted(db, turn, outcome)
      if (!unstarted) return false
      endedTurns.note(unstarted.turn)
      await announcing.announceEnds([unstarted.turn], [], unstarted.queued)
      await tellRelatives(unstarted.turn, [])
      return true
    }
    // What is begun has to be completed: with Redis away nothing is changed.
    await announcer.ping()
    const seized = await seizeTurn(db, turn, outcome, reason)
    return seized !== null && endSeized(seized)
  }

  /** Fence, then fold: nothing can be added to what is committed. */
  async function endSeized({ claimed, fence, outcome }: Seized, by?: Canceler, alsoEnded: TurnRow[] = []): Promise<boolean> {
    const { turn } = claimed
    if (failpoint) await failpoint('seized')
    await announcing.fence(claimed, fence)
    if (failpoint) await failpoint('fenced')
    if (turn.worker) announcer.tellWorker(turn.worker, turn.id).catch(() => {})
    const { state } = await foldFrom(reader, turn.task, turn.epoch, turn.keptTo)
    const closed = closeTurn(state, turn, outcome)
    const holding = { turnId: turn.id, tenant: turn.tenant, epoch: turn.epoch, canceling: true }
    const messages = newMessages(closed.state, turn)
    await usage.fold(turn.id, messages)
    const spilled = await spilling.spill(turn.tenant, messages)
    const finished = await finishTurn(db, holding, { outcome, ...joinsAndState(closed.state, turn), ...spilled })
    const isOurs = finished.result === 'committed'
    if (isOurs) for (const one of [finished.turn, ...finished.joined]) endedTurns.note(one, by)
    if (isOurs) await announcing.announceEnds([finished.turn, ...finished.joined, ...alsoEnded], closed.events, finished.queued)
    else await announcing.announceEnds(alsoEnded, [])
    if (isOurs) await tellRelatives(finished.turn, finished.canceled)
    return isOurs
  }
}

function canceled(reason?: string): ForcedOutcome {
  return { status: 'canceled', stopReason: 'aborted', ...(reason !== undefined && { error: { code: 'canceled', message: reason } }) }
}
