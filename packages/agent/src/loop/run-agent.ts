/**
 * The agent loop: calls the model, runs the tools it requests, and calls it again with their results, until it stops for another reason.
 *
 * It emits the protocol's updates, with one numbering for the whole run. A tool runs only when the response that requests it is complete and
 * its arguments are valid. Every call gets exactly one response: a result, or an error that the next request shows to the model. Requests are
 * built from whole messages, never from deltas. No state outlives a run, so concurrent runs can share a model and tools. In a turn, each
 * response and each result is a step of it, and inputs that come meanwhile are part of the next request.
 */
import { done, RivuletError, type StopReason, start, sumUsage, text, type Update, type Usage } from '@rivulet/protocol'
import type { Span } from '@rivulet/runtime/trace'
import { AgentError } from '../agent-error.ts'
import { createEventStream, type EventSink, type EventStream } from '../model/event-stream.ts'
import type { HistoryMessage, Model, ModelRequest, ModelResult, SpokenMessage } from '../model/model.ts'
import { jsonSchemaOf, type OutputSchema, parseOutput } from '../model/output-schema.ts'
import { resultOf } from '../model/response-writer.ts'
import type { Approve } from '../tools/approval.ts'
import type { Tool } from '../tools/tool.ts'
import { requestsIn, runCalls } from '../tools/tool-batch.ts'
import type { ToolHooks } from '../tools/tool-execution.ts'
import { createToolbox, type Toolbox } from '../tools/toolbox.ts'
import { createBackgroundCalls } from './background-calls.ts'
import { type Compaction, compactMessages } from './compaction.ts'
import { type AgentTurn, asking, directly, durably, spawning, type TakeDurably, taking } from './durable.ts'
import { respond } from './model-response.ts'
import type { Observer, ObserverFailurePolicy } from './observers.ts'
import { createRunEmitter } from './run-emitter.ts'

export type RunOptions = RunSettings & RunPlace

export type RunSettings = Omit<ModelRequest, 'tools' | 'messages' | 'schema'> &
  ToolHooks & {
    model: Model
    tools?: readonly Tool[]
    /** The text of the last response is JSON that matches it, and the result has its value as `object`; another text fails the run. */
    schema?: OutputSchema | undefined
    /** Decides about each call of a tool before it runs: it runs, a person is asked first, or it is denied. Default: it runs. */
    approve?: Approve
    /** Shortens the conversation when it has grown too long. Default: it is not shortened. */
    compaction?: Compaction
    /** A run that still requests tools after this many requests to the model fails. Default 20. */
    maxSteps?: number
    signal?: AbortSignal | undefined
    /** Called with every update, synchronously, in this order. */
    observers?: readonly (Observer | ((update: Update) => void))[]
    /** Default `ignore`. */
    onObserverError?: ObserverFailurePolicy
    /** The parent span: every call of the model and of a tool gets a span below it. In a worker: `turn.span`. */
    span?: Span | undefined
  }

/** In a turn, or anywhere. */
type RunPlace =
  | { turn?: undefined; messages: readonly HistoryMessage[] }
  | {
      /** Makes the run durable: an attempt after a crash repeats no response that was complete and no tool that had a result. */
      turn: AgentTurn
      /** Default: the turn's history. */
      messages?: readonly HistoryMessage[]
      /** What the names of its steps begin with; for a run that not every attempt makes. Default `run`. */
      name?: string
    }

export type RunResult = ModelResult & {
  /** How many requests the run made to the model. */
  steps: number
  /** The value of the last response, in a run with a `schema` that was not aborted. */
  object?: unknown
  /** Present under `onObserverError: 'collect'`, when an observer failed. */
  observerErrors?: unknown[]
}

/** The result: `messages` of the whole run, `text` of its last step, `usage` as the sum of all steps. */
export type RunStream = EventStream<Update, RunResult>

export function runAgent(options: RunOptions): RunStream {
  const { maxSteps = 20, turn } = options
  if (!Number.isInteger(maxSteps) || maxSteps < 1) throw new RivuletError('validation_failed', 'maxSteps must be an integer of at least 1')
  const toolbox = createToolbox(options.tools ?? [])
  // Named here, because the number of a run is that of its call.
  const name = turn?.nameFor(options.name ?? 'run')
  const produce = (sink: EventSink<Update>) =>
    run(
      {
        ...options,
        maxSteps,
        toolbox,
        take: turn ? durably(turn, `${name}`, sink.settled) : directly,
        ask: asking(turn, `${name}`, sink.settled),
        spawn: spawning(turn, `${name}`, sink.settled),
        takeInputs: taking(turn, `${name}`, sink.settled),
      },
      sink,
    )
  return createEventStream(produce, { signal: signalOf(options) })
}

function signalOf({ signal, turn }: RunOptions): AbortSignal | undefined {
  return signal && turn ? AbortSignal.any([signal, turn.signal]) : (signal ?? turn?.signal)
}

type Run = RunOptions & {
  maxSteps: number
  toolbox: Toolbox
  take: TakeDurably
  ask: ReturnType<typeof asking>
  spawn: ReturnType<typeof spawning>
  takeInputs: ReturnType<typeof taking>
}

async function run(options: Run, sink: EventSink<Update>): Promise<RunResult> {
  const {
    model,
    toolbox,
    maxSteps,
    observers = [],
    onObserverError: policy = 'ignore',
    turn,
    span = turn?.span,
    take,
    approve,
    ask,
    spawn,
    takeInputs,
    compaction,
    beforeTool,
    afterTool,
    schema,
  } = options
  const abort = new AbortController()
  const { signal } = abort
  const forwardAbort = () => abort.abort(sink.signal.reason)
  if (sink.signal.aborted) forwardAbort()
  else sink.signal.addEventListener('abort', forwardAbort, { once: true })
  const emitter = createRunEmitter({ sink, observers, policy, onFatal: () => abort.abort(), holdsEnds: turn !== undefined })
  const background = createBackgroundCalls({ take, emitter })
  let usage: Usage | undefined
  let steps = 0
  /** Where the messages of the latest step begin. */
  let stepFrom = 0
  /** Inputs that came during the run, each behind so many messages of it. */
  const taken: { behind: number; inputs: readonly HistoryMessage[] }[] = []

  try {
    const stopReason = await loop(options.messages ?? (await turn?.history()) ?? [])
    const fatal = emitter.fatal()
    if (fatal) throw fatal.error
    if (stopReason === 'aborted') emitAborted()
    const result = summarize(stopReason)
    return schema && stopReason !== 'aborted' ? { ...result, object: await parseOutput(schema, result.text) } : result
  } catch (error) {
    const failed = AgentError.of(error)
    emitter.closeOpen('failed', failed.failure)
    throw failed.withPartial(summarize('error'))
  } finally {
    // Only a run that failed or was aborted leaves calls in the background.
    if (background.isPending()) abort.abort()
    await background.settled()
    sink.signal.removeEventListener('abort', forwardAbort)
    emitter.release()
    emitter.end()
  }

  async function loop(history: readonly HistoryMessage[]): Promise<StopReason> {
    /** What the model is shown: these messages, and what the run has said from an index on. */
    let shown = { messages: history, from: 0 }
    let latest: Usage | undefined
    while (!signal.aborted) {
      if (steps === maxSteps)
        throw new AgentError(`The model still requested tools after ${maxSteps} steps (maxSteps)`, { code: 'too_many_steps' })
      steps += 1
      if (compaction) {
        const compacted = await compactMessages(`compact ${steps}`, compaction, messagesOf(shown), { take, emitter, signal, usage: latest })
        if (compacted) {
          shown = { messages: compacted, from: emitter.nextIndex() }
          taken.length = 0
        }
      }
      turn?.usage?.checkBudget()
      stepFrom = emitter.nextIndex()
      const request = requestWith(messagesOf(shown))
      const {
        stopReason,
        failure,
        usage: own,
      } = await respond(`model ${steps}`, request, { model, emitter, signal, ready: sink.ready, take, noteUsage: turn?.usage?.note, span })
      latest = own
      usage = sumUsage([usage, own])
      const calls = requestsIn(emitter.messages().slice(stepFrom))
      const hooks = { beforeTool, afterTool }
      await runCalls(calls, stopReason, {
        toolbox,
        emitter,
        signal,
        take,
        round: steps,
        span,
        turn,
        approve,
        ask,
        spawn,
        hooks,
        background,
      })
      if (failure) throw failure
      // Only calls can continue the run, and only after these two stop reasons. After `length` the model may repeat a call that was cut off.
      const isOver = calls.length === 0 || (stopReason !== 'tool_use' && stopReason !== 'length')
      // An input that came during the last message is answered, too, unless the run has no request left: then it is a turn of its own.
      const inputs = steps < maxSteps && !signal.aborted ? await takeInputs(steps + 1) : []
      if (inputs.length > 0) taken.push({ behind: emitter.messages().length, inputs })
      const hasNoMore = isOver && inputs.length === 0
      if (hasNoMore && (stopReason !== 'stop' || !background.isPending())) return stopReason
      await background.notify(`notices ${steps}`, { waits: hasNoMore })
    }
    return 'aborted'
  }

  function messagesOf({ messages, from }: { messages: readonly HistoryMessage[]; from: number }): HistoryMessage[] {
    return [...messages, ...withTaken(emitter.messages().map(asHistory), from)]
  }

  function requestWith(messages: HistoryMessage[]): ModelRequest {
    const { system, toolChoice, maxOutputTokens, temperature } = options
    return {
      messages,
      ...(system !== undefined && { system }),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
      ...(temperature !== undefined && { temperature }),
      ...(schema && { schema: jsonSchemaOf(schema) }),
      tools: toolbox.all(),
      // Only in the first request: with a required tool in every request, the run would never end.
      ...(toolChoice && steps === 1 && { toolChoice }),
    }
  }

  function withTaken(messages: readonly HistoryMessage[], from: number): HistoryMessage[] {
    const cuts = [from, ...taken.map(({ behind }) => behind), messages.length]
    return cuts.slice(1).flatMap((to, i) => [...messages.slice(cuts[i], to), ...(taken[i]?.inputs ?? [])])
  }

  /** An aborted run ends with a message whose stop reason is `aborted`, even when no message was open. */
  function emitAborted(): void {
    if (emitter.messages().some(({ stopReason }) => stopReason === 'aborted')) return
    const index = emitter.nextIndex()
    emitter.emit(start(index, text()))
    emitter.emit(done(index, { status: 'aborted', stopReason: 'aborted' }))
  }

  function summarize(stopReason: StopReason): RunResult {
    const messages = emitter.messages()
    const errors = emitter.observerErrors()
    const latest = resultOf(messages.slice(stepFrom), stopReason, usage)
    return { ...resultOf(messages, stopReason, usage), text: latest.text, steps, ...(errors.length > 0 && { observerErrors: errors }) }
  }
}

/** The model sees a call with invalid JSON arguments without its arguments; the error response to that call quotes them. */
function asHistory(message: SpokenMessage): HistoryMessage {
  const { content, status } = message
  if (content.type !== 'tool_request' || status === 'complete') return message
  return { author: 'agent', content: { type: 'tool_request', callId: content.callId, name: content.name, arguments: {} } }
}
