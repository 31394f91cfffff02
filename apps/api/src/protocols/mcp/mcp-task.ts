/** A turn as a task of MCP: what `tasks/get` returns, and what a subscription sends whenever `noticeOf` changes. */
import { hasEnded, hasOpenQuestion, type Message, type Turn } from '@rivulet/protocol'
import { questionsIn } from '../../stream/task-view.ts'
import { rpcCodes } from '../json-rpc.ts'
import { inputRequests, toolResult } from './mcp-tool.ts'

const pollIntervalMs = 1_000

type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'

/** The task without what it asks for, its result and its error. */
export function taskHead({ id, status, waits, queuedAt, startedAt, finishedAt }: Turn) {
  const state: TaskStatus = hasEnded(status) ? outcomes[status] : hasOpenQuestion(waits) ? 'input_required' : 'working'
  return { taskId: id, status: state, createdAt: queuedAt, lastUpdatedAt: finishedAt ?? startedAt ?? queuedAt, ttlMs: null, pollIntervalMs }
}

const outcomes = { completed: 'completed', failed: 'failed', canceled: 'cancelled', discarded: 'cancelled' } as const

/** @param messages of the turn, if it has completed */
export function mcpTask(turn: Turn, messages: readonly Message[]): object {
  const task = taskHead(turn)
  switch (task.status) {
    case 'input_required':
      return { ...task, inputRequests: inputRequests(turn.waits ?? []) }
    case 'failed': {
      const { code, message = 'The turn failed' } = turn.error ?? {}
      return { ...task, error: { code: rpcCodes.internalError, message, data: { code } } }
    }
    case 'completed':
      return { ...task, result: toolResult(turn, messages) }
    case 'working':
    case 'cancelled':
      return task
    default:
      return task.status satisfies never
  }
}

/** A subscriber gets the task again when this is another one: the turn has ended, or asks for something else. */
export function noticeOf({ status, waits }: Pick<Turn, 'status' | 'waits'>): string {
  return hasEnded(status) ? 'ended' : questionsIn(waits)
}
