/**
 * Registers a route of the contract. Its handler is a function of the parsed request, and returns a body that the contract allows, or the reply that it has
 * sent.
 */
import type { Route } from '@rivulet/contract/route'
import { nameOf } from '@rivulet/contract/routes'
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema, RouteShorthandOptions } from 'fastify'
import type { z } from 'zod'
import { rejectIdempotencyKey } from './requests/idempotent.ts'

type Parsed<R extends Route, Part extends keyof Route> = R extends Record<Part, infer Schema extends z.ZodType> ? z.output<Schema> : unknown

export type RequestOf<R extends Route> = FastifyRequest<{
  Params: Parsed<R, 'params'>
  Querystring: Parsed<R, 'query'>
  Headers: Parsed<R, 'headers'>
  Body: Parsed<R, 'body'>
}>

type JsonOf<Body> = Body extends z.ZodType
  ? z.output<Body>
  : Body extends { content: { 'application/json': { schema: infer Schema extends z.ZodType } } }
    ? z.output<Schema>
    : string
export type BodyOf<R extends Route> = JsonOf<R['returns'][keyof R['returns']]>

type Handler<R extends Route> = (request: RequestOf<R>, reply: FastifyReply) => Promise<BodyOf<R> | FastifyReply>

/** @param scope its prefix is the beginning of the path */
export function serve<R extends Route>(
  scope: FastifyInstance,
  route: R,
  handler: Handler<R>,
  options: Pick<RouteShorthandOptions, 'bodyLimit' | 'onRequest' | 'preValidation'> = {},
): void {
  const { method, path, returns, hasNoHead } = route
  if (!path.startsWith(scope.prefix)) throw new Error(`${method} ${path} is registered below ${scope.prefix}`)
  const [status, ...others] = Object.keys(returns)
  scope.route({
    ...options,
    method,
    url: path.slice(scope.prefix.length),
    ...(hasNoHead && { exposeHeadRoute: false }),
    config: { contract: route },
    schema: { ...schemaOf(route), operationId: nameOf(route), summary: route.doc },
    handler: (request, reply) => {
      if (route.idempotencyKey === 'rejected') rejectIdempotencyKey(request)
      // With several statuses, the handler sets its own.
      if (others.length === 0) reply.status(Number(status))
      // Fastify has parsed each part with the schema that types it.
      return handler(request as RequestOf<R>, reply)
    },
  })
}

function schemaOf({ tag, params, query, headers, body, consumes, returns }: Route): FastifySchema {
  return {
    tags: [tag],
    ...(params && { params }),
    ...(query && { querystring: query }),
    ...(headers && { headers }),
    ...(body && { body }),
    ...(consumes && { consumes }),
    response: returns,
  }
}
