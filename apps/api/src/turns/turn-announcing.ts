/**
 * The events that the API appends to logs: of turns that are queued, start, join, wait, resume or end, of children, and of a state that changed between
 * two turns. It appends after the commit, and each event once, because entries are keyed. The next claim, the reconciler or the next end of a turn repeats an append that failed.
 * A log that is absent or stale is opened anew, under an epoch that no log had before. It begins with the turns whose end is in no log, and leaves those
 * before them to Postgres, so no log shows a turn as queued that has ended.
 */
import type { LogAnnouncer, LogReader } from '@rivulet/broker'
import { type Cursor, hasEnded, messagesOf, type TaskId, type TurnId } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyBaseLogger } from 'fastify'
import { foldFrom } from '../log/log-fold.ts'
import { markChildTold, owedChildren } from '../store/children/child-ends.ts'
import { createBatcher } from '../store/connection/batcher.ts'
import type { Database, Transaction } from '../store/connection/database.ts'
import { turnMessages } from '../store/reads/messages.ts'
import { findTurn } from '../store/reads/turns.ts'
import type { TurnRow } from '../store/rows.ts'
import { stateAround, tellOwedState } from '../store/states/task-state.ts'
import {
  type AnnouncedEnd,
  epochOfTask,
  isToldByItsEnd,
  markAnnounced,
  markWaitsTold,
  raiseIdleTask,
  unannouncedTurns,
  whileUnchanged,
} from '../store/turns/announcements.ts'
import type { Claimed } from '../store/turns/claimed.ts'
import { reopenTurn } from '../store/turns/reopen-turn.ts'
import { aboutTurn } from './about-turn.ts'
import {
  beginningOf,
  childEvents,
  finishedEvent,
  joinedEvents,
  type KeyedEvent,
  queuedEvents,
  retoldBeginning,
  stateEvent,
  storedClosing,
  waitEvents,
} from './turn-events.ts'

const maxNoted = 100

type TurnAnnouncingDeps = { db: Database; reader: LogReader; announcer: LogAnnouncer; logger: FastifyBaseLogger }

export type TurnAnnouncing = ReturnType<typeof createTurnAnnouncing>

export function createTurnAnnouncing({ db, reader, announcer, logger }: TurnAnnouncingDeps) {
  // Turns that end together are noted in one statement.
  const noteAnnounced = createBatcher<AnnouncedEnd, void>(maxNoted, async ends => {
    await markAnnounced(db, ends)
    return []
  })
  return { announceStart, fence, announceQueued, announceTaken, announceEnds, announceOwed, announceWaits, announceState, announceChildren }

  /**
   * Writes what is owed and `turn.started` under the claim's epoch. Returns the claim; under a higher epoch where the log had to be opened anew,
   * because the claim's own may have had a log that was lost. Null when the turn is no longer held by this claim.
   */
  async function announceStart(claimed: Claimed): Promise<Claimed | null> {
    const { task, epoch } = claimed.turn
    const { result } = await announcer.announce({ task, epoch, opens: false, running: true, entries: await beginning(claimed) })
    if (result === 'ok') return claimed
    return result === 'fenced' ? null : openForClaim(claimed)
  }

  async function openForClaim({ turn: { id, epoch, claim } }: Claimed): Promise<Claimed | null> {
    const raised = claim === null ? null : await reopenTurn(db, { turnId: id, epoch, claimId: claim })
    if (!raised) return null
    const opened = await open(raised.turn.task, raised.turn.epoch, raised)
    return opened === 'changed' ? openForClaim(raised) : opened && raised
  }

  /** Nothing more can be appended to what stands in the log. One that is absent, stale or fenced further on is as good. */
  async function fence(claimed: Claimed, epoch: number): Promise<void> {
    await announcer.announce({ task: claimed.turn.task, epoch, opens: false, running: false, entries: await beginning(claimed) })
  }

  async function beginning(claimed: Claimed): Promise<KeyedEvent[]> {
    const closings = await Promise.all(claimed.owed.map(missingClosings))
    return [
      ...[...claimed.owed, claimed.turn, ...claimed.joined].flatMap(queuedEvents),
      ...closings.flat(),
      ...claimed.owed.flatMap(turn => [...waitEvents(turn), finishedEvent(turn)]),
      ...beginningOf(claimed),
    ]
  }

  async function announceQueued(turn: TurnRow, isNew: boolean): Promise<void> {
    await owing(turn, async () => {
      const entries = await queuedInOrder([turn])
      if (!isNew) return (await write(turn.task, entries)) !== null
      // Epoch 1 is the task's own: a log that is opened by it has missed nothing.
      const { result } = await announcer.announce({ task: turn.task, epoch: 1, whole: true, running: false, entries })
      return result === 'ok'
    })
  }

  /**
   * Announces the turns that the running one takes as queued, because its worker appends next that they have joined it. A log that is absent is opened
   * anew by that worker, with both.
   */
  async function announceTaken(turnId: TurnId, taken: readonly number[]): Promise<void> {
    const turn = await findTurn(db, turnId)
    if (!turn) return
    const queued = (await unannouncedTurns(db, turn.task)).filter(({ number }) => taken.includes(number))
    await announcer.announce({ task: turn.task, entries: queued.flatMap(queuedEvents) })
  }

  /**
   * `behind` are the turns behind them, as of the commit; without it, they are looked for. Where the log knows of none, the end of a turn is the
   * end for its viewers.
   */
  async function announceEnds(ended: TurnRow[], closings: KeyedEvent[], behind?: TurnRow[]): Promise<boolean> {
    const [first] = ended
    if (!first) return false
    return owing(first, async () => {
      const others = behind ?? (await unannouncedTurns(db, first.task))
      // A turn can end before the process that accepted it has written `turn.queued`.
      const entries = [
        ...(await queuedInOrder([...ended, ...others])),
        ...closings,
        ...ended.flatMap(turn => [...waitEvents(turn), finishedEvent(turn)]),
      ]
      const cursor = await write(first.task, entries, false)
      if (failpoint) await failpoint('announced')
      if (cursor) await Promise.all(ended.map(({ id }) => noteAnnounced({ turnId: id, cursor })))
      if (cursor) await Promise.all(ended.filter(({ waits }) => waits !== null).map(turn => markWaitsTold(db, turn)))
      return cursor !== null
    })
  }

  /**
   * Announces what has become of a turn's waits. Of a turn that parked, the log is also closed, so that it expires and its worker can write no more.
   *
   * @param parkedUnder the epoch of the park; default: the task's
   */
  async function announceWaits(turn: TurnRow, parkedUnder?: number): Promise<boolean> {
    return owing(turn, async () => {
      const isTold = isToldByItsEnd(turn) || (turn.status === 'waiting' ? await closeParked(turn, parkedUnder) : await tellWaits(turn))
      if (isTold) await markWaitsTold(db, turn)
      return isTold
    })
  }

  async function tellWaits(turn: TurnRow): Promise<boolean> {
    return (await write(turn.task, [...queuedEvents(turn), ...waitEvents(turn)])) !== null
  }

  async function closeParked(turn: TurnRow, parkedUnder: number | undefined): Promise<boolean> {
    const { task } = turn
    const epoch = parkedUnder ?? (await epochOfTask(db, task))
    // The task was removed.
    if (epoch === null) return true
    const entries = [...queuedEvents(turn), ...waitEvents(turn)]
    const { result } = await announcer.announce({ task, epoch, opens: false, running: false, entries })
    // A newer epoch is that of a claim, or of a log that was opened anew: both have told the waits.
    return result === 'ok' || result === 'fenced' || (await openIdle(task)) !== null
  }

  /** Announces a change of a task's state between two turns. Where there is no log, viewers have the rows, and the next turn's start tells it. */
  async function announceState(task: TaskId): Promise<boolean> {
    try {
      return await tellOwedState(db, task, async state => {
        await announcer.announce({ task, entries: [stateEvent(task, state)] })
      })
    } catch (error) {
      logger.warn({ task, err: error }, 'the announcement failed; it will be retried')
      return false
    }
  }

  /** Announces the starts and ends of children of a task. Where there is no log, there is no viewer to tell. */
  async function announceChildren(task: TaskId): Promise<boolean> {
    try {
      const owed = await owedChildren(db, task)
      if (owed.length === 0) return false
      await announcer.announce({ task, entries: owed.flatMap(childEvents) })
      for (const child of owed) await markChildTold(db, child)
      return true
    } catch (error) {
      logger.warn({ task, err: error }, 'the announcement failed; it will be retried')
      return false
    }
  }

  /**
   * A turn that discards others comes behind the turns before it, in one append: other processes may not have announced those yet, and a turn that is queued
   * behind its discard would look kept.
   */
  async function queuedInOrder(announced: readonly TurnRow[]): Promise<KeyedEvent[]> {
    const [task] = announced.flatMap(({ task, discardsFrom }) => (discardsFrom === null ? [] : task))
    const last = Math.max(...announced.map(({ number }) => number))
    const before = task === undefined ? [] : (await unannouncedTurns(db, task)).filter(({ number }) => number < last)
    const turns = new Map([...before, ...announced].map(turn => [turn.number, turn]))
    return Array.from(turns.values())
      .sort((a, b) => a.number - b.number)
      .flatMap(queuedEvents)
  }

  /** Announces an end that is committed but may not stand in the log. */
  async function announceOwed(turn: TurnRow): Promise<boolean> {
    return announceEnds([turn], await missingClosings(turn))
  }

  /** The ends of messages that are stored but still open in the log. */
  async function missingClosings(turn: TurnRow): Promise<KeyedEvent[]> {
    if (turn.epoch === null) return []
    const { state } = await foldFrom(reader, turn.task, turn.epoch, turn.keptTo)
    const open = messagesOf(state).filter(message => message.turn === turn.number && message.status === 'streaming')
    if (open.length === 0) return []
    const stored = await turnMessages(db, turn.tenant, turn.task, turn.number)
    return open.flatMap(({ index }) => stored.filter(message => message.index === index).map(message => storedClosing(turn, message)))
  }

  /** An announcement that fails now is made later by another process; the caller's work is already committed. */
  async function owing(turn: TurnRow, work: () => Promise<boolean>): Promise<boolean> {
    try {
      if (await work()) return true
      logger.debug(aboutTurn(turn), 'the turn that runs or is being ended will make the announcement')
    } catch (error) {
      logger.warn({ ...aboutTurn(turn), err: error }, 'the announcement failed; it will be retried')
    }
    return false
  }

  /** The cursor behind the entries. Null where the log has to be opened anew and a turn runs or is being ended: then its worker, or who ends it, does that. */
  async function write(task: TaskId, entries: KeyedEvent[], running?: boolean): Promise<Cursor | null> {
    const { result, cursor } = await announcer.announce({ task, entries, ...(running !== undefined && { running }) })
    return result === 'ok' ? cursor : openIdle(task)
  }

  async function openIdle(task: TaskId): Promise<Cursor | null> {
    const epoch = await raiseIdleTask(db, task)
    const opened = epoch === null ? null : await open(task, epoch)
    return opened === 'changed' ? openIdle(task) : opened
  }

  /**
   * Opens a log anew, with every turn whose end no log has told, and with the start of the one that runs. Null when no turn is owed, because another
   * process has announced them meanwhile, and when a newer epoch has begun.
   */
  async function open(task: TaskId, epoch: number, started?: Claimed): Promise<Cursor | 'changed' | null> {
    const opened = await whileUnchanged(db, { task, epoch }, async (tx, unannounced) => {
      const [oldest] = unannounced
      if (!oldest) return { result: 'fenced' as const }
      const told = await Promise.all(unannounced.map(turn => retold(tx, turn, started)))
      const first = oldest.number
      // What an ended turn wrote is in Postgres alone.
      const whole = first === 1 && unannounced.every(({ status, firstIndex }) => !hasEnded(status) || firstIndex === null)
      const entries = told.flat()
      return announcer.announce({ task, epoch, whole, first, running: started !== undefined, entries })
    })
    if (!opened) return 'changed'
    return opened.result === 'ok' ? opened.cursor : null
  }

  /** A turn in a log that was opened anew. What the one that runs, or that parked, has stored is written again, because the log goes on from there. */
  async function retold(tx: Transaction, turn: TurnRow, started: Claimed | undefined): Promise<KeyedEvent[]> {
    const claimed = started?.turn.id === turn.id ? started.turn : null
    const { epoch, firstIndex } = claimed ?? turn
    if (hasEnded(turn.status)) return [...queuedEvents(turn), ...joinedEvents(turn), ...waitEvents(turn), finishedEvent(turn)]
    const hasBegun = epoch !== null && firstIndex !== null && (claimed !== null || turn.keptTo !== null)
    if (!hasBegun) return [...queuedEvents(turn), ...joinedEvents(turn)]
    const stored = await turnMessages(tx, turn.tenant, turn.task, turn.number)
    const state = await stateAround(tx, turn)
    return [...queuedEvents(turn), ...retoldBeginning({ ...turn, epoch, firstIndex }, stored, state), ...waitEvents(turn)]
  }
}
