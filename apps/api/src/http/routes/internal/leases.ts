/** How a worker keeps a turn, releases it, and ends it. */

import type { FinishBody, Holding, heartbeatBody, ReleaseBody } from '@rivulet/contract/internal'
import * as contract from '@rivulet/contract/internal'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { reachOf } from '../../../access/principal.ts'
import { turnsWithin } from '../../../store/access/reach.ts'
import { askTwice } from '../../../store/connection/database-errors.ts'
import { findTurn } from '../../../store/reads/turns.ts'
import { extendLeases, isHeldUnder, releaseTurn } from '../../../store/turns/leases.ts'
import { answeredTurns } from '../../../store/waits/held-waits.ts'
import { aboutTurn } from '../../../turns/about-turn.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import type { Call, Caller, HeldTurns } from './held-turns.ts'

type LeaseCalls = ReturnType<typeof createLeaseCalls>

export function leaseRoutes(scope: FastifyInstance, { heartbeat, release, finish }: LeaseCalls): void {
  serve(scope, contract.extendLeases, heartbeat)
  serve(scope, contract.releaseTurn, release)
  serve(scope, contract.finishTurn, finish)
}

export function createLeaseCalls(services: Services, { reaches, findReached }: HeldTurns) {
  const { db, leases, ending, deaths, relay, backlog, metrics } = services
  const { leaseMs } = services.config
  return { heartbeat, release, finish }

  async function heartbeat(request: Call<z.output<typeof heartbeatBody>>) {
    const { worker, turns, fenced, waiting: known } = request.body
    metrics.fenced.inc({ write: 'append' }, fenced)
    const ids = turns.map(({ turnId }) => turnId)
    const within = await turnsWithin(leases, reachOf(request.principal), ids)
    const held = turns.filter(({ turnId }) => within.has(turnId))
    const { lost, takenBack } = await askTwice(() => extendLeases(leases, worker, held, leaseMs))
    metrics.takenBack.inc(takenBack.length)
    for (const turn of takenBack) request.log.warn({ ...aboutTurn(turn), worker }, 'a late worker resumed its turn')
    const answered = await answeredTurns(leases, known, within)
    return { lost: [...ids.filter(id => !within.has(id)), ...lost], answered }
  }

  async function release(request: Call<ReleaseBody>) {
    const { body, log } = request
    if (!(await reaches(request, body.turnId))) return { result: 'superseded' as const }
    const released = await (body.blocked ? endBlocked(body, log, body.blocked) : releaseTurn(db, body))
    relay.kick()
    const turn = await findTurn(db, body.turnId)
    log.info({ ...(turn && aboutTurn(turn)), epoch: body.epoch, released }, 'a worker released a turn')
    return { result: released ? ('released' as const) : ('superseded' as const) }
  }

  async function finish(request: Call<Omit<FinishBody, 'digest'> & { digest?: string }>) {
    const { epoch, claimId: claim, outcome, n, digest } = request.body
    const turn = await findReached(request, request.body.turnId)
    if (!turn) return { result: 'superseded' as const }
    const { result, leavesWork } = await ending.finish({
      turn,
      epoch,
      claim,
      outcome,
      appended: n,
      ...(digest !== undefined && { digest }),
    })
    if (failpoint) await failpoint('answering')
    if (leavesWork) relay.kick()
    else backlog.noteEnd()
    return { result }
  }

  /** A worker is about to end because of this turn. */
  async function endBlocked(holding: Holding, log: Caller['log'], { ms, stack }: NonNullable<ReleaseBody['blocked']>): Promise<boolean> {
    const turn = await findTurn(db, holding.turnId)
    if (!turn || !(await deaths.count(turn, 'dead', isHeldUnder(holding)))) return false
    metrics.blocked.inc()
    log.error({ ...aboutTurn(turn), worker: turn.worker, blockedMs: ms, stack }, 'a turn blocked the event loop of its worker')
    return true
  }
}
