/**
 * Frees the worker of a turn that waits: what the turn has emitted is stored, its lease is released and the epoch is raised, in one transaction. The
 * turn keeps its claim, so that a worker that lost the reply can repeat the call and get the same reply.
 */
import type { Message, State } from '@rivulet/protocol'
import { and, eq, sql } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { everyone } from '../connection/tenant.ts'
import { addReferences, filesIn } from '../files/file-references.ts'
import { findFiles } from '../files/file-rows.ts'
import { type TurnRow, toMessageRow } from '../rows.ts'
import { messages, turns } from '../schema.ts'
import { storeState } from '../states/task-state.ts'
import { lockTask, raiseEpoch } from '../tasks/held-task.ts'
import { confirmJoins, type Joins } from '../turns/join-turns.ts'
import { isHeldUnder } from '../turns/leases.ts'
import { hasOpenWait, noteChange } from './wait-rows.ts'

/** `answered`: no wait of the turn is open any more, so it goes on where it is. `turn` is given where this call has found that. */
export type Parked =
  | { result: 'parked'; turn: TurnRow; epoch: number }
  | { result: 'answered'; turn: TurnRow | null }
  | { result: 'already' | 'superseded' }

type Parking = { epoch: number; claimId: string; messages: readonly Message[]; joins: Joins; state: State | null; keptTo: number }

export async function parkTurn(db: Database, turn: TurnRow, parking: Parking): Promise<Parked> {
  const { epoch, claimId, messages: said, joins, state, keptTo } = parking
  return db.transaction(async tx => {
    await lockTask(tx, everyone, turn.task)
    const [current] = await tx.select().from(turns).where(eq(turns.id, turn.id))
    if (current?.claim !== claimId || current.epoch !== epoch) return { result: 'superseded' }
    if (current.status === 'waiting' || current.resumed === 'queued') return { result: 'already' }
    if (current.status !== 'running' || current.canceling) return { result: 'superseded' }
    if (!hasOpenWait(current)) return { result: 'answered', turn: null }
    // The end of a child may have answered a wait, and not have woken the turn yet. One that ends after this finds an open wait in the turn's row.
    const noted = await noteChange(tx, turn.id)
    if (!hasOpenWait(noted)) {
      await raiseEpoch(tx, turn.task, 'running')
      return { result: 'answered', turn: noted }
    }
    if (said.length > 0) await tx.insert(messages).values(said.map(message => toMessageRow(message, turn.tenant)))
    await storeState(tx, current, state)
    await confirmJoins(tx, turn, joins)
    // Only those that are there: a park cannot be rejected for what the agent has sent.
    const known = await findFiles(tx, turn.tenant, filesIn(said.map(({ content }) => content)))
    await addReferences(
      tx,
      { id: turn.task, tenant: turn.tenant },
      known.map(({ id }) => id),
    )
    const [parked] = await tx
      .update(turns)
      .set({ status: 'waiting', keptTo, worker: null, leaseUntil: null, parkedAt: sql`now()` })
      .where(and(eq(turns.id, turn.id), isHeldUnder({ turnId: turn.id, epoch, claimId })))
      .returning()
    const task = await raiseEpoch(tx, turn.task, 'waiting')
    return { result: 'parked', turn: parked ?? noted, epoch: task.epoch }
  })
}
