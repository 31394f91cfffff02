/**
 * The loop: ask the model, run the tools that it asks for, ask again with their results, until it stops for another reason.
 *
 * What comes out are the protocol's updates, numbered through the whole run. A tool runs only when the response that asks for it is complete
 * and its arguments are valid, and every call is answered exactly once: with a result, or with an error that the model is shown. The next
 * request is made from whole messages, never from deltas. No state outlives a run, so model and tools can be shared by any number of them.
 */
import { done, RivuletError, type Span, type StopReason, start, sumUsage, text, type Update, type Usage } from '@rivulet/protocol'
import { AgentError } from './agent-error.ts'
import { createEventStream, type EventSink, type EventStream } from './event-stream.ts'
import type { HistoryMessage, Model, ModelRequest, ModelResult, SpokenMessage } from './model.ts'
import { relayModel } from './model-relay.ts'
import type { Observer, ObserverFailurePolicy } from './observers.ts'
import { resultOf } from './response-writer.ts'
import { createRunVoice } from './run-voice.ts'
import type { Tool } from './tool.ts'
import { answerCalls, requestsIn } from './tool-batch.ts'
import { createToolbox, type Toolbox } from './toolbox.ts'

export type RunOptions = Omit<ModelRequest, 'tools'> & {
  model: Model
  tools?: readonly Tool[]
  /** Requests to the model, after which a run that still asks for tools fails. Default 20. */
  maxSteps?: number
  signal?: AbortSignal | undefined
  /** Called with every update, synchronously, in this order. */
  observers?: readonly (Observer | ((update: Update) => void))[]
  /** Default `ignore`. */
  onObserverError?: ObserverFailurePolicy
  /** What the run is a part of: every call of the model and of a tool gets a span below it. In a worker: `turn.span`. */
  span?: Span | undefined
}

export type RunResult = ModelResult & {
  /** Requests that were made to the model. */
  steps: number
  /** Where they are collected. */
  observerErrors?: unknown[]
}

/** `messages` of the result are those of the run, `text` is that of its last step, `usage` is the sum. */
export type RunStream = EventStream<Update, RunResult>

export function runAgent(options: RunOptions): RunStream {
  const { maxSteps = 20, signal } = options
  if (!Number.isInteger(maxSteps) || maxSteps < 1) throw new RivuletError('validation_failed', 'maxSteps has to be a whole number above 0')
  const toolbox = createToolbox(options.tools ?? [])
  return createEventStream(sink => run({ ...options, maxSteps, toolbox }, sink), { signal })
}

async function run(options: RunOptions & { maxSteps: number; toolbox: Toolbox }, sink: EventSink<Update>): Promise<RunResult> {
  const { model, toolbox, maxSteps, observers = [], onObserverError: policy = 'ignore', span } = options
  const abort = new AbortController()
  const { signal } = abort
  const forwardAbort = () => abort.abort(sink.signal.reason)
  if (sink.signal.aborted) forwardAbort()
  else sink.signal.addEventListener('abort', forwardAbort, { once: true })
  const voice = createRunVoice({ sink, observers, policy, onFatal: () => abort.abort() })
  let usage: Usage | undefined
  let steps = 0
  /** Where the messages of the latest step begin. */
  let stepFrom = 0

  try {
    const stopReason = await loop()
    const fatal = voice.fatal()
    if (fatal) throw fatal.error
    if (stopReason === 'aborted') sayAborted()
    return summarize(stopReason)
  } catch (error) {
    const failed = AgentError.of(error)
    voice.closeOpen('failed', failed.failure)
    throw failed.withPartial(summarize('error'))
  } finally {
    sink.signal.removeEventListener('abort', forwardAbort)
    voice.end()
  }

  async function loop(): Promise<StopReason> {
    while (!signal.aborted) {
      if (steps === maxSteps) throw new AgentError(`The model still asked for tools after ${maxSteps} steps`, { code: 'too_many_steps' })
      const { stopReason, failure } = await step()
      const calls = requestsIn(voice.messages().slice(stepFrom))
      await answerCalls(calls, stopReason, { toolbox, signal, emit: voice.emit, nextIndex: voice.nextIndex, span })
      if (failure) throw failure
      // What was said tells what happened; the stop reason alone decides what comes next.
      if (calls.length === 0 || (stopReason !== 'tool_use' && stopReason !== 'length')) return stopReason
    }
    return 'aborted'
  }

  async function step() {
    const { system, toolChoice, maxOutputTokens, temperature } = options
    steps += 1
    stepFrom = voice.nextIndex()
    const from = stepFrom
    const asked: ModelRequest = {
      messages: [...options.messages, ...voice.messages().map(asHistory)],
      ...(system !== undefined && { system }),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
      ...(temperature !== undefined && { temperature }),
      tools: toolbox.all(),
      // Of the first request only: a choice that is always required would never end.
      ...(toolChoice && steps === 1 && { toolChoice }),
    }
    const relayed = await relayModel(model, asked, { signal, hear: update => voice.emit(shift(update, from)), ready: sink.ready, span })
    usage = sumUsage([usage, relayed.usage])
    voice.closeOpen(relayed.failure ? 'failed' : signal.aborted ? 'aborted' : 'complete', relayed.failure?.failure)
    return relayed
  }

  /** An aborted run ends with a message that says so, also when nothing was open. */
  function sayAborted(): void {
    if (voice.messages().some(({ stopReason }) => stopReason === 'aborted')) return
    const index = voice.nextIndex()
    voice.emit(start(index, text()))
    voice.emit(done(index, { status: 'aborted', stopReason: 'aborted' }))
  }

  function summarize(stopReason: StopReason): RunResult {
    const messages = voice.messages()
    const errors = voice.observerErrors()
    const latest = resultOf(messages.slice(stepFrom), stopReason, usage)
    return { ...resultOf(messages, stopReason, usage), text: latest.text, steps, ...(errors.length > 0 && { observerErrors: errors }) }
  }
}

function shift(update: Update, by: number): Update {
  return update.index === undefined ? update : { ...update, index: update.index + by }
}

/** A call whose arguments were no JSON is shown to the model without them: the error that answers it tells the rest. */
function asHistory(message: SpokenMessage): HistoryMessage {
  const { content, status } = message
  if (content.type !== 'tool_request' || status === 'complete') return message
  return { author: 'agent', content: { type: 'tool_request', callId: content.callId, name: content.name, arguments: {} } }
}
