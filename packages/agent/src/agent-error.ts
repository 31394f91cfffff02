/** How a model or a run fails: once, with what was said until then. */
import { agentFailed, type ErrorCode, type Failure, RivuletError, toStorableText } from '@rivulet/protocol'
import type { ModelResult } from './model/model.ts'

export type AgentErrorOptions = {
  /** The platform retries `agent_error`; docs/writing-agents.md lists the others. Default `agent_error`. */
  code?: ErrorCode
  cause?: unknown
  /** For viewers, where the message repeats another program's text. Default: the message. */
  publicMessage?: string | undefined
  /** HTTP status of the response, when there was one. */
  status?: number | undefined
  /** Whether the same request may succeed later. Default false. */
  isRetryable?: boolean
  /** The delay that the provider requests before a retry. */
  retryAfterMs?: number | undefined
  partial?: ModelResult
}

export class AgentError extends RivuletError {
  readonly status: number | undefined
  readonly isRetryable: boolean
  readonly retryAfterMs: number | undefined
  /** The output produced before the failure; absent when the error was not thrown by a stream. */
  readonly partial: ModelResult | undefined

  constructor(
    message: string,
    { code = 'agent_error', cause, publicMessage, status, isRetryable = false, retryAfterMs, partial }: AgentErrorOptions = {},
  ) {
    // Whole, because the worker removes secrets from it before it cuts it.
    super(code, toStorableText(message), { publicMessage, ...(cause !== undefined && { cause }) })
    this.name = 'AgentError'
    this.status = status
    this.isRetryable = isRetryable
    this.retryAfterMs = retryAfterMs
    this.partial = partial
  }

  static of(error: unknown): AgentError {
    if (error instanceof AgentError) return error
    const { code, publicMessage } = error instanceof RivuletError ? error : { code: undefined, publicMessage: agentFailed }
    return new AgentError(messageOf(error), { cause: error, publicMessage, ...(code && { code }) })
  }

  withPartial(partial: ModelResult): AgentError {
    const { code, message, publicMessage, status, isRetryable, retryAfterMs } = this
    return new AgentError(message, { code, cause: this, publicMessage, status, isRetryable, retryAfterMs, partial })
  }

  /** As viewers get it. */
  get failure(): Failure {
    return { code: this.code, message: this.publicMessage }
  }
}

/** The text of any thrown value. Never throws. */
export function messageOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return toStorableText(String(error))
    // fetch throws a TypeError with the text "fetch failed"; the reason is in its cause.
    const cause = error.cause instanceof Error && error.name === 'TypeError' ? `: ${error.cause.message}` : ''
    return toStorableText(`${error.message}${cause}`)
  } catch {
    return 'The thrown value cannot be converted to text'
  }
}
