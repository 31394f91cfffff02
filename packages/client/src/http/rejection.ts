/** Converts an error response to one error, with whether the same request may succeed later. */
import { type ErrorCode, type ErrorDetail, errorTable, isErrorCode, isObject, RivuletError } from '@rivulet/protocol'

/** The `cause` of an error that the server answered. */
export type Rejection = {
  status: number
  code?: string | undefined
  requestId?: string | undefined
  retryAfterMs?: number | undefined
}

/** Longest wait that a server may ask for, whichever way it does. */
export const maxAskedMs = 30_000

export async function errorOf(response: Response): Promise<RivuletError> {
  const { code, message, requestId, details } = await readError(response)
  const cause: Rejection = { status: response.status, code, requestId, retryAfterMs: retryAfterOf(response.headers) }
  const known = isErrorCode(code) ? code : codeOf(response.status)
  return new RivuletError(known, message ?? `The server returned ${response.status}`, { cause, ...(details && { details }) })
}

export function unreachable(message: string, cause?: unknown): RivuletError {
  // An agent that calls another platform may fail with this error; the public message hides its address from viewers.
  return new RivuletError('unreachable', message, { cause, publicMessage: 'The API did not respond' })
}

/** For a caller that gets every error as one of the table. */
export function toRivuletError(error: unknown): RivuletError {
  return error instanceof RivuletError ? error : new RivuletError('internal', String(error), { cause: error })
}

export function rejectionOf(error: unknown): Rejection | null {
  const cause: unknown = error instanceof RivuletError ? error.cause : null
  return isObject(cause) && typeof cause.status === 'number' ? (cause as Rejection) : null
}

/** Whether a retry may succeed: there was no response, or the error is not the request's fault. */
export function mayPass(error: unknown): boolean {
  if (!(error instanceof RivuletError)) return false
  const rejection = rejectionOf(error)
  if (!rejection) return error.code === 'unreachable' || error.code === 'offset_mismatch'
  const { status } = rejection
  return status >= 500 || status === 408 || status === 425 || status === 429 || error.code === 'in_flight'
}

type ErrorBody = Pick<Rejection, 'code' | 'requestId'> & { message?: string | undefined; details?: ErrorDetail[] }

async function readError(response: Response): Promise<ErrorBody> {
  try {
    const body: unknown = await response.json()
    const error = isObject(body) && isObject(body.error) ? body.error : {}
    const { code, message, requestId, details } = error
    return {
      ...{ code: textOf(code), message: textOf(message), requestId: textOf(requestId) },
      ...(Array.isArray(details) && { details: details.filter(isDetail) }),
    }
  } catch {
    // A proxy in between may respond with its own page.
    return {}
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function isDetail(value: unknown): value is ErrorDetail {
  return isObject(value) && typeof value.path === 'string' && typeof value.reason === 'string'
}

/** For unknown codes and responses that are not from Rivulet: the table's first row of that status. */
function codeOf(status: number): ErrorCode {
  const codes = Object.keys(errorTable).filter(isErrorCode)
  return (
    codes.find(code => 'status' in errorTable[code] && errorTable[code].status === status) ?? (status >= 500 ? 'internal' : 'bad_request')
  )
}

function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get('retry-after') ?? ''
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), maxAskedMs)
}
