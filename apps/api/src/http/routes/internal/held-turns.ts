/** Which turns a worker may ask for: those within the reach of its key, and for most calls only those that it holds. */
import { type Holding, storeFileHeaders } from '@rivulet/contract/internal'
import { RivuletError, type TaskId, type TurnId } from '@rivulet/protocol'
import type { FastifyRequest } from 'fastify'
import { isInstallations, reachOf } from '../../../access/principal.ts'
import { turnsWithin } from '../../../store/access/reach.ts'
import { createBatcher } from '../../../store/connection/batcher.ts'
import type { Database } from '../../../store/connection/database.ts'
import { type Tenant, taskNotFound } from '../../../store/connection/tenant.ts'
import { findHeldTask, findHeldTurns, findTurns } from '../../../store/reads/turns.ts'
import type { TurnRow } from '../../../store/rows.ts'
import { hasClaimed } from '../../../store/turns/claim-turn.ts'

/** Turns that are looked for in one question. */
const maxFound = 100

/** Holdings that a process remembers. */
const maxKnown = 50_000

export type Caller = Pick<FastifyRequest, 'principal' | 'log'>
/** A call of a worker, whichever route it came by. */
export type Call<B> = Caller & { body: B }

export type HeldTurns = ReturnType<typeof createHeldTurns>

export function createHeldTurns(db: Database) {
  const find = createBatcher(maxFound, (ids: readonly string[]) => findTurns(db, ids))
  const known = new Map<string, { task: TaskId; epoch: number }>()
  return { reaches, reachedOf, findReached, requireHeldTask, requireHolder, heldTasks }

  /** Whether the caller's key is for this turn. If it is not, the route returns what it returns for a turn that does not exist. */
  async function reaches({ principal, log }: Caller, turnId: TurnId): Promise<boolean> {
    return (await reachedOf({ principal, log }, [turnId])).has(turnId)
  }

  async function reachedOf({ principal, log }: Caller, ids: readonly TurnId[]): Promise<ReadonlySet<string>> {
    const within = await turnsWithin(db, reachOf(principal), ids)
    for (const turnId of ids)
      if (!within.has(turnId)) log.warn({ key: principal.key, turnId }, 'a worker requested a turn that its key does not allow')
    return within
  }

  async function findReached(request: Caller, turnId: TurnId): Promise<TurnRow | null> {
    return (await reaches(request, turnId)) ? ((await find(turnId)) ?? null) : null
  }

  async function requireHeldTask(request: Caller, turnId: TurnId, claimId: string): Promise<{ task: TaskId; tenant: Tenant }> {
    const held = (await reaches(request, turnId)) && (await findHeldTask(db, turnId, claimId))
    if (!held) throw taskNotFound()
    return held
  }

  /**
   * Before a body above `maxBytes` is read: the headers must name a turn that the caller holds or has held, because the body may be about other turns,
   * too. The body is checked as any other. Keys for all tenants may send it without the headers, because their workers may be of an older version.
   */
  function requireHolder(maxBytes: number) {
    return async (request: FastifyRequest): Promise<void> => {
      // A body in chunks does not declare its length.
      const length = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY)
      if (length <= maxBytes || isInstallations(request.principal)) return
      const head = storeFileHeaders.safeParse(request.headers)
      const needed = `A body above ${maxBytes} bytes needs X-Turn-Id and X-Claim-Id of a turn that the worker holds`
      if (!head.success) throw new RivuletError('body_too_large', needed)
      const { 'x-turn-id': turnId, 'x-claim-id': claimId } = head.data
      if (!(await reaches(request, turnId)) || !(await hasClaimed(db, turnId, claimId))) throw taskNotFound()
    }
  }

  /**
   * The task of each of these turns, or null if the caller does not hold it. Postgres is asked once for a claim and an epoch: from then on the epoch
   * of the log rejects a worker that has lost the turn, as it does a worker with Redis.
   */
  async function heldTasks(request: Caller, holdings: readonly Holding[]): Promise<(TaskId | null)[]> {
    const unknown = holdings.filter(holding => knownTask(request, holding) === null).map(({ turnId }) => turnId)
    const reached = unknown.length > 0 ? [...(await reachedOf(request, unknown))] : []
    const found = reached.length > 0 ? await findHeldTurns(db, reached) : []
    for (const { id, claim, task, epoch } of found)
      if (claim !== null && epoch !== null) known.set(nameOf(request, { turnId: id, claimId: claim }), { task, epoch })
    const tasks = holdings.map(holding => knownTask(request, holding))
    for (const name of known.keys()) {
      if (known.size <= maxKnown) break
      known.delete(name)
    }
    return tasks
  }

  function knownTask(request: Caller, holding: Holding): TaskId | null {
    const held = known.get(nameOf(request, holding))
    return held && holding.epoch <= held.epoch ? held.task : null
  }
}

function nameOf({ principal }: Caller, { turnId, claimId }: Pick<Holding, 'turnId' | 'claimId'>): string {
  return `${principal.key} ${turnId} ${claimId}`
}
