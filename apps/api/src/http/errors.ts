/** The one shape of every error, also of those that Node's and Fastify's parsers make. Never echoes input, a stack or a driver's text. */
import { detailsOf, type ErrorCode, type ErrorDetail, headLimits, limitNames, maxDetails, RivuletError } from '@rivulet/protocol'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { isDatabaseAway, isPoolBusy, isRowHeld } from '../store/connection/database-errors.ts'
import { StoreFull } from '../store/memory/memory.ts'
import { sendPlainJson } from './requests/json-body.ts'

/** @param body in place of our own shape, for clients of another protocol */
export function sendError(reply: FastifyReply, error: RivuletError, body?: object): FastifyReply {
  const { status = 500, afterSeconds } = error.row
  reply.errorCode = error.code
  if (error instanceof StoreFull) reply.errorTenant = error.tenant
  if (afterSeconds !== undefined && !reply.hasHeader('retry-after')) reply.header('retry-after', String(afterSeconds))
  return reply.status(status).send(body ?? errorBody(error.code, messageWithReason(error), reply.request.id, error.details))
}

const maxMessage = 250

/** Many programs show the message alone, so it has the first reason. */
function messageWithReason({ code, publicMessage, details: [first] = [] }: RivuletError): string {
  if (!first || code !== 'validation_failed') return publicMessage
  const { path, reason } = withoutInput(first)
  return `${publicMessage}: ${path}: ${reason}`.slice(0, maxMessage)
}

export function errorBody(code: ErrorCode, message: string, requestId: string, details?: readonly ErrorDetail[]) {
  return { error: { code, message, requestId, ...(details && { details: details.slice(0, maxDetails).map(withoutInput) }) } }
}

export function handleErrors(app: FastifyInstance): void {
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const known = toRivuletError(error, request.routeOptions.bodyLimit)
    logFailure(request, known, error)
    return sendError(reply, known)
  })
}

export function logFailure(request: FastifyRequest, { code, cause }: RivuletError, error: FastifyError): void {
  if (code === 'internal') request.log.error({ err: error }, 'request failed')
  else if (code === 'dependency_unavailable' && cause) request.log.warn({ err: error }, 'a required database is unavailable')
}

/** @param bodyLimit of the route that was asked for */
export function toRivuletError(error: unknown, bodyLimit?: number): RivuletError {
  if (error instanceof RivuletError) return error.row.status === undefined ? internal(error) : error
  // Drizzle wraps the errors of a pool.
  if (error instanceof Error && error.cause instanceof RivuletError) return toRivuletError(error.cause)
  const code = error instanceof Error && 'code' in error ? fastifyCodes[String(error.code)] : undefined
  if (code === 'body_too_large')
    return new RivuletError(code, `The body may have at most ${bodyLimit} bytes (${limitNames.bodyBytes})`, { cause: error })
  if (code) return new RivuletError(code, messageOf[code] ?? 'Malformed request', { cause: error })
  // Before the databases: a client that leaves in the midst of its body resets a connection, too.
  if (isRejection(error)) return new RivuletError('bad_request', 'Malformed request', { cause: error })
  if (isDatabaseAway(error) || isRedisAway(error)) {
    return new RivuletError('dependency_unavailable', busyPartOf(error), { cause: error })
  }
  return internal(error)
}

function isRejection(error: unknown): boolean {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500
  return status >= 400 && status < 500
}

/** What Fastify's validation asks for; the error names every path that is wrong. */
export function validate(schema: z.ZodType, value: unknown): { value: unknown } | { error: Error } {
  const parsed = schema.safeParse(value)
  if (parsed.success) return { value: parsed.data }
  const details = detailsOf(parsed.error).map(({ path, reason }) => ({ path: path || '/', reason }))
  return { error: new RivuletError('validation_failed', 'Request validation failed', { details }) }
}

/** The words for a dependency that did not reply in time. */
function busyPartOf(error: unknown): string {
  if (isRowHeld(error)) return 'Another call changes the same rows; retry'
  return isPoolBusy(error) ? 'All connections to Postgres are busy; retry' : 'A required database is unavailable; retry'
}

/** Whether the connection to Redis failed, or Redis cannot serve now, as opposed to a command that it rejects. */
function isRedisAway(error: unknown): boolean {
  return error instanceof Error && (unavailableReply.test(error.message) || brokenConnection.test(error.message))
}

const unavailableReply = /^(OOM|MISCONF|LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|BUSY|NOAUTH|WRONGPASS)\b/
/** ioredis has no codes for these. */
const brokenConnection = new RegExp(
  [
    ...['Command timed out', 'Socket timeout', 'Connection is closed', 'Connection in subscriber mode', "Stream isn't writeable"],
    ...['aborted due to connection close', 'max retries per request', 'Ready check failed', "Can't execute 'info'", 'Protocol error'],
    ...["Cluster isn't ready", 'Cluster is disconnect', 'refresh slots', 'startup nodes', 'Cluster redirections', 'Node is disconnected'],
  ].join('|'),
  'i',
)

export function notFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // Fastify knows its routes by their patterns, and the only part of an address that varies is the id of a task or a key.
  const url = (request.url.split('?')[0] ?? '')
    .replace(/^(\/v1\/(?:tasks|keys|files)\/)[^/]+/, '$1:id')
    .replace(/(\/waits\/)[^/]+/, '$1:wait')
  const allowed = methods.filter(method => request.server.hasRoute({ method, url }))
  if (allowed.length === 0) return sendError(reply, new RivuletError('not_found', 'No such route'))
  reply.header('allow', allowed.join(', '))
  return sendError(reply, new RivuletError('method_not_allowed', 'This route does not support this method'))
}

const methods = ['GET', 'POST', 'PATCH', 'DELETE'] as const

/** A path consists of field names. A name that is not plain may be text of the caller, so it is not repeated. */
function withoutInput({ path, reason }: ErrorDetail): ErrorDetail {
  return { path: path.replaceAll(/[^/]+/g, name => (/^[\w.-]{1,64}$/.test(name) ? name : '?')), reason }
}

const fastifyCodes: Record<string, ErrorCode> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'bad_request',
  FST_ERR_BAD_URL: 'bad_url',
  FST_ERR_MAX_PARAM_LENGTH: 'url_too_long',
}

const messageOf: Partial<Record<ErrorCode, string>> = {
  unsupported_media_type: sendPlainJson,
  bad_url: 'The URL is malformed',
  url_too_long: `A part of the URL's path may have at most ${headLimits.paramLength} characters`,
}

function internal(cause: unknown): RivuletError {
  return new RivuletError('internal', 'Internal error', { cause })
}
