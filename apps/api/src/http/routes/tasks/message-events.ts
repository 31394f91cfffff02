/** The event stream of one message. */
import * as contract from '@rivulet/contract/events'
import type { FastifyInstance } from 'fastify'
import { listMessages } from '../../../store/reads/messages.ts'
import { findMessagePlace } from '../../../stream/messages/message-place.ts'
import { respondWithMessage } from '../../../stream/messages/message-response.ts'
import { respondWithEvents } from '../../event-response.ts'
import { serve } from '../../serve.ts'
import type { Services } from '../../services.ts'
import { comeBackLater, type EventStream, placeOf, requireEvents } from './events.ts'

export function messageEventRoutes(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { databaseFor, hub, reader, writers, metrics, config } = services

  serve(scope, contract.watchMessage, async (request, reply) => {
    requireEvents(request)
    const { id: task, index } = request.params
    const { tenant } = request.principal
    const { cursor } = placeOf(request.headers['last-event-id'] ?? request.query.after, false)
    return stream().catch(error => comeBackLater(reply, request.query.token, error))

    async function stream() {
      const admission = events.reserve(request, task)
      return events.streamIn(admission, task, request, async () => {
        const place = await findMessagePlace({ hub, log: reader, read }, { tenant, task, index }, cursor)
        if (place.kind === 'live') {
          const start = { begin: place.begin, isFollowing: false }
          return respondWithEvents(reply, { admission, metrics, writers, task }, response =>
            hub.watch(place.feed, respondWithMessage(response, { task, index }), start),
          )
        }
        admission.over()
        return place.kind === 'over' ? reply.status(204).send(null) : reply.type('text/event-stream; charset=utf-8').send(place.text)
      })
    }

    async function read() {
      const page = await listMessages(databaseFor(request.principal), tenant, task, { after: index - 1, limit: 1 }, config.limits.pageBytes)
      return page.data.find(message => message.index === index)
    }
  })
}
