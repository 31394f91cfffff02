/**
 * What the server says in the logs: that a turn is queued, that it has begun, that it has ended. Always after the commit, and each once: entries
 * are keyed: the first process writes an entry, and every later one finds it written.
 *
 * An announcement that could not be made is owed: the next claim, the reconciler or the next end of a turn makes it.
 */
import type { LogAnnouncer, LogReader } from '@rivulet/broker'
import { messagesOf } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyBaseLogger } from 'fastify'
import { foldFrom } from '../log/log-fold.ts'
import { createBatcher } from '../store/connection/batcher.ts'
import type { Database } from '../store/connection/database.ts'
import { turnMessages } from '../store/reads/read.ts'
import type { TurnRow } from '../store/rows.ts'
import { markAnnounced, raiseIdleTask, unannouncedTurns } from '../store/turns/announcements.ts'
import type { Claimed } from '../store/turns/claimed.ts'
import { aboutTurn } from './about-turn.ts'
import { finishedEvent, type KeyedEvent, queuedEvent, startedEvent, storedClosing } from './turn-events.ts'

const maxNoted = 100

export type TurnAnnouncingDeps = { db: Database; reader: LogReader; announcer: LogAnnouncer; logger: FastifyBaseLogger }

export type TurnAnnouncing = ReturnType<typeof createTurnAnnouncing>

export function createTurnAnnouncing({ db, reader, announcer, logger }: TurnAnnouncingDeps) {
  // Turns that end together are noted in one statement.
  const noteAnnounced = createBatcher<TurnRow, void>(maxNoted, async ended => {
    await markAnnounced(db, ended)
    return []
  })
  return { announceStart, fence, announceQueued, announceEnds, announceOwed }

  /** Writes what is owed and `turn.started` under the claim's epoch. False when a newer epoch has begun. */
  async function announceStart(claimed: Claimed): Promise<boolean> {
    const { task, epoch } = claimed.turn
    const entries = await beginning(claimed)
    // Epoch 1 is the task's own, 2 its first claim: a log that is opened by it has missed nothing.
    const { answer } = await announcer.announce({ task, epoch, whole: epoch <= 2, running: true, entries })
    return answer === 'ok'
  }

  /**
   * Nothing more can be appended to what stands in the log. A claim that was overtaken has not said that its turn began, and no longer can;
   * a log that is fenced further on is as good.
   */
  async function fence(claimed: Claimed, epoch: number): Promise<void> {
    await announcer.announce({ task: claimed.turn.task, epoch, running: false, entries: await beginning(claimed) })
  }

  async function beginning(claimed: Claimed): Promise<KeyedEvent[]> {
    const closings = await Promise.all(claimed.owed.map(missingClosings))
    return [...closings.flat(), queuedEvent(claimed.turn), ...claimed.owed.map(finishedEvent), startedEvent(claimed)]
  }

  async function announceQueued(turn: TurnRow, isNew: boolean): Promise<void> {
    await owing(turn, async () => {
      const entries = [queuedEvent(turn)]
      if (!isNew) return say(turn.task, entries)
      const { answer } = await announcer.announce({ task: turn.task, epoch: 1, whole: true, running: false, entries })
      return answer === 'ok'
    })
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
      const entries = [...[...ended, ...others].map(queuedEvent), ...closings, ...ended.map(finishedEvent)]
      const said = await say(first.task, entries, false)
      if (failpoint) await failpoint('announced')
      if (said) await Promise.all(ended.map(noteAnnounced))
      return said
    })
  }

  /** Announces an end that is committed but may not stand in the log. */
  async function announceOwed(turn: TurnRow): Promise<boolean> {
    return announceEnds([turn], await missingClosings(turn))
  }

  /** The ends of messages that are stored but still open in the log. */
  async function missingClosings(turn: TurnRow): Promise<KeyedEvent[]> {
    if (turn.epoch === null) return []
    const { state } = await foldFrom(reader, turn.task, turn.epoch)
    const open = messagesOf(state).filter(message => message.turn === turn.number && message.status === 'streaming')
    if (open.length === 0) return []
    const stored = await turnMessages(db, turn.tenant, turn.task, turn.number)
    return open.flatMap(({ index }) => stored.filter(message => message.index === index).map(message => storedClosing(turn, message)))
  }

  /** An announcement that fails now is made later by another process; the caller's work is already committed. */
  async function owing(turn: TurnRow, work: () => Promise<boolean>): Promise<boolean> {
    try {
      if (await work()) return true
      logger.debug(aboutTurn(turn), 'the running turn will make the announcement')
    } catch (error) {
      logger.warn({ ...aboutTurn(turn), err: error }, 'the announcement failed; it will be retried')
    }
    return false
  }

  /** A log that is absent or from another life of Redis is raised first; where a turn is running, its worker will do that. */
  async function say(task: string, entries: KeyedEvent[], running?: boolean): Promise<boolean> {
    const announcement = { task, entries, ...(running !== undefined && { running }) }
    const { answer } = await announcer.announce(announcement)
    if (answer === 'ok') return true
    const epoch = await raiseIdleTask(db, task)
    if (epoch === null) return false
    return (await announcer.announce({ ...announcement, epoch, running: false })).answer === 'ok'
  }
}
