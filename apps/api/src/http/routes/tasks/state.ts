/** The state of a task, for callers: read it, and replace it between two turns. `If-Match` keeps two writers from losing a change of the other. */
import { maxStateBytes, putStateBody, RivuletError, stateSchema } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { getState, putState } from '../../../store/states/task-state.ts'
import { taskTransaction } from '../../../store/tasks/task-line.ts'
import type { Services } from '../../services.ts'
import { params, readingOne, writing } from './task-schemas.ts'

const knownVersion = z.looseObject({ 'if-match': z.string().optional() })

export function stateRoutes(scope: FastifyInstance, { databaseFor, announcing }: Services): void {
  const app = scope.withTypeProvider<ZodTypeProvider>()

  app.get(
    '/tasks/:id/state',
    { config: readingOne, schema: { tags: ['tasks'], params, response: { 200: stateSchema } } },
    async ({ params: { id }, principal }, reply) => {
      const state = await getState(databaseFor(principal), principal.tenant, id)
      return reply.header('etag', etagOf(state.version)).send(state)
    },
  )

  app.put(
    '/tasks/:id/state',
    {
      config: { access: { ...writing.access, echoes: 200 } },
      schema: { tags: ['tasks'], params, headers: knownVersion, body: putStateBody, response: { 200: stateSchema } },
    },
    async ({ params: { id }, body: { value }, headers, principal }, reply) => {
      const matches = matcherOf(headers['if-match'])
      const bytes = Buffer.byteLength(JSON.stringify(value))
      if (bytes > maxStateBytes)
        throw new RivuletError('state_too_large', `The state of a task has at most ${maxStateBytes} bytes as JSON; this one has ${bytes}`)
      const state = await taskTransaction(databaseFor(principal.tenant), id, tx => putState(tx, principal, id, value, matches))
      await announcing.announceState(id)
      return reply.header('etag', etagOf(state.version)).send(state)
    },
  )
}

function etagOf(version: number): string {
  return `"${version}"`
}

/** Whether a caller knows a version: one of its entity tags names it, or it replaces any version (`*`). Weak tags match none (RFC 9110). */
function matcherOf(given: string | undefined): (version: number) => boolean {
  if (given === undefined)
    throw new RivuletError('precondition_required', 'Send If-Match with the ETag of the state that you know, or * to replace any version')
  if (given.trim() === '*') return () => true
  const tags = given.split(',').map(tag => tag.trim())
  if (!tags.every(tag => /^(W\/)?"[\x21\x23-\x7e]*"$/.test(tag)))
    throw new RivuletError('bad_request', 'If-Match takes entity tags in double quotes, or *')
  return version => tags.includes(etagOf(version))
}
