/** How far a tool's call has come, read off its two messages. */
import type { Message } from '@rivulet/client'

export type CallState = {
  /**
   * `asking`: the model is writing the arguments. `waiting`: it was asked for, and has not begun. `unanswered`: its turn has ended, so it never
   * will.
   */
  phase: 'asking' | 'waiting' | 'unanswered' | 'running' | 'done' | 'failed' | 'stopped'
  startedAt: number | null
  tookMs: number | null
  problem: string | null
}

export function callStateOf(request: Message | null, response: Message | null, isOver: boolean): CallState {
  const nothing = { startedAt: null, tookMs: null, problem: null }
  if (!response) {
    if (request?.status === 'streaming') return { ...nothing, phase: 'asking' }
    if (request?.status === 'failed')
      return { ...nothing, phase: 'failed', problem: request.error?.message ?? 'The arguments are incomplete' }
    if (request?.status === 'aborted') return { ...nothing, phase: 'stopped' }
    return { ...nothing, phase: isOver ? 'unanswered' : 'waiting' }
  }
  const startedAt = Date.parse(response.createdAt)
  const tookMs = response.finishedAt ? Date.parse(response.finishedAt) - startedAt : null
  if (response.status === 'streaming') return { phase: 'running', startedAt, tookMs: null, problem: null }
  if (response.status === 'aborted') return { phase: 'stopped', startedAt, tookMs, problem: null }
  const isError = response.content.type === 'tool_response' && response.content.isError
  if (isError || response.status === 'failed') return { phase: 'failed', startedAt, tookMs, problem: response.error?.message ?? null }
  return { phase: 'done', startedAt, tookMs, problem: null }
}
