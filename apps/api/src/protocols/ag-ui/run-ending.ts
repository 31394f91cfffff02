/** The last event of a run: its outcome, its error, or what it waits for. */
import { type FoldedTurn, hasEnded, outcomeOf, type Usage, type Wait } from '@rivulet/protocol'
import { interruptOf } from './interrupts.ts'
import type { AgUiChunk } from './sent-messages.ts'

type RunIds = { threadId: string; runId: string }

/** A thread without a turn has succeeded. */
export function endOf(ids: RunIds, turn: FoldedTurn): AgUiChunk {
  const usage = turn.usage && { usage: [usageOf(turn.usage)] }
  const status = hasEnded(turn.status) ? outcomeOf(turn.status) : 'completed'
  if (status === 'failed') return { ...errorOf(turn.error ?? { code: 'agent_error', message: 'The turn failed' }), ...usage }
  return { type: 'RUN_FINISHED', ...ids, outcome: { type: status === 'canceled' ? 'cancelled' : 'success' }, ...usage }
}

export function errorOf({ code, message }: { code: string; message: string }): AgUiChunk {
  return { type: 'RUN_ERROR', message, code }
}

/** The run ends where the turn waits for its client, because the response is another request. */
export function interruptionOf(ids: RunIds, waits: readonly Wait[], callOf: (wait: Wait) => string | undefined): AgUiChunk {
  const interrupts = waits.map(wait => interruptOf(wait, callOf(wait)))
  const calls = interrupts.flatMap(({ toolCallId = [] }) => toolCallId)
  const isForTools = waits.every(({ kind }) => kind === 'tool') && calls.length === waits.length
  const outcome = isForTools ? { type: 'success', pendingToolCallIds: calls } : { type: 'interrupt', interrupts }
  return { type: 'RUN_FINISHED', ...ids, outcome }
}

function usageOf({ inputTokens, outputTokens, totalTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens }: Usage): object {
  const counts = {
    inputTokens,
    outputTokens,
    totalTokens,
    reasoningTokens,
    cachedInputTokens: cacheReadTokens,
    cacheWriteInputTokens: cacheWriteTokens,
  }
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== undefined))
}
