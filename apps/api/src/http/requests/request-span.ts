/** The span of a request that creates a turn, below the caller's span. */
import { parseTraceparent, type Span, type Tracer } from '@rivulet/runtime/trace'
import type { FastifyRequest } from 'fastify'
import type { Accepted } from '../../store/tasks/accept/create-task.ts'
import { toRivuletError } from '../errors.ts'

type RequestSpan = {
  /** What the turn is a part of from here on. */
  traceparent: string
  accepted(work: Accepted | undefined): void
  /** Ends the span, and throws on. */
  refused(error: unknown): never
}

export function startRequestSpan(tracer: Tracer, { method, headers, routeOptions: { url = '' } }: FastifyRequest): RequestSpan {
  const attributes = { 'http.request.method': method, 'http.route': url }
  const span: Span = tracer.start(`${method} ${url}`, { kind: 'server', parent: parseTraceparent(headers.traceparent), attributes })
  return {
    traceparent: span.traceparent,
    accepted: work =>
      span.end(work && { attributes: { 'rivulet.task': work.task.id, ...(work.turn && { 'rivulet.turn': work.turn.number }) } }),
    refused(error) {
      span.end({ failure: toRivuletError(error) })
      throw error
    },
  }
}
