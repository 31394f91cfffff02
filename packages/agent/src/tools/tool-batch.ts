/**
 * Runs the tool calls of one response. Each call gets exactly one `tool_response` message.
 *
 * The messages start in the order of the calls. The calls run in parallel, or one by one when one of the tools is sequential.
 */
import { type ContentOf, custom, type Json, type StopReason } from '@rivulet/protocol'
import type { Span } from '@rivulet/runtime/trace'
import type { BackgroundCalls } from '../loop/background-calls.ts'
import type { AgentTurn, TakeDurably } from '../loop/durable.ts'
import type { RunEmitter } from '../loop/run-emitter.ts'
import type { SpokenMessage } from '../model/model.ts'
import { type Approve, type DecideDeps, type Decision, decideCalls } from './approval.ts'
import type { GivenRound } from './round.ts'
import { runRounds } from './rounds.ts'
import type { Tool } from './tool.ts'
import { abortedCall, executeCall, type OpenResponse, openResponse, type ToolHooks, type ToolOutcome } from './tool-execution.ts'
import type { Toolbox } from './toolbox.ts'

type RequestedCall = { request: ContentOf<'tool_request'>; isComplete: boolean }

type BatchContext = {
  toolbox: Toolbox
  emitter: Pick<RunEmitter, 'emit' | 'nextIndex' | 'release'>
  signal: AbortSignal
  take: TakeDurably
  /** The number of the response. */
  round: number
  /** The parent of the spans of these calls. */
  span?: Span | undefined
  turn?: AgentTurn | undefined
  approve?: Approve | undefined
  ask: DecideDeps['ask']
  spawn: DecideDeps['spawn']
  hooks: ToolHooks
  background: BackgroundCalls
}

export function requestsIn(messages: readonly SpokenMessage[]): RequestedCall[] {
  return messages.flatMap(({ content, status }) =>
    content.type === 'tool_request' ? [{ request: content, isComplete: status === 'complete' }] : [],
  )
}

export async function runCalls(calls: readonly RequestedCall[], stopReason: StopReason, context: BatchContext): Promise<void> {
  const { toolbox, emitter, signal, take, round, span, turn, approve, ask, spawn, hooks, background } = context
  const isRunnable = ({ request, isComplete }: RequestedCall) =>
    stopReason === 'tool_use' && isComplete && toolbox.get(request.name) !== undefined
  const asked = calls.flatMap((call, i) => (isRunnable(call) ? [[questionName(i), call.request] as const] : []))
  const decisions = await decideCalls(new Map(asked), { toolbox, approve, ask, spawn })
  await Promise.all(asked.map(([name, request]) => callInRounds(name, request, decisions.get(name))))
  // One signal per call, because the listeners of a hundred tools on one signal would cause a leak warning.
  const running = new Set<AbortController>()
  const abortAll = () => running.forEach(abort => void abort.abort(signal.reason))
  signal.addEventListener('abort', abortAll)
  try {
    const isOneByOne = calls.some(({ request }) => toolbox.get(request.name)?.sequential)
    if (!isOneByOne) await Promise.all(calls.map(runCall))
    else for (const [i, call] of calls.entries()) await runCall(call, i)
  } finally {
    signal.removeEventListener('abort', abortAll)
  }

  async function runCall({ request, isComplete }: RequestedCall, position: number): Promise<void> {
    const index = emitter.nextIndex()
    const response = openResponse(request, index, emitter.emit)
    const tool = toolbox.get(request.name)
    if (stopReason !== 'tool_use') response.fail(reasonNotToRun(stopReason))
    else if (!isComplete) response.fail(`Not run: the arguments are not valid JSON: ${(request.raw ?? '').slice(0, 500)}`)
    else if (!tool) response.fail(`Unknown tool: ${request.name}. Available tools: ${toolbox.names().join(', ') || 'none'}.`)
    else await runDecided(response, request, tool, position)
    emitter.release(index)
  }

  async function runDecided(response: OpenResponse, request: ContentOf<'tool_request'>, tool: Tool, position: number): Promise<void> {
    const decision = decisions.get(questionName(position)) ?? { run: request.arguments }
    if ('fail' in decision) return void response.fail(decision.fail)
    if ('result' in decision) return void response.close({ content: decision.result, isError: false })
    if ('outcome' in decision) return void response.close(decision.outcome)
    const decided = { ...request, arguments: decision.run }
    if (tool.background) return startInBackground(response, decided, tool, position)
    await take(questionName(position), { work: () => execute(response, decided, tool), ...keeping(response.close) })
  }

  async function callInRounds(name: string, request: ContentOf<'tool_request'>, decision: Decision | undefined): Promise<void> {
    const tool = toolbox.get(request.name)
    if (!tool?.hasRounds || !decision || !('run' in decision)) return
    const decided = { ...request, arguments: decision.run }
    const call = { tool: request.name, callId: request.callId, arguments: decision.run }
    const execute = (round: GivenRound | undefined) => executeTraced(unshown, decided, tool, AbortSignal.any([signal]), round)
    decisions.set(name, { outcome: await runRounds(name, { take, ask, call, execute, isAborted: () => signal.aborted }) })
  }

  function startInBackground(response: OpenResponse, request: ContentOf<'tool_request'>, tool: Tool, position: number): void {
    const { name, callId } = request
    const progress = (update: Json) => emitter.emit(custom('background_progress', { tool: name, callId, update }))
    const unseen = { progress, close: (outcome: ToolOutcome) => outcome }
    const outcome = take(questionName(position), {
      work: () => executeTraced(unseen, request, tool, AbortSignal.any([signal])),
      ...keeping(unseen.close),
    })
    background.start({ callId, tool: name, outcome })
    response.close({ content: startedInBackground, isError: false })
  }

  function questionName(position: number): string {
    return `tool ${round}.${position + 1}`
  }

  async function execute(response: OpenResponse, request: ContentOf<'tool_request'>, tool: Tool): Promise<ToolOutcome> {
    const abort = new AbortController()
    if (signal.aborted) abort.abort(signal.reason)
    running.add(abort)
    const outcome = await executeTraced(response, request, tool, abort.signal)
    running.delete(abort)
    return outcome
  }

  async function executeTraced(
    response: Parameters<typeof executeCall>[0],
    request: ContentOf<'tool_request'>,
    tool: Tool,
    signal: AbortSignal,
    round?: GivenRound,
  ): Promise<ToolOutcome> {
    const { name, callId } = request
    const attributes = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': name, 'gen_ai.tool.call.id': callId }
    const calling = span?.start(`execute_tool ${name}`, { attributes })
    let isFailed = false
    try {
      const outcome = await executeCall(response, request, tool, { signal, traceparent: calling?.traceparent, turn, round, ...hooks })
      isFailed = outcome.isError
      return outcome
    } finally {
      calling?.end(isFailed ? { failure: { code: 'tool_failed' } } : {})
    }
  }

  /** An error is a result too, because the model has seen it. A call that was aborted has none. */
  function keeping(close: (outcome: ToolOutcome) => ToolOutcome) {
    return {
      toMemory: (outcome: ToolOutcome) => (signal.aborted ? null : outcome),
      fromMemory: close,
    }
  }
}

/** A call in rounds has its response when it has a result. */
const unshown = { progress: () => {}, close: (outcome: ToolOutcome) => outcome }

const startedInBackground = 'Started in the background. A notice with the result follows.'

function reasonNotToRun(stopReason: StopReason): string {
  if (stopReason === 'aborted') return abortedCall
  if (stopReason === 'length') return 'Not run: the response was cut off at its length limit. Make the call again, with shorter arguments.'
  return `Not run: the response ended with ${stopReason}.`
}
