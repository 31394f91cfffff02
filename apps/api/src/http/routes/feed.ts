/** The feed of a tenant, as pages of JSON or as an event stream. */
import * as contract from '@rivulet/contract/feed'
import { type Cursor, origin, parseCursor, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Principal } from '../../access/principal.ts'
import { type FeedFilter, readFeed, requireKept } from '../../store/feed/read-feed.ts'
import { respondWithEvents } from '../event-response.ts'
import { serve } from '../serve.ts'
import type { Services } from '../services.ts'

export function feedRoutes(scope: FastifyInstance, services: Services): void {
  const { db, databaseFor, feedFollowers, streams, writers, metrics, isDraining } = services

  serve(scope, contract.readFeed, async (request, reply) => {
    const { after, limit, ...filter } = request.query
    const isStream = (request.headers.accept ?? '').includes('text/event-stream')
    const place = (isStream ? resumedAt(request) : null) ?? after
    if (place !== undefined) await requireKept(db, place)
    const { principal } = request
    if (isStream) return follow(request, reply, place ?? (await endOf(principal)), filter)
    const { entries, next } = await readFeed(databaseFor(principal), principal.tenant, { after: place ?? origin, limit, ...filter })
    return { data: entries.map(({ tenant: _, ...entry }) => entry), next }
  })

  /** A stream without a place begins with the next change. */
  async function endOf(principal: Principal): Promise<Cursor> {
    const latest = await readFeed(databaseFor(principal), principal.tenant, { after: origin, limit: 1, types: [] })
    return latest.next
  }

  async function follow(request: FastifyRequest, reply: FastifyReply, after: Cursor, filter: FeedFilter): Promise<FastifyReply> {
    if (isDraining()) throw new RivuletError('draining', 'This process is stopping')
    const { principal } = request
    const { tenant, agents = null } = principal
    const admission = streams.admit(principal, [])
    return respondWithEvents(reply, { admission, metrics, writers }, response => ({
      ...feedFollowers.follow(response, { tenant, agents, after, ...filter }),
      sendToken: () => false,
    }))
  }
}

/** What an EventSource sends when it reconnects takes precedence over `?after=`. */
function resumedAt({ headers: { 'last-event-id': given } }: FastifyRequest): Cursor | null {
  if (given === undefined) return null
  const place = typeof given === 'string' ? parseCursor(given) : null
  if (!place)
    throw new RivuletError('bad_cursor', 'A place in the feed must be <number>-<number>, as the API returns it in `seq` and `next`')
  return place
}
