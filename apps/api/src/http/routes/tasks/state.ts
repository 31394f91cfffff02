/** The state of a task, for callers: read it, and replace it between two turns. `If-Match` keeps two writers from losing a change of the other. */
import * as contract from '@rivulet/contract/state'
import { maxStateBytes, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { getState, putState } from '../../../store/states/task-state.ts'
import { taskTransaction } from '../../../store/tasks/task-line.ts'
import { createAudit } from '../../requests/audited.ts'
import { etagOf, ifMatch } from '../../requests/conditions.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'

export function stateRoutes(scope: FastifyInstance, services: Services): void {
  const { databaseFor, announcing } = services
  const { note } = createAudit(services)
  serve(scope, contract.getState, async ({ params: { id }, principal }, reply) => {
    const state = await getState(databaseFor(principal), principal.tenant, id)
    reply.header('etag', etagOf(state.version))
    return state
  })

  serve(scope, contract.putState, async (request, reply) => {
    const { principal } = request
    const { id } = request.params
    const { value } = request.body
    const matches = ifMatch(request)
    if (!matches)
      throw new RivuletError('precondition_required', 'Send If-Match with the ETag of the state that you know, or * to replace any version')
    const bytes = Buffer.byteLength(JSON.stringify(value))
    if (bytes > maxStateBytes)
      throw new RivuletError('state_too_large', `The state of a task has at most ${maxStateBytes} bytes as JSON; this one has ${bytes}`)
    const state = await taskTransaction(databaseFor(principal.tenant), id, async tx => {
      const stored = await putState(tx, principal, id, value, matches)
      await note(request, { target: id, details: { version: stored.version } })(tx)
      return stored
    })
    await announcing.announceState(id)
    reply.header('etag', etagOf(state.version))
    return state
  })
}
