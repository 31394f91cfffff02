/**
 * Every way in which something can go wrong, in one table: the code is for programs, the message for people, the cause for us.
 * A message that repeats another program's text has a `publicMessage` beside it, which is what viewers get.
 *
 * `status` is the HTTP status of a response with this code; codes without one end a turn or a stream.
 * `retry` states whether the same request may succeed later; `afterSeconds` becomes the header `Retry-After`.
 */
export type ErrorRow = { status?: number; retry: boolean; afterSeconds?: number }

export const errorTable = {
  bad_request: { status: 400, retry: false },
  bad_url: { status: 400, retry: false },
  bad_cursor: { status: 400, retry: false },
  invalid_json: { status: 400, retry: false },
  invalid_utf8: { status: 400, retry: false },
  invalid_characters: { status: 400, retry: false },
  json_too_deep: { status: 400, retry: false },
  json_too_complex: { status: 400, retry: false },
  forbidden_key: { status: 400, retry: false },
  validation_failed: { status: 400, retry: false },
  too_many_tasks: { status: 400, retry: false },
  idempotency_key_invalid: { status: 400, retry: false },
  unauthorized: { status: 401, retry: false },
  forbidden: { status: 403, retry: false },
  not_found: { status: 404, retry: false },
  task_not_found: { status: 404, retry: false },
  model_not_found: { status: 404, retry: false },
  method_not_allowed: { status: 405, retry: false },
  not_acceptable: { status: 406, retry: false },
  request_timeout: { status: 408, retry: true },
  task_busy: { status: 409, retry: true },
  name_taken: { status: 409, retry: false },
  agent_in_use: { status: 409, retry: false },
  file_in_use: { status: 409, retry: false },
  in_flight: { status: 409, retry: true, afterSeconds: 1 },
  already_answered: { status: 409, retry: false },
  feed_expired: { status: 410, retry: false },
  wait_closed: { status: 410, retry: false },
  precondition_failed: { status: 412, retry: false },
  body_too_large: { status: 413, retry: false },
  state_too_large: { status: 413, retry: false },
  value_too_large: { status: 413, retry: false },
  store_full: { status: 413, retry: false },
  url_too_long: { status: 414, retry: false },
  unsupported_media_type: { status: 415, retry: false },
  range_not_satisfiable: { status: 416, retry: false },
  expectation_failed: { status: 417, retry: false },
  unknown_agent: { status: 422, retry: false },
  idempotency_key_reused: { status: 422, retry: false },
  unsupported_version: { status: 426, retry: false },
  precondition_required: { status: 428, retry: false },
  too_many_turns: { status: 429, retry: true, afterSeconds: 5 },
  too_many_signals: { status: 429, retry: true, afterSeconds: 5 },
  too_many_streams: { status: 429, retry: true, afterSeconds: 5 },
  quota_exceeded: { status: 429, retry: true, afterSeconds: 5 },
  rate_limited: { status: 429, retry: true, afterSeconds: 1 },
  headers_too_large: { status: 431, retry: false },
  internal: { status: 500, retry: true },
  dependency_unavailable: { status: 503, retry: true, afterSeconds: 2 },
  overloaded: { status: 503, retry: true, afterSeconds: 5 },
  draining: { status: 503, retry: true, afterSeconds: 1 },

  agent_error: { retry: true },
  model_refused: { retry: false },
  too_many_steps: { retry: false },
  worker_lost: { retry: true },
  stream_backpressure: { retry: true },
  deadline_exceeded: { retry: false },
  secrets_unreadable: { retry: false },
  budget_exceeded: { retry: false },
  output_too_large: { retry: false },
  index_out_of_order: { retry: false },
  delta_type_mismatch: { retry: false },
  message_closed: { retry: false },
  message_not_started: { retry: false },
  turn_over: { retry: false },
  bad_call: { retry: false },
  step_too_large: { retry: false },
  too_many_waits: { retry: false },
  too_many_children: { retry: false },
  wait_expired: { retry: false },
  bad_event: { retry: false },
  result_rejected: { retry: false },
  offset_mismatch: { retry: true },
  canceled: { retry: false },
  unreachable: { retry: true },
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof errorTable

export type ErrorDetail = { path: string; reason: string }

/** What viewers get in place of an exception's text that was not meant for them. */
export const agentFailed = 'The agent failed'

export type RivuletErrorOptions = {
  details?: readonly ErrorDetail[]
  cause?: unknown
  /** For viewers, where the message is not for them. Default: the message. */
  publicMessage?: string | undefined
}

const brand = Symbol.for('rivulet.error')

export class RivuletError extends Error {
  readonly code: ErrorCode
  readonly details: readonly ErrorDetail[] | undefined
  readonly publicMessage: string

  constructor(code: ErrorCode, message: string, options: RivuletErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.name = 'RivuletError'
    this.code = code
    this.details = options.details
    this.publicMessage = options.publicMessage ?? message
  }

  get [brand](): true {
    return true
  }

  get row(): ErrorRow {
    return errorTable[this.code]
  }

  /** Whether the same request, or the same turn, may succeed later. */
  get retryable(): boolean {
    return this.row.retry
  }
}

// An error of another copy of this package is an instance, too: a bundle has a copy of its own. Subclasses keep the usual rule.
Object.defineProperty(RivuletError, Symbol.hasInstance, {
  value(this: unknown, value: unknown): boolean {
    if (this !== RivuletError) return Function.prototype[Symbol.hasInstance].call(this as typeof RivuletError, value)
    return typeof value === 'object' && value !== null && brand in value
  },
})

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(errorTable, value)
}
