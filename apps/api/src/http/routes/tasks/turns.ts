/** Continues tasks with turns, and reads a turn. A 202 is sent only after the commit. */

import type { CreateTurn } from '@rivulet/contract/turns'
import * as contract from '@rivulet/contract/turns'
import { type Json, RivuletError, type TaskId } from '@rivulet/protocol'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { orGiveBack } from '../../../access/open-streams.ts'
import { requireRight } from '../../../access/principal.ts'
import { getTurn } from '../../../store/reads/turns.ts'
import { toFullTurn, toTurn } from '../../../store/rows.ts'
import { createTurn } from '../../../store/tasks/accept/create-turn.ts'
import type { CancelBegun } from '../../../store/tasks/cancel-task.ts'
import { storeSecrets } from '../../../store/tasks/task-secrets.ts'
import { type AcceptedWork, createAcceptWork } from '../../requests/accept-work.ts'
import { createAudit, interruption } from '../../requests/audited.ts'
import { markReplay, sendResponse } from '../../requests/idempotent.ts'
import { createTurnWaits } from '../../requests/turn-waits.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import type { EventStream } from './events.ts'

type TurnRequest = FastifyRequest & { body: CreateTurn }

export function turnRoutes(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { databaseFor, ending, vault } = services
  const { limits } = services.config
  const { requireShare, accept, commitTurn } = createAcceptWork(services, scope.log)
  const waits = createTurnWaits(services)
  const { note } = createAudit(services)

  serve(scope, contract.createTurn, async (request, reply) => {
    const { wait } = request.query
    const { id } = request.params
    requireRights(request)
    if (request.body.ifBusy !== 'interrupt') await requireShare(request)
    const admission = wait === undefined ? null : events.reserve(request, id)
    const { response } = await orGiveBack(
      admission,
      accept(request, traceparent => commit(request, id, traceparent)),
    )
    if (!admission || wait === undefined) return sendResponse(reply, response)
    markReplay(reply, response.replayed)
    const { turn } = contract.turnAccepted.parse(response.body)
    return waits.respond(reply, { task: id, number: turn.number, waitMs: wait, status: 200, accepted: { turn } }, admission)
  })

  serve(scope, contract.getTurn, async (request, reply) => {
    const { id, number } = request.params
    const { tenant, token } = request.principal
    const { wait } = request.query
    const turn = await getTurn(databaseFor(request.principal), tenant, id, number, token ? toTurn : toFullTurn)
    if (wait === undefined) return { turn }
    return waits.respond(reply, { task: id, number, waitMs: wait, status: 200 }, events.reserve(request, id))
  })

  /** An input that interrupts cancels what runs in the same transaction. */
  async function commit(request: TurnRequest, id: TaskId, traceparent: string): Promise<AcceptedWork> {
    const { tenant } = request.principal
    const { body } = request
    const sealed = body.secrets && vault.seal(tenant, body.secrets)
    let begun: CancelBegun | undefined
    const committed = await commitTurn(
      request,
      async tx => {
        if (body.ifBusy === 'interrupt')
          begun = await ending.beginInterrupt(tx, request.principal, id, note(request, interruption(id)), body.after === undefined)
        const work = await createTurn(tx, request.principal, id, body, limits.queuedTurns, traceparent)
        if (!sealed) return work
        await storeSecrets(tx, work.task, work.turn, sealed)
        await note(request, { action: 'secrets.set', target: id })(tx)
        return work
      },
      ({ turn }) => ({ status: 202, body: { turn: toTurn(turn) } as Json }),
      id,
    )
    if (begun) await ending.completeInterrupt(begun)
    return committed
  }
}

/** Beside `send`. With a secret, a page could point the agent at a service of its own. */
function requireRights({ body, principal }: TurnRequest): void {
  const { ifBusy, params: given, after } = body
  if (ifBusy === 'interrupt') requireRight(principal, 'cancel')
  if (ifBusy === 'decline') requireRight(principal, 'answer')
  if (given !== undefined) requireRight(principal, 'params')
  if (after !== undefined) requireRight(principal, 'rewind')
  if (body.secrets && principal.token) throw new RivuletError('forbidden', 'A token cannot set secrets; use a key')
}
