/**
 * Creates a task. The caller gets it at once, when its turn has ended, or as a stream of its events, and in each case only after the commit.
 *
 * A response that waits or streams reserves its place before the commit, because a task cannot be taken back.
 */

import { accepted, type StreamFormat } from '@rivulet/contract/fields'
import type { CreateTask } from '@rivulet/contract/tasks'
import * as contract from '@rivulet/contract/tasks'
import { RivuletError } from '@rivulet/protocol'
import { failpoint } from '@rivulet/runtime/failpoint'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { orGiveBack } from '../../../access/open-streams.ts'
import { requirePublicHost } from '../../../feed/private-addresses.ts'
import { type AcceptedWork, createAcceptWork } from '../../requests/accept-work.ts'
import { markReplay, sendResponse } from '../../requests/idempotent.ts'
import { createTurnWaits } from '../../requests/turn-waits.ts'
import { type RequestOf, serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import type { EventStream } from './events.ts'

/** How the caller gets the task. */
type Delivery = { by: 'response' } | { by: 'wait'; ms: number } | { by: 'stream'; format: StreamFormat | undefined }

type CreateRequest = FastifyRequest & { body: CreateTask }

export function createTaskRoute(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { webhooks } = services.config
  const { requireShare, accept, commitTask } = createAcceptWork(services, scope.log)
  const waits = createTurnWaits(services)

  serve(scope, contract.createTask, async (request, reply) => {
    const delivery = deliveryOf(request.query, events.wants(request))
    const { onEnd } = request.body
    if (onEnd && !webhooks.allowPrivate) requirePublicHost(onEnd.url, '/onEnd')
    await requireShare(request)
    switch (delivery.by) {
      case 'response':
        return sendResponse(reply, (await accept(request, traceparent => commit(request, traceparent))).response)
      case 'wait':
        return respondAtEnd(request, reply, delivery.ms)
      case 'stream':
        return streamEvents(request, reply, delivery.format)
      default:
        throw delivery satisfies never
    }
  })

  async function commit(request: CreateRequest, traceparent: string): Promise<AcceptedWork> {
    const committed = await commitTask(request, request.body, traceparent)
    if (failpoint) await failpoint('accepted')
    return committed
  }

  async function respondAtEnd(request: CreateRequest, reply: FastifyReply, waitMs: number): Promise<FastifyReply> {
    const admission = events.reserve(request)
    const { response } = await orGiveBack(
      admission,
      accept(request, traceparent => commit(request, traceparent)),
    )
    const { task, turn } = accepted.parse(response.body)
    if (!turn) {
      admission.over()
      return sendResponse(reply, response)
    }
    markReplay(reply, response.replayed)
    const wanted = { task: task.id, number: turn.number, waitMs, status: response.status, accepted: { task, turn } }
    return waits.respond(reply, wanted, admission)
  }

  async function streamEvents(request: CreateRequest, reply: FastifyReply, format: StreamFormat | undefined): Promise<FastifyReply> {
    const admission = events.reserve(request)
    const { response, dispatch } = await orGiveBack(
      admission,
      accept(request, traceparent => commit(request, traceparent), 'held'),
    )
    const { task, turn } = accepted.parse(response.body)
    markReplay(reply, response.replayed)
    // The viewer first: it is there when the agent begins to speak.
    return events
      .stream(task.id, reply, { cursor: null, isFollowing: false, dialect: events.dialectOf(format), turnNumber: turn?.number }, admission)
      .finally(dispatch)
  }
}

function deliveryOf({ format, wait }: RequestOf<typeof contract.createTask>['query'], acceptsEvents: boolean): Delivery {
  const isStream = acceptsEvents || format !== undefined
  if (wait === undefined) return isStream ? { by: 'stream', format } : { by: 'response' }
  if (!isStream) return { by: 'wait', ms: wait }
  throw new RivuletError('bad_request', 'A response cannot both stream and wait: leave out wait, or format and text/event-stream in Accept')
}
