/** An answer that is not a success, as one error; and whether the same request may do better later. */
import { type ErrorCode, type ErrorDetail, errorTable, isErrorCode, RivuletError } from '@rivulet/protocol'

/** The `cause` of an error that the server answered. */
export type Answered = { status: number; code?: string; requestId?: string; retryAfterMs?: number }

/** Longest wait that a server may ask for. */
const maxRetryAfterMs = 30_000

export async function errorOf(response: Response): Promise<RivuletError> {
  const { code, message, requestId, details } = await readError(response)
  const retryAfterMs = retryAfterOf(response.headers)
  const cause: Answered = {
    status: response.status,
    ...(code !== undefined && { code }),
    ...(requestId !== undefined && { requestId }),
    ...(retryAfterMs !== null && { retryAfterMs }),
  }
  const known = isErrorCode(code) ? code : codeOf(response.status)
  return new RivuletError(known, message ?? `The server answered ${response.status}`, { cause, ...(details && { details }) })
}

export function unreachable(message: string, cause?: unknown): RivuletError {
  return new RivuletError('unreachable', message, { cause })
}

export function answeredOf(error: unknown): Answered | null {
  const cause: unknown = error instanceof RivuletError ? error.cause : null
  return typeof cause === 'object' && cause !== null && 'status' in cause && typeof cause.status === 'number' ? (cause as Answered) : null
}

/** Whether asking again may help: nobody answered, or somebody said that it is not the request's fault. */
export function mayPass(error: unknown): boolean {
  if (!(error instanceof RivuletError)) return false
  const answered = answeredOf(error)
  if (!answered) return error.code === 'unreachable' || error.code === 'offset_mismatch'
  const { status } = answered
  return status >= 500 || status === 408 || status === 425 || status === 429 || error.code === 'in_flight'
}

async function readError(response: Response): Promise<{ code?: string; message?: string; requestId?: string; details?: ErrorDetail[] }> {
  try {
    const body: unknown = await response.json()
    const error = typeof body === 'object' && body !== null && 'error' in body ? body.error : null
    return typeof error === 'object' && error !== null ? error : {}
  } catch {
    // A proxy in between answers with a page of its own.
    return {}
  }
}

/** For codes that this version does not know, and answers that are not ours: the table's first row of that status. */
function codeOf(status: number): ErrorCode {
  const codes = Object.keys(errorTable).filter(isErrorCode)
  return (
    codes.find(code => 'status' in errorTable[code] && errorTable[code].status === status) ?? (status >= 500 ? 'internal' : 'bad_request')
  )
}

function retryAfterOf(headers: Headers): number | null {
  const value = headers.get('retry-after') ?? ''
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now()
  return Number.isNaN(ms) ? null : Math.min(Math.max(0, ms), maxRetryAfterMs)
}
