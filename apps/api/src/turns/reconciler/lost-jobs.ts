/** Finds the turns whose jobs are not in the queue, or wait there for a time that has come. */
import type { DispatchName, TurnQueue } from '@rivulet/broker'
import type { Database } from '../../store/connection/database.ts'
import { dispatchedTurns, redispatch, type SentTurn } from '../../store/tasks/outbox.ts'
import { aboutTurn } from '../about-turn.ts'
import type { Repairs } from './repairs.ts'

const batchSize = 500

export function createLostJobs({ db, queue, reconcileMs }: { db: Database; queue: TurnQueue; reconcileMs: number }, { repaired }: Repairs) {
  return { find }

  async function find(): Promise<void> {
    for (;;) {
      const due = await dispatchedTurns(db, { dueForMs: reconcileMs, limit: batchSize })
      const found = await queue.find(due)
      const lost = due.filter((_, position) => !found[position])
      await endDelays(due.filter((turn, position) => found[position] && !turn.hasPinnedVersion))
      const turns = lost.map(({ turnId }) => turnId)
      if (lost.length > 0) await redispatch(db, turns)
      for (const turn of lost) repaired('job', aboutTurn(turn))
      // Turns whose jobs are there would be found again: only a page of nothing but losses promises more.
      if (lost.length < batchSize) return
    }
  }

  /** By Postgres these are due. A job that is delayed all the same, and not for its version, goes by the clock of a worker that is behind. */
  async function endDelays(due: readonly (DispatchName & SentTurn)[]): Promise<void> {
    const wereDelayed = await queue.endDelay(due)
    for (const [i, turn] of due.entries()) if (wereDelayed[i]) repaired('job', aboutTurn(turn))
  }
}
