/** What workers without Redis wait for: their next turn, and hints about the turns that they run. Both calls reply when something came, or in time. */
import * as contract from '@rivulet/contract/internal'
import { RivuletError, type TurnId } from '@rivulet/protocol'
import { keepSignal } from '@rivulet/runtime/keep-signal'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { reachOf } from '../../../access/principal.ts'
import { turnsWithin } from '../../../store/access/reach.ts'
import { requireServed } from '../../../store/agents/agents.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'

export function pollRoutes(scope: FastifyInstance, services: Services): void {
  const { db, polls, hints } = services

  serve(scope, contract.awaitTurn, async ({ body, principal }, reply) => {
    const reach = reachOf(principal)
    const agents = await requireServed(db, reach, body.agents)
    const reaches = async (turnId: TurnId) => (await turnsWithin(db, reach, [turnId])).has(turnId)
    const next = await polls.next({ queues: [...agents.keys()], reaches }, patience(services, reply, body.waitMs))
    return { turn: next && { agent: agents.get(next.queue) ?? next.queue, turnId: next.turnId } }
  })

  serve(scope, contract.awaitHints, async ({ body, principal }, reply) => {
    const { over, answered } = await hints.next(principal.key, body.worker, patience(services, reply, body.waitMs))
    const within = await turnsWithin(db, reachOf(principal), [...over, ...answered])
    return { over: over.filter(turnId => within.has(turnId)), answered: answered.filter(turnId => within.has(turnId)) }
  })
}

/** Fires when the time is up, or the worker is gone. */
export function patience({ isDraining }: Pick<Services, 'isDraining'>, reply: FastifyReply, waitMs: number): AbortSignal {
  if (isDraining()) throw new RivuletError('draining', 'This process is stopping')
  reply.hasWaited = true
  const gone = new AbortController()
  reply.raw.once('close', () => gone.abort())
  return AbortSignal.any([gone.signal, keepSignal(AbortSignal.timeout(waitMs))])
}
