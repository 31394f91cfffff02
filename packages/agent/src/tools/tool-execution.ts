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
import type { Tool, ToolContext } from './tool.ts'

export type ToolOutcome = { content: Json; isError: boolean }

/** Runs the tool and closes its response. Never throws for what the tool does. */
export async function executeCall(
  response: OpenResponse,
  { callId, name, arguments: args }: ContentOf<'tool_request'>,
  tool: Tool,
  given: Pick<ToolContext, 'signal' | 'traceparent' | 'turn'>,
): Promise<ToolOutcome> {
  const { signal } = given
  try {
    const checked = await untilAborted(tool.check(args), signal)
    if (!checked.isValid) return response.fail(`Invalid arguments for ${name}:\n${checked.reason}`)
    const running = async () => checked.run({ ...given, callId, progress: response.progress })
    return response.succeed(await untilAborted(running(), signal))
  } catch (error) {
    return response.fail(signal.aborted ? abortedCall : messageOf(error))
  }
}

export const abortedCall = 'The call was aborted before it had a result.'

export type OpenResponse = ReturnType<typeof openResponse>

/** Starts the response of a call, at its index. */
export function openResponse({ callId, name }: ContentOf<'tool_request'>, index: number, emit: (update: Update) => void) {
  let isOpen = true
  let shown: Json = null
  emit(start(index, toolResponse(callId, name)))
  return { progress, succeed, fail, close }

  function progress(given: Json): void {
    if (!isOpen) return
    const value = toStorableJson(given, defaultLimits.jsonDepth)
    // Text extends text; after any other value it replaces that value.
    const extendsText = typeof value === 'string' && (shown === null || typeof shown === 'string')
    shown = value
    emit(delta(index, extendsText ? { type: 'tool_response', text: value } : { type: 'data', value }))
  }

  /** Throws, and leaves the call open, when the result is not JSON. */
  function succeed(result: unknown): ToolOutcome {
    return close(toStorableJson(result === undefined ? null : result, defaultLimits.jsonDepth), false)
  }

  function fail(reason: string): ToolOutcome {
    return close(reason, true)
  }

  function close(content: Json, isError: boolean): ToolOutcome {
    isOpen = false
    emit(full(index, toolResponse(callId, name, content, isError)))
    return { content, isError }
  }
}
