/** Errors in OpenAI's shape: ours, with the two fields that OpenAI's SDKs read besides, and the header with the id of the request. */
import { type ErrorCode, type ErrorDetail, RivuletError } from '@rivulet/protocol'
import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify'
import { errorBody, logFailure, sendError, toRivuletError } from '../../http/errors.ts'

export function sendOpenAiErrors(scope: FastifyInstance): void {
  scope.addHook('onRequest', async (request, reply) => void reply.header(requestIdHeader, request.id))
  scope.setErrorHandler((error: FastifyError, request, reply) => {
    const known = inWordsOfOpenAi(toRivuletError(error, request.routeOptions.bodyLimit))
    logFailure(request, known, error)
    return sendOpenAiError(reply, known)
  })
}

/** In a scope of its own, because a path without a route has no access that a guard could check. */
export function rejectUnknownOpenAiPaths(scope: FastifyInstance): void {
  scope.setNotFoundHandler((request, reply) =>
    sendOpenAiError(reply.header(requestIdHeader, request.id), new RivuletError('not_found', 'No such route')),
  )
}

/** OpenAI's SDKs show it as `request_id`. */
const requestIdHeader = 'x-request-id'

function sendOpenAiError(reply: FastifyReply, known: RivuletError): FastifyReply {
  const { error: body } = errorBody(known.code, known.publicMessage, reply.request.id, known.details)
  const [first] = body.details ?? []
  // The SDKs show the message alone.
  const message = first ? `${known.publicMessage}: ${first.path} ${first.reason}`.slice(0, 250) : known.publicMessage
  return sendError(reply, known, {
    error: { ...body, message, type: typeOf(known.code, known.row.status ?? 500), param: paramOf(known.code, first) },
  })
}

/** OpenAI has a status and a code of its own for a model that does not exist. */
function inWordsOfOpenAi(error: RivuletError): RivuletError {
  return error.code === 'unknown_agent' ? new RivuletError('model_not_found', error.publicMessage) : error
}

function paramOf(code: ErrorCode, first: ErrorDetail | undefined): string | null {
  if (code === 'model_not_found') return 'model'
  return first && first.path !== '/' ? first.path.slice(1).replaceAll('/', '.') : null
}

function typeOf(code: ErrorCode, status: number): string {
  if (code === 'unauthorized') return 'authentication_error'
  if (code === 'forbidden') return 'permission_error'
  if (status === 404) return 'not_found_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}
