/**
 * How a turn ends: fold its log, commit, announce. A worker that is done, a cancel, a passed deadline and a worker that died too often all come
 * through here, so stored text is streamed text by construction, and a viewer that sees `turn.finished` can read the rows.
 */
import type { LogAnnouncer, LogReader } from '@rivulet/broker'
import {
  applyEvent,
  backoffMs,
  type CancelScope,
  closingEvents,
  closingStatus,
  digestOf,
  epochOf,
  errorTable,
  type Failure,
  type FinishBody,
  formatCursor,
  isErrorCode,
  type Message,
  messagesOf,
  seqOf,
  type TaskId,
  type TaskState,
  type TurnFailure,
} from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { SQL } from 'drizzle-orm'
import type { FastifyBaseLogger } from 'fastify'
import type { Spilling } from '../files/spill.ts'
import { foldFrom } from '../log/log-fold.ts'
import type { Database, DatabaseHandle, Transaction } from '../store/connection/database.ts'
import type { Tenant } from '../store/connection/tenant.ts'
import type { TurnRow } from '../store/rows.ts'
import {
  beginCancel,
  beginInterrupt,
  beginTurnCancel,
  type CancelBegun,
  endUnstarted,
  type ForcedOutcome,
  type Seized,
  seizeTurn,
} from '../store/tasks/cancel-task.ts'
import type { EndedTurn, Outcome } from '../store/turns/end-turn.ts'
import { type FinishResult, finishTurn, type TurnEnd } from '../store/turns/finish-turn.ts'
import type { Joins } from '../store/turns/join-turns.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { aboutTurn } from './about-turn.ts'
import type { ChildTasks } from './child-tasks.ts'
import type { TurnAnnouncing } from './turn-announcing.ts'
import { closingEvent, type KeyedEvent } from './turn-events.ts'
import type { TurnUsage } from './turn-usage.ts'

export type WorkerOutcome = FinishBody['outcome']

export type FinishRequest = { turn: TurnRow; epoch: number; claim: string; outcome: WorkerOutcome; appended: number; digest?: string }

/** Who wants a cancel: a call, an input that interrupts, the end of the parent, or the reconciler for a caller that is gone. */
export type Canceler = 'call' | 'interrupt' | 'parent' | 'reconciler'

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

/** `leavesWork`: this turn or the one behind it may wait in the outbox. */
type Finish = { result: FinishResult['result'] | 'gap'; leavesWork: boolean }

export type TurnEnding = ReturnType<typeof createTurnEnding>

export function createTurnEnding({
  db,
  databaseFor,
  reader,
  announcer,
  announcing,
  childTasks,
  spilling,
  usage,
  logger,
  metrics,
}: TurnEndingDeps) {
  return { finish, cancel, cancelTurn, beginInterrupt: interrupt, completeInterrupt, completeCancel, end }

  /** The worker says that it is done. `gap` when the log does not have all that it appended: then it has to reopen the log. */
  async function finish({ turn, epoch, claim, outcome, appended, digest }: FinishRequest): Promise<Finish> {
    // Before its log is read, because a caller that does not hold the turn must learn nothing of it.
    if (turn.claim !== claim) return superseded(turn, epoch)
    const state = await foldWhole(reader, turn, { epoch, appended })
    if (!state) return { result: 'gap', leavesWork: false }
    const end = outcomeOf(outcome)
    const closed = close(state, turn, end)
    const messages = newMessages(closed.state, turn)
    await usage.fold(turn.id, messages)
    if (failpoint) await failpoint('folded')
    const finished = await finishTurn(
      db,
      { turnId: turn.id, tenant: turn.tenant, epoch, canceling: false, claim },
      { outcome: end, ...tellings(closed.state, turn), ...(await spilling.spill(turn.tenant, messages)), ...retryRule(outcome) },
    )
    const about = aboutTurn(turn)
    switch (finished.result) {
      case 'committed':
        if (digest && digestOf(messages) !== digest) {
          metrics.digestMismatches.inc()
          logger.warn(about, 'worker and server folded the turn differently; the log is stored')
        }
        for (const one of [finished.turn, ...finished.joined]) ended(one)
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
          { ...about, error: logged(outcome.error, outcome.detail), runAt: finished.turn.runAt },
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

  /** Ends every turn of a task that has not ended, or only the one that has begun. */
  async function cancel(
    tenant: Tenant,
    task: TaskId,
    { reason, scope = 'all' }: { reason?: string | undefined; scope?: CancelScope } = {},
  ): Promise<void> {
    const outcome = canceled(reason)
    // What is begun has to be completed: with Redis away nothing is changed.
    await announcer.ping()
    const begin = (tx: Transaction) =>
      scope === 'all' ? beginCancel(tx, tenant, task, outcome) : beginTurnCancel(tx, tenant, task, null, outcome)
    await complete(await databaseFor(tenant).transaction(begin), 'call')
  }

  /** Ends one turn, if it has not ended. */
  async function cancelTurn(tenant: Tenant, task: TaskId, turnNumber: number): Promise<void> {
    await announcer.ping()
    const begun = databaseFor(tenant).transaction(tx => beginTurnCancel(tx, tenant, task, turnNumber, canceled()))
    await complete(await begun, 'call')
  }

  /** The first step of a cancel, in the transaction that also accepts the new turn. `keepsQueued`: the inputs that wait are merged with it. */
  async function interrupt(tx: Transaction, tenant: Tenant, task: TaskId, keepsQueued = false): Promise<CancelBegun> {
    await announcer.ping()
    const begin = keepsQueued ? beginInterrupt : beginCancel
    return begin(tx, tenant, task, canceled('interrupted'))
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
    for (const turn of waiting) ended(turn, by)
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
      ended(unstarted.turn)
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
    const closed = close(state, turn, outcome)
    const holding = { turnId: turn.id, tenant: turn.tenant, epoch: turn.epoch, canceling: true }
    const messages = newMessages(closed.state, turn)
    await usage.fold(turn.id, messages)
    const spilled = await spilling.spill(turn.tenant, messages)
    const finished = await finishTurn(db, holding, { outcome, ...tellings(closed.state, turn), ...spilled })
    const isOurs = finished.result === 'committed'
    if (isOurs) for (const one of [finished.turn, ...finished.joined]) ended(one, by)
    if (isOurs) await announcing.announceEnds([finished.turn, ...finished.joined, ...alsoEnded], closed.events, finished.queued)
    else await announcing.announceEnds(alsoEnded, [])
    if (isOurs) await tellRelatives(finished.turn, finished.canceled)
    return isOurs
  }

  /** One line for each turn, with all that is asked for first when one took long. */
  function ended(turn: EndedTurn, by?: Canceler): void {
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
    const failure = status === 'canceled' ? error && { code: error.code } : logged(error, errorDetail)
    const tries = { ...(failures > 0 && { failures }), ...(deaths > 0 && { deaths }) }
    logger.info({ ...aboutTurn(turn), agent: turn.agent, status, ...times, ...tries, by, error: failure ?? undefined }, 'turn ended')
  }
}

/** The log is the operator's: it has what was thrown, too. */
function logged(error: Failure | null | undefined, detail: string | null | undefined): TurnFailure | undefined {
  return error ? { ...error, ...(typeof detail === 'string' && { detail }) } : undefined
}

function between(from: Date, to: Date): number {
  return to.getTime() - from.getTime()
}

/** Closes what the turn has left open. */
function close(state: TaskState, turn: TurnRow, outcome: Outcome): { state: TaskState; events: KeyedEvent[] } {
  const { error } = outcome
  const common = { task: turn.task, turn: turn.number, attempt: turn.attempt, at: Date.now() }
  const how = { ...common, status: closingStatus(outcome), ...(error && { error }) }
  const events = closingEvents(state, how)
  const closed = events.reduce(
    (before, event) => applyEvent(before, event, formatCursor(epochOf(before.cursor), seqOf(before.cursor) + 1)),
    state,
  )
  return { state: closed, events: events.map(event => closingEvent(turn, event)) }
}

/** The inputs are stored since the first claim, and what a park has kept since then. */
export function newMessages(state: TaskState, { firstIndex, keptTo }: Pick<TurnRow, 'firstIndex' | 'keptTo'>): Message[] {
  return messagesOf(state).filter(({ index }) => index >= (keptTo ?? firstIndex ?? 0))
}

function tellings(state: TaskState, turn: TurnRow): Pick<TurnEnd, 'joins' | 'state'> {
  return { joins: joinsIn(state, turn), state: state.agentState }
}

/** The turns whose inputs are among the messages of this one. */
export function joinsIn(state: TaskState, { number }: Pick<TurnRow, 'number'>): Joins {
  return new Map(
    state.turns.flatMap(turn => (turn.joinedTo === number && turn.joinIndex !== undefined ? [[turn.number, turn.joinIndex]] : [])),
  )
}

/** What a worker has emitted under its epoch. Null when the log does not have all that it appended. */
export async function foldWhole(
  reader: LogReader,
  { task, keptTo }: Pick<TurnRow, 'task' | 'keptTo'>,
  { epoch, appended }: { epoch: number; appended: number },
): Promise<TaskState | null> {
  const { state, isWhole } = await foldFrom(reader, task, epoch, keptTo)
  // Asked after the fold: a log that was lost before or meanwhile, and looked like one that says nothing, shows now.
  const log = await reader.state(task)
  const isShort = !log || log.isStale || log.epoch < epoch || (log.epoch === epoch && log.number < appended)
  return isWhole && !isShort ? state : null
}

function outcomeOf({ status, stopReason, usage, error, detail }: WorkerOutcome): Outcome {
  const end = { status, stopReason: stopReason ?? (status === 'completed' ? 'stop' : 'error') } as const
  return { ...end, ...(usage && { usage }), ...(error && { error }), ...(detail !== undefined && { detail }) }
}

function canceled(reason?: string): ForcedOutcome {
  return { status: 'canceled', stopReason: 'aborted', ...(reason !== undefined && { error: { code: 'canceled', message: reason } }) }
}

function retryRule({ error }: WorkerOutcome): { retryAfterMs?: (failures: number) => number } {
  const isFinal = error && isErrorCode(error.code) && !errorTable[error.code].retry
  return isFinal ? {} : { retryAfterMs: attemptDelayMs }
}

/** 1 s, 2 s, 4 s … at most 30 s, ± a fifth. */
function attemptDelayMs(failures: number): number {
  return backoffMs(failures, { firstMs: 1_000, maxMs: 30_000, jitter: [0.8, 1.2] })
}
