/** How a model or a run fails: once, with what was said until then. */
import { type Failure, RivuletError, toStorableText } from '@rivulet/protocol'
import type { ModelResult } from './model.ts'

const maxMessageLength = 2_000

export type AgentErrorOptions = {
  /** What the platform makes of it: `agent_error` is tried again, the others are not. Default `agent_error`. */
  code?: 'agent_error' | 'model_refused' | 'too_many_steps'
  cause?: unknown
  /** HTTP status of the answer, when there was one. */
  status?: number | undefined
  /** Whether the same request may work later. Default false. */
  isRetryable?: boolean
  /** How long the provider asks us to wait. */
  retryAfterMs?: number | undefined
  partial?: ModelResult
}

export class AgentError extends RivuletError {
  declare readonly code: NonNullable<AgentErrorOptions['code']>
  readonly status: number | undefined
  readonly isRetryable: boolean
  readonly retryAfterMs: number | undefined
  /** What was said before the failure; absent where nothing could be. */
  readonly partial: ModelResult | undefined

  constructor(
    message: string,
    { code = 'agent_error', cause, status, isRetryable = false, retryAfterMs, partial }: AgentErrorOptions = {},
  ) {
    super(code, toStorableText(message.slice(0, maxMessageLength)), cause === undefined ? {} : { cause })
    this.name = 'AgentError'
    this.status = status
    this.isRetryable = isRetryable
    this.retryAfterMs = retryAfterMs
    this.partial = partial
  }

  static of(error: unknown): AgentError {
    if (error instanceof AgentError) return error
    return new AgentError(messageOf(error), { cause: error })
  }

  withPartial(partial: ModelResult): AgentError {
    const { code, message, status, isRetryable, retryAfterMs } = this
    return new AgentError(message, { code, cause: this, status, isRetryable, retryAfterMs, partial })
  }

  get failure(): Failure {
    return { code: this.code, message: this.message }
  }
}

/** A sentence for people, whatever was thrown. */
export function messageOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return toStorableText(String(error))
    // fetch says only "fetch failed"; what happened is in its cause.
    const cause = error.cause instanceof Error && error.name === 'TypeError' ? `: ${error.cause.message}` : ''
    return toStorableText(`${error.message}${cause}`)
  } catch {
    return 'Something was thrown that has no text'
  }
}
