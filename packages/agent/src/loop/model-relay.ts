/** Forwards a model's updates and returns how its stream ended. Never throws: a model that fails, or that ignores an abort, is a return value too. */
import type { StopReason, Update, Usage } from '@rivulet/protocol'
import type { Span } from '@rivulet/runtime/trace'
import { AgentError } from '../agent-error.ts'
import type { Model, ModelRequest } from '../model/model.ts'

/** How long a model may take to close its open messages after an abort. After that its stream is abandoned. */
const graceMs = 1_000

export type Relayed = { stopReason: StopReason; usage?: Usage | undefined; failure?: AgentError }

type RelayOptions = {
  signal: AbortSignal
  onUpdate: (update: Update) => void
  ready: () => Promise<void>
  /** The parent of the span of this call. */
  span?: Span | undefined
}

export async function relayModel(model: Model, request: ModelRequest, { span, ...options }: RelayOptions): Promise<Relayed> {
  const attributes = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': model.name }
  const calling = span?.start(`chat ${model.name}`, { kind: 'client', attributes })
  const relayed = await relay(model, request, options, calling?.traceparent)
  const { usage: { inputTokens, outputTokens } = {}, failure, stopReason } = relayed
  const learned = {
    'gen_ai.response.finish_reason': stopReason,
    ...(inputTokens !== undefined && { 'gen_ai.usage.input_tokens': inputTokens }),
    ...(outputTokens !== undefined && { 'gen_ai.usage.output_tokens': outputTokens }),
  }
  calling?.end({ failure: failure?.failure, attributes: learned })
  return relayed
}

async function relay(
  model: Model,
  request: ModelRequest,
  { signal, onUpdate, ready }: Omit<RelayOptions, 'span'>,
  traceparent: string | undefined,
): Promise<Relayed> {
  const patience = createPatience(signal)
  let iterator: AsyncIterator<Update> | undefined
  try {
    const stream = model.stream(request, { signal, traceparent })
    iterator = stream[Symbol.asyncIterator]()
    for (;;) {
      const next = await patience.wait(iterator.next())
      if (next.done) break
      onUpdate(next.value)
      await ready()
    }
    // Only now: once its result is requested, a stream no longer waits for its reader.
    const { stopReason, usage } = await patience.wait(stream.result)
    return { stopReason, usage }
  } catch (error) {
    // Not awaited: the iterator may be what hangs.
    iterator?.return?.()?.catch(() => {})
    if (signal.aborted) return { stopReason: 'aborted' }
    const failure = AgentError.of(error)
    return { stopReason: 'error', usage: failure.partial?.usage, failure }
  } finally {
    patience.end()
  }
}

/** Waits for promises one by one until `graceMs` after the abort. All waits share one abort listener, because there is a wait for every token. */
function createPatience(signal: AbortSignal): { wait<T>(promise: Promise<T>): Promise<T>; end(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isOver = false
  let giveUp: () => void = () => {}
  if (signal.aborted) startTimer()
  else signal.addEventListener('abort', startTimer, { once: true })
  return { wait, end }

  function wait<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      giveUp = () => reject(signal.reason)
      promise.then(resolve, reject)
      if (isOver) giveUp()
    })
  }

  function startTimer(): void {
    timer = setTimeout(() => {
      isOver = true
      giveUp()
    }, graceMs)
  }

  function end(): void {
    clearTimeout(timer)
    signal.removeEventListener('abort', startTimer)
  }
}
