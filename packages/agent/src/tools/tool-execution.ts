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
  withoutSecrets,
} from '@rivulet/protocol'
import { messageOf } from '../agent-error.ts'
import { RoundOver } from './round.ts'
import type { Tool, ToolCall, ToolContext } from './tool.ts'

export type ToolOutcome = { content: Json; isError: boolean }

/** Called around each call that runs, inside its step. What a hook throws is the error that the model sees. */
export type ToolHooks = {
  /** Before the tool runs, and before its arguments are checked. `args` replaces its arguments, `result` its run. */
  beforeTool?: ((call: ToolCall) => Before | Promise<Before>) | ((call: ToolCall) => void) | undefined
  /** With the result, or the error, that the model would see. What it returns takes its place. */
  afterTool?:
    | ((call: ToolCall, outcome: ToolOutcome) => After | Promise<After>)
    | ((call: ToolCall, outcome: ToolOutcome) => void)
    | undefined
}

type Before = { args: Json } | { result: Json } | undefined
type After = ToolOutcome | undefined

/** Runs the tool with its hooks, and closes its response. Never throws for what they do, except for a round that is over. */
export async function executeCall(
  response: Pick<OpenResponse, 'progress' | 'close'>,
  { callId, name, arguments: args }: ContentOf<'tool_request'>,
  tool: Tool,
  { beforeTool, afterTool, ...given }: Pick<ToolContext, 'signal' | 'traceparent' | 'turn' | 'round'> & ToolHooks,
): Promise<ToolOutcome> {
  const { signal } = given
  const call = { tool: name, args, callId }
  const outcome = await caught(run)
  // After an abort there is no model to see a change.
  if (!afterTool || signal.aborted) return response.close(outcome)
  return response.close(
    await caught(
      async () =>
        (await untilAborted(
          later(() => afterTool(call, outcome)),
          signal,
        )) ?? outcome,
    ),
  )

  async function run(): Promise<ToolOutcome> {
    const before =
      beforeTool &&
      !given.round &&
      (await untilAborted(
        later(() => beforeTool(call)),
        signal,
      ))
    if (before && 'result' in before) return resultOf(before.result)
    const checked = await untilAborted(tool.check(before ? before.args : args), signal)
    if (!checked.isValid) return { content: `Invalid arguments for ${name}:\n${checked.reason}`, isError: true }
    return resultOf(
      await untilAborted(
        later(() => checked.run({ ...given, callId, progress: response.progress })),
        signal,
      ),
    )
  }

  async function caught(work: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof RoundOver) throw error
      return { content: signal.aborted ? abortedCall : withoutSecrets(messageOf(error), given.turn?.secrets ?? {}), isError: true }
    }
  }
}

/** What a function throws is a rejection, too. */
async function later<T>(work: () => T | Promise<T>): Promise<T> {
  return work()
}

export const abortedCall = 'The call was aborted before it had a result.'

export type OpenResponse = ReturnType<typeof openResponse>

/** Starts the response of a call, at its index. */
export function openResponse({ callId, name }: ContentOf<'tool_request'>, index: number, emit: (update: Update) => void) {
  let isOpen = true
  let shown: Json = null
  emit(start(index, toolResponse(callId, name)))
  return { progress, fail, close }

  function progress(given: Json): void {
    if (!isOpen) return
    const value = toStorableJson(given, defaultLimits.jsonDepth)
    // Text extends text; after any other value it replaces that value.
    const extendsText = typeof value === 'string' && (shown === null || typeof shown === 'string')
    shown = value
    emit(delta(index, extendsText ? { type: 'tool_response', text: value } : { type: 'data', value }))
  }

  function fail(reason: string): ToolOutcome {
    return close({ content: reason, isError: true })
  }

  function close({ content, isError }: ToolOutcome): ToolOutcome {
    isOpen = false
    emit(full(index, toolResponse(callId, name, content, isError)))
    return { content, isError }
  }
}

/** Throws when the result is not JSON. */
function resultOf(result: unknown): ToolOutcome {
  return { content: toStorableJson(result === undefined ? null : result, defaultLimits.jsonDepth), isError: false }
}
