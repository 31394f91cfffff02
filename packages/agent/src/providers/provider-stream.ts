/**
 * One response over HTTP: requested, retried where a retry may help, read, and ended as complete, aborted or failed.
 *
 * It is retried only while it has emitted nothing, so a reader never receives two beginnings. Once the provider has sent a stop reason, the
 * response is complete however the connection ends. A connection that ends before that is a failure that keeps the partial output.
 */
import { custom, type Failure, type StopReason, type Update, type Usage } from '@rivulet/protocol'
import { AgentError } from '../agent-error.ts'
import { createEventStream, type EventSink } from '../model/event-stream.ts'
import type { ModelLimits } from '../model/limits.ts'
import type { ModelResult, ModelStream } from '../model/model.ts'
import { createResponseWriter, type ResponseWriter } from '../model/response-writer.ts'
import { sleep } from '../sleep.ts'
import { callProvider, type ProviderCall } from './provider-call.ts'
import { type RetryPolicy, retryDelayMs } from './retry-delay.ts'
import type { ServerEvent } from './server-events.ts'

/** Reads one provider's events and passes their content to a writer. */
export type ResponseReader = {
  /** Returns whether the response is over; nothing after that is read. Throws the errors that the provider sends inside the stream. */
  read(event: ServerEvent): boolean
  /** Writes what was held back. May be called more than once. */
  flush(): void
  stopReason(): { unified: StopReason; raw: string } | null
  usage(): Usage | undefined
}

type ProviderStreamOptions = {
  /** Its name, in the provider's spelling. */
  model: string
  call: () => ProviderCall
  createReader: (writer: ResponseWriter) => ResponseReader
  /** The tool that a call names. */
  nameOf: (wireName: string) => string
  signal: AbortSignal | undefined
  retry: RetryPolicy
  idleTimeoutMs: number
  limits: ModelLimits
}

/** How long a provider may take to send the usage after the stop reason. */
const lingerMs = 5_000

export function streamResponse(options: ProviderStreamOptions): ModelStream {
  const { model, call, createReader, nameOf, signal, retry, idleTimeoutMs, limits } = options
  return createEventStream(produce, { signal })

  async function produce({ emit, ready, signal }: EventSink<Update>): Promise<ModelResult> {
    const plain = createResponseWriter(emit, limits.blocks)
    const writer: ResponseWriter = {
      ...plain,
      open: (content, metadata) =>
        plain.open(content.type === 'tool_request' ? { ...content, name: nameOf(content.name) } : content, metadata),
    }
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
          if (!isWorthIt || writer.hasOutput() || signal.aborted) throw error
          const delayMs = Math.round(retryDelayMs(retries, error.retryAfterMs, retry))
          emit(
            custom('model_retry', {
              retry: retries + 1,
              delayMs,
              reason: error.publicMessage,
              ...(error.status && { status: error.status }),
            }),
          )
          await sleep(delayMs, signal)
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
      if (unified === 'length' && !writer.hasOutput()) throw new AgentError('The model reached its length limit before it sent any output')
      return writer.finish({ status: 'complete', stopReason: unified, rawStopReason: raw, usage: reader.usage(), model })
    }

    function finishEarly(status: 'aborted' | 'failed', error?: Failure): ModelResult {
      try {
        reader.flush()
      } catch {
        // What was held back exceeds a limit too; it is dropped.
      }
      const stopReason = status === 'aborted' ? 'aborted' : 'error'
      return writer.finish({ status, stopReason, usage: reader.usage(), model, ...(error && { error }) })
    }
  }
}
