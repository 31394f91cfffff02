/** Passes on what a model says, and answers how it ended. Never throws: a model that fails, or that does not listen to an abort, is an answer too. */
import type { Span, StopReason, Update, Usage } from '@rivulet/protocol'
import { AgentError } from './agent-error.ts'
import type { Model, ModelRequest } from './model.ts'

/** How long a model may take to close what it has open after an abort, before it is left behind. */
const graceMs = 1_000

export type Relayed = { stopReason: StopReason; usage?: Usage | undefined; failure?: AgentError }

export type RelayOptions = {
  signal: AbortSignal
  hear: (update: Update) => void
  ready: () => Promise<void>
  /** What the call is a part of. */
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
  { signal, hear, ready }: Omit<RelayOptions, 'span'>,
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
      hear(next.value)
      await ready()
    }
    // Only now: a stream whose result is asked for no longer waits for its reader.
    const { stopReason, usage } = await patience.wait(stream.result)
    return { stopReason, usage }
  } catch (error) {
    // Not waited for: it may be the one that hangs.
    iterator?.return?.()?.catch(() => {})
    if (signal.aborted) return { stopReason: 'aborted' }
    const failure = AgentError.of(error)
    return { stopReason: 'error', usage: failure.partial?.usage, failure }
  } finally {
    patience.end()
  }
}

/** Waits for one promise after the other, until some time after the abort. One listener for all of them: there is one for every token. */
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
