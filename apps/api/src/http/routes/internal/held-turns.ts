/** Which turns a worker may ask for: those within the reach of its key, and for most calls only those that it holds. */
import type { TaskId, TurnId } from '@rivulet/protocol'
import type { FastifyRequest } from 'fastify'
import { reachOf } from '../../../access/principal.ts'
import { turnsWithin } from '../../../store/access/reach.ts'
import { createBatcher } from '../../../store/connection/batcher.ts'
import type { Database } from '../../../store/connection/database.ts'
import { type Tenant, taskNotFound } from '../../../store/connection/tenant.ts'
import { findHeldTask, findTurns } from '../../../store/reads/turns.ts'
import type { TurnRow } from '../../../store/rows.ts'

/** The scope and the tags of every route of workers. */
export const config = { access: { scope: 'worker' } } as const
export const tags = ['internal']

/** Turns that are looked for in one question. */
const maxFound = 100

export type HeldTurns = ReturnType<typeof createHeldTurns>

export function createHeldTurns(db: Database) {
  const find = createBatcher(maxFound, (ids: readonly string[]) => findTurns(db, ids))
  return { reaches, findReached, requireHeldTask }

  /** Whether the caller's key is for this turn. If it is not, the route returns what it returns for a turn that does not exist. */
  async function reaches({ principal, log }: Pick<FastifyRequest, 'principal' | 'log'>, turnId: TurnId): Promise<boolean> {
    const isWithin = (await turnsWithin(db, reachOf(principal), [turnId])).has(turnId)
    if (!isWithin) log.warn({ key: principal.key, turnId }, 'a worker requested a turn that its key does not allow')
    return isWithin
  }

  async function findReached(request: FastifyRequest, turnId: TurnId): Promise<TurnRow | null> {
    return (await reaches(request, turnId)) ? ((await find(turnId)) ?? null) : null
  }

  async function requireHeldTask(request: FastifyRequest, turnId: TurnId, claimId: string): Promise<{ task: TaskId; tenant: Tenant }> {
    const held = (await reaches(request, turnId)) && (await findHeldTask(db, turnId, claimId))
    if (!held) throw taskNotFound()
    return held
  }
}
