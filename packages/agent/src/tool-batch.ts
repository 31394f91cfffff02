/**
 * The calls of one response, answered: each exactly once, in its own message. They start in the order in which they were asked for, run side
 * by side, and end as they end; where one of the tools is sequential, they run one by one.
 */
import type { ContentOf, Span, StopReason, Update } from '@rivulet/protocol'
import type { SpokenMessage } from './model.ts'
import type { Tool } from './tool.ts'
import { abortedCall, type CallAnswering, executeCall, refuseCall } from './tool-execution.ts'
import type { Toolbox } from './toolbox.ts'

export type RequestedCall = { request: ContentOf<'tool_request'>; isComplete: boolean }

export type BatchContext = {
  toolbox: Toolbox
  signal: AbortSignal
  emit: (update: Update) => void
  nextIndex: () => number
  /** What the calls are a part of. */
  span?: Span | undefined
}

export function requestsIn(messages: readonly SpokenMessage[]): RequestedCall[] {
  return messages.flatMap(({ content, status }) =>
    content.type === 'tool_request' ? [{ request: content, isComplete: status === 'complete' }] : [],
  )
}

export async function answerCalls(calls: readonly RequestedCall[], stopReason: StopReason, context: BatchContext): Promise<void> {
  const { toolbox, signal, emit, nextIndex, span } = context
  // A signal for each call: whatever its tool hangs on it stays its own, and a hundred of them do not look like a leak.
  const running = new Set<AbortController>()
  const abortAll = () => running.forEach(abort => void abort.abort(signal.reason))
  signal.addEventListener('abort', abortAll)
  try {
    const isOneByOne = calls.some(({ request }) => toolbox.get(request.name)?.sequential)
    if (!isOneByOne) await Promise.all(calls.map(answer))
    else for (const call of calls) await answer(call)
  } finally {
    signal.removeEventListener('abort', abortAll)
  }

  async function answer({ request, isComplete }: RequestedCall): Promise<void> {
    const answering = { request, index: nextIndex(), emit }
    const tool = toolbox.get(request.name)
    if (stopReason !== 'tool_use') refuseCall(answering, reasonNotToRun(stopReason))
    else if (!isComplete) refuseCall(answering, `Not run: the arguments are not valid JSON: ${(request.raw ?? '').slice(0, 500)}`)
    else if (!tool) refuseCall(answering, `There is no tool named ${request.name}. There is: ${toolbox.names().join(', ') || 'none'}.`)
    else await execute(answering, tool)
  }

  async function execute(answering: CallAnswering, tool: Tool): Promise<void> {
    const abort = new AbortController()
    if (signal.aborted) abort.abort(signal.reason)
    running.add(abort)
    const { name, callId } = answering.request
    const attributes = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': name, 'gen_ai.tool.call.id': callId }
    const calling = span?.start(`execute_tool ${name}`, { attributes })
    const isError = await executeCall(answering, tool, abort.signal, calling?.traceparent)
    calling?.end(isError ? { failure: { code: 'tool_failed' } } : {})
    running.delete(abort)
  }
}

function reasonNotToRun(stopReason: StopReason): string {
  if (stopReason === 'aborted') return abortedCall
  if (stopReason === 'length') return 'Not run: the response was cut off at its length limit. Make the call again, with shorter arguments.'
  return `Not run: the response ended with ${stopReason}.`
}
