/**
 * Runs the tool calls of one response. Each call gets exactly one `tool_response` message.
 *
 * The messages start in the order of the calls. The calls run in parallel, or one by one when one of the tools is sequential.
 */
import type { ContentOf, StopReason, Update } from '@rivulet/protocol'
import type { Span } from '@rivulet/runtime/trace'
import type { SpokenMessage } from '../model/model.ts'
import type { Tool } from './tool.ts'
import { abortedCall, executeCall, type NumberedCall, rejectCall } from './tool-execution.ts'
import type { Toolbox } from './toolbox.ts'

export type RequestedCall = { request: ContentOf<'tool_request'>; isComplete: boolean }

export type BatchContext = {
  toolbox: Toolbox
  signal: AbortSignal
  emit: (update: Update) => void
  nextIndex: () => number
  /** The parent of the spans of these calls. */
  span?: Span | undefined
}

export function requestsIn(messages: readonly SpokenMessage[]): RequestedCall[] {
  return messages.flatMap(({ content, status }) =>
    content.type === 'tool_request' ? [{ request: content, isComplete: status === 'complete' }] : [],
  )
}

export async function runCalls(calls: readonly RequestedCall[], stopReason: StopReason, context: BatchContext): Promise<void> {
  const { toolbox, signal, emit, nextIndex, span } = context
  // One signal per call, because the listeners of a hundred tools on one signal would cause a leak warning.
  const running = new Set<AbortController>()
  const abortAll = () => running.forEach(abort => void abort.abort(signal.reason))
  signal.addEventListener('abort', abortAll)
  try {
    const isOneByOne = calls.some(({ request }) => toolbox.get(request.name)?.sequential)
    if (!isOneByOne) await Promise.all(calls.map(runCall))
    else for (const call of calls) await runCall(call)
  } finally {
    signal.removeEventListener('abort', abortAll)
  }

  async function runCall({ request, isComplete }: RequestedCall): Promise<void> {
    const call = { request, index: nextIndex(), emit }
    const tool = toolbox.get(request.name)
    if (stopReason !== 'tool_use') rejectCall(call, reasonNotToRun(stopReason))
    else if (!isComplete) rejectCall(call, `Not run: the arguments are not valid JSON: ${(request.raw ?? '').slice(0, 500)}`)
    else if (!tool) rejectCall(call, `Unknown tool: ${request.name}. Available tools: ${toolbox.names().join(', ') || 'none'}.`)
    else await execute(call, tool)
  }

  async function execute(call: NumberedCall, tool: Tool): Promise<void> {
    const abort = new AbortController()
    if (signal.aborted) abort.abort(signal.reason)
    running.add(abort)
    const { name, callId } = call.request
    const attributes = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': name, 'gen_ai.tool.call.id': callId }
    const calling = span?.start(`execute_tool ${name}`, { attributes })
    const isError = await executeCall(call, tool, abort.signal, calling?.traceparent)
    calling?.end(isError ? { failure: { code: 'tool_failed' } } : {})
    running.delete(abort)
  }
}

function reasonNotToRun(stopReason: StopReason): string {
  if (stopReason === 'aborted') return abortedCall
  if (stopReason === 'length') return 'Not run: the response was cut off at its length limit. Make the call again, with shorter arguments.'
  return `Not run: the response ended with ${stopReason}.`
}
