/**
 * Executes one tool call. Its `tool_response` message is started before the function is called, extended by its progress, and closed exactly
 * once, whatever happens. After an abort the call ends at once, even when the function ignores its signal; its later progress is dropped.
 */
import {
  type ContentOf,
  defaultLimits,
  delta,
  full,
  type Json,
  start,
  toolResponse,
  toStorableJson,
  type Update,
  untilAborted,
} from '@rivulet/protocol'
import { messageOf } from '../agent-error.ts'
import type { Tool } from './tool.ts'

export type NumberedCall = {
  request: ContentOf<'tool_request'>
  /** The index of its `tool_response` message. */
  index: number
  emit: (update: Update) => void
}

/** Runs the tool and emits its response. Returns whether that is an error. Never throws for what the tool does. */
export async function executeCall(
  { request, index, emit }: NumberedCall,
  tool: Tool,
  signal: AbortSignal,
  traceparent?: string,
): Promise<boolean> {
  const { callId, name } = request
  const response = openResponse({ request, index, emit })
  try {
    const checked = await untilAborted(tool.check(request.arguments), signal)
    if (!checked.isValid) return response.fail(`Invalid arguments for ${name}:\n${checked.reason}`)
    const running = async () => checked.run({ signal, callId, progress: response.progress, traceparent })
    return response.succeed(await untilAborted(running(), signal))
  } catch (error) {
    return response.fail(signal.aborted ? abortedCall : messageOf(error))
  }
}

/** Emits an error response for a call that does not run. */
export function rejectCall(call: NumberedCall, reason: string): void {
  openResponse(call).fail(reason)
}

export const abortedCall = 'The call was aborted before it had a result.'

function openResponse({ request: { callId, name }, index, emit }: NumberedCall) {
  let isOpen = true
  let shown: Json = null
  emit(start(index, toolResponse(callId, name)))
  return { progress, succeed, fail }

  function progress(given: Json): void {
    if (!isOpen) return
    const value = toStorableJson(given, defaultLimits.jsonDepth)
    // Text extends text; after any other value it replaces that value.
    const extendsText = typeof value === 'string' && (shown === null || typeof shown === 'string')
    shown = value
    emit(delta(index, extendsText ? { type: 'tool_response', text: value } : { type: 'data', value }))
  }

  /** Throws, and leaves the call open, when the result is not JSON. */
  function succeed(result: unknown): boolean {
    return close(toStorableJson(result === undefined ? null : result, defaultLimits.jsonDepth), false)
  }

  function fail(reason: string): boolean {
    return close(reason, true)
  }

  function close(value: Json, isError: boolean): boolean {
    isOpen = false
    emit(full(index, toolResponse(callId, name, value, isError)))
    return isError
  }
}
