/** How a worker keeps a turn, releases it, and ends it. */
import {
  finishBody,
  finishResult,
  type Holding,
  heartbeatBody,
  heartbeatResult,
  type ReleaseBody,
  releaseBody,
  releaseResult,
} from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { reachOf } from '../../../access/principal.ts'
import { turnsWithin } from '../../../store/access/reach.ts'
import { askTwice } from '../../../store/connection/database-errors.ts'
import { findTurn } from '../../../store/reads/turns.ts'
import { extendLeases, isHeldUnder, releaseTurn } from '../../../store/turns/leases.ts'
import { answeredTurns } from '../../../store/waits/held-waits.ts'
import { aboutTurn } from '../../../turns/about-turn.ts'
import type { Services } from '../../services.ts'
import { config, type HeldTurns, tags } from './held-turns.ts'

export function leaseRoutes(scope: FastifyInstance, services: Services, { reaches, findReached }: HeldTurns): void {
  const { db, leases, ending, deaths, relay, backlog, metrics } = services
  const { leaseMs } = services.config
  const app = scope.withTypeProvider<ZodTypeProvider>()

  app.post('/heartbeat', { config, schema: { tags, body: heartbeatBody, response: { 200: heartbeatResult } } }, async request => {
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
  })

  app.post('/release', { config, schema: { tags, body: releaseBody, response: { 200: releaseResult } } }, async request => {
    const { body, log } = request
    if (!(await reaches(request, body.turnId))) return { result: 'superseded' as const }
    const released = await (body.blocked ? endBlocked(body, body.blocked) : releaseTurn(db, body))
    relay.kick()
    const turn = await findTurn(db, body.turnId)
    log.info({ ...(turn && aboutTurn(turn)), epoch: body.epoch, released }, 'a worker released a turn')
    return { result: released ? ('released' as const) : ('superseded' as const) }
  })

  app.post('/finish', { config, schema: { tags, body: finishBody, response: { 200: finishResult } } }, async request => {
    const { epoch, claimId: claim, outcome, n, digest } = request.body
    const turn = await findReached(request, request.body.turnId)
    if (!turn) return { result: 'superseded' as const }
    const { result, leavesWork } = await ending.finish({ turn, epoch, claim, outcome, appended: n, digest })
    if (failpoint) await failpoint('answering')
    if (leavesWork) relay.kick()
    else backlog.noteEnd()
    return { result }
  })

  /** A worker is about to end because of this turn. */
  async function endBlocked(holding: Holding, { ms, stack }: NonNullable<ReleaseBody['blocked']>): Promise<boolean> {
    const turn = await findTurn(db, holding.turnId)
    if (!turn || !(await deaths.count(turn, 'dead', isHeldUnder(holding)))) return false
    metrics.blocked.inc()
    scope.log.error({ ...aboutTurn(turn), worker: turn.worker, blockedMs: ms, stack }, 'a turn blocked the event loop of its worker')
    return true
  }
}
