/** Errors in OpenAI's shape: ours, with the two fields that OpenAI's SDKs read besides. */
import type { ErrorCode } from '@rivulet/protocol'
import type { FastifyError, FastifyInstance } from 'fastify'
import { errorBody, logFailure, sendError, toRivuletError } from '../../errors.ts'

export function sendOpenAiErrors(scope: FastifyInstance): void {
  scope.setErrorHandler((error: FastifyError, request, reply) => {
    const known = toRivuletError(error, request.routeOptions.bodyLimit)
    logFailure(request, known, error)
    const { status = 500 } = known.row
    const { error: body } = errorBody(known.code, known.publicMessage, request.id, known.details)
    const [first] = body.details ?? []
    const param = first && first.path !== '/' ? first.path.slice(1).replaceAll('/', '.') : null
    // The SDKs show the message alone.
    const message = first ? `${known.publicMessage}: ${first.path} ${first.reason}`.slice(0, 250) : known.publicMessage
    return sendError(reply, known, { error: { ...body, message, type: typeOf(known.code, status), param } })
  })
}

function typeOf(code: ErrorCode, status: number): string {
  if (code === 'unauthorized') return 'authentication_error'
  if (code === 'forbidden') return 'permission_error'
  if (status === 404) return 'not_found_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}
