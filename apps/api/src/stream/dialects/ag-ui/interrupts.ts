/** The waits of a turn as AG-UI's interrupts, and the entries of `resume` as the responses to them. */
import type { AnswerBody, Json, JsonObject, Wait } from '@rivulet/protocol'

export type Interrupt = {
  id: string
  reason: 'tool_call' | 'input_required' | 'confirmation'
  message: string
  toolCallId?: string
  responseSchema: JsonObject
  expiresAt: string
  metadata: JsonObject
}

/** @param toolCallId of the call that the wait is about */
export function interruptOf(wait: Wait, toolCallId: string | undefined): Interrupt {
  const { id, kind, name, title, detail, tool, arguments: args, actions, schema, expiresAt } = wait
  const about = { name, actions, ...(tool !== undefined && { tool }), ...(args !== undefined && { arguments: args }) }
  return {
    id,
    reason: kind === 'form' ? 'input_required' : toolCallId === undefined ? 'confirmation' : 'tool_call',
    message: detail === undefined ? title : `${title}\n\n${detail}`,
    ...(toolCallId !== undefined && { toolCallId }),
    responseSchema: schema ?? approvalSchema,
    expiresAt,
    metadata: { ...wait.metadata, ...about },
  }
}

const approvalSchema: JsonObject = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' } },
  required: ['approved'],
}

export type ResumeEntry = { interruptId: string; status: 'resolved' | 'cancelled'; payload?: Json | undefined }

/**
 * `{ action, content?, comment? }` as a payload is taken as it is. For an approval, `{ approved, reason? }` or a boolean is enough; for a form and a
 * tool, the payload is the content.
 */
export function answerOf({ kind, actions }: Pick<Wait, 'kind' | 'actions'>, { status, payload }: ResumeEntry): AnswerBody {
  if (status === 'cancelled') return { action: 'decline', comment: 'cancelled' }
  const given = typeof payload === 'object' && payload !== null && !Array.isArray(payload) ? payload : {}
  const action = actions.find(known => known === given.action)
  if (action !== undefined)
    return {
      action,
      ...(given.content !== undefined && { content: given.content }),
      ...(typeof given.comment === 'string' && { comment: given.comment }),
    }
  if (kind !== 'approval') return { action: 'accept', ...(payload !== undefined && { content: payload }) }
  const isDeclined = payload === false || given.approved === false
  if (!isDeclined) return { action: 'accept' }
  return { action: 'decline', ...(typeof given.reason === 'string' && { comment: given.reason }) }
}
