/**
 * The life of one response over HTTP: asked for, asked again where that can help, read, and ended in one of three ways.
 *
 * It is asked again only as long as nothing was said, so nobody ever hears two beginnings. Once the provider has said why it stopped, the
 * response is complete, however the connection ends; a connection that ends before that is a failure that keeps what was said.
 */
import type { Failure, StopReason, Update, Usage } from '@rivulet/protocol'
import { sleep } from './abort.ts'
import { AgentError } from './agent-error.ts'
import { createEventStream, type EventSink } from './event-stream.ts'
import type { ModelLimits } from './limits.ts'
import type { ModelResult, ModelStream } from './model.ts'
import { callProvider, type ProviderCall } from './provider-call.ts'
import { createResponseWriter, type ResponseWriter } from './response-writer.ts'
import { type RetryPolicy, retryDelayMs } from './retry-delay.ts'
import type { ServerEvent } from './server-events.ts'

/** Understands one provider's events, and says them through a writer. */
export type ResponseReader = {
  /** Answers whether the response is over; nothing after that is read. Throws an error that the provider tells within the stream. */
  read(event: ServerEvent): boolean
  /** Says what was held back; may be called again. */
  flush(): void
  stopReason(): { unified: StopReason; raw: string } | null
  usage(): Usage | undefined
}

export type ProviderStreamOptions = {
  call: () => ProviderCall
  createReader: (writer: ResponseWriter) => ResponseReader
  signal: AbortSignal | undefined
  retry: RetryPolicy
  idleTimeoutMs: number
  limits: ModelLimits
}

/** How long a provider that has said why it stopped may still take to tell the usage. */
const lingerMs = 5_000

export function streamResponse({ call, createReader, signal, retry, idleTimeoutMs, limits }: ProviderStreamOptions): ModelStream {
  return createEventStream(produce, { signal })

  async function produce({ emit, ready, signal }: EventSink<Update>): Promise<ModelResult> {
    const writer = createResponseWriter(emit, limits.blocks)
    let reader = createReader(writer)
    try {
      await readWithRetries()
      reader.flush()
      return finishComplete()
    } catch (error) {
      if (signal.aborted) return finishEarly('aborted')
      const failure = AgentError.of(error)
      throw failure.withPartial(finishEarly('failed', failure.failure))
    }

    async function readWithRetries(): Promise<void> {
      for (let retries = 0; ; retries += 1) {
        try {
          return await readOnce()
        } catch (error) {
          const isWorthIt = error instanceof AgentError && error.isRetryable && retries < retry.maxRetries
          if (!isWorthIt || writer.hasSpoken() || signal.aborted) throw error
          await sleep(retryDelayMs(retries, error.retryAfterMs, retry), signal)
          reader = createReader(writer)
        }
      }
    }

    async function readOnce(): Promise<void> {
      const patienceMs = () => (reader.stopReason() ? Math.min(lingerMs, idleTimeoutMs) : idleTimeoutMs)
      try {
        for await (const event of callProvider(call(), { signal, limits, patienceMs })) {
          if (reader.read(event)) break
          await ready()
        }
      } catch (error) {
        if (!reader.stopReason() || signal.aborted) throw error
      }
      if (!reader.stopReason()) throw new AgentError('The stream ended before the model had finished', { isRetryable: true })
    }

    function finishComplete(): ModelResult {
      const { unified = 'other', raw } = reader.stopReason() ?? {}
      if (unified === 'length' && !writer.hasSpoken()) throw new AgentError('The model reached its length limit before it said anything')
      return writer.finish({ status: 'complete', stopReason: unified, rawStopReason: raw, usage: reader.usage() })
    }

    function finishEarly(status: 'aborted' | 'failed', error?: Failure): ModelResult {
      try {
        reader.flush()
      } catch {
        // What it held back was too much as well.
      }
      const stopReason = status === 'aborted' ? 'aborted' : 'error'
      return writer.finish({ status, stopReason, usage: reader.usage(), ...(error && { error }) })
    }
  }
}
