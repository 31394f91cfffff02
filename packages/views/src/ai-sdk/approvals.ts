/**
 * The approval of a call in the AI SDK's words: the wait's id is the approval's id, so the page's response names the wait.
 *
 * The SDK keeps an approval on its tool part. It accepts a denied one only with the state `output-denied`, so the error of a denied call is sent as that.
 */
import type { Wait } from '@rivulet/protocol'
import type { UiChunk } from './chunks.ts'

/** A wait that a page closes by the SDK's approval response. */
export function isApproval({ kind, callId }: Wait): boolean {
  return kind === 'approval' && callId !== undefined
}

export function approvalRequest({ id, title }: Wait, toolCallId: string): UiChunk {
  return { type: 'tool-approval-request', approvalId: id, toolCallId, reason: title }
}

export function approvalResponse(wait: Wait): UiChunk {
  const reason = wait.answer?.comment ?? (wait.status === 'answered' ? undefined : wait.status)
  return { type: 'tool-approval-response', approvalId: wait.id, approved: !isDenied(wait), ...(reason !== undefined && { reason }) }
}

export function isDenied({ status, answer }: Pick<Wait, 'status' | 'answer'>): boolean {
  return status !== 'open' && (status !== 'answered' || answer?.action === 'decline')
}

/** The chunks of a call's approvals, for a client that has none of them. */
export function approvalsOf(waits: readonly Wait[], callId: string, toolCallId: string): UiChunk[] {
  return waits
    .filter(wait => isApproval(wait) && wait.callId === callId)
    .flatMap(wait => [approvalRequest(wait, toolCallId), ...(wait.status === 'open' ? [] : [approvalResponse(wait)])])
}

/** A denied call ends as denied, not with an error. */
export function deniedOr(chunk: UiChunk, isDeniedCall: (toolCallId: unknown) => boolean): UiChunk {
  const { type, toolCallId } = chunk
  return type === 'tool-output-error' && isDeniedCall(toolCallId) ? { type: 'tool-output-denied', toolCallId } : chunk
}
