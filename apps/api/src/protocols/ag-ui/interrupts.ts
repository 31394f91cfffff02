/** The waits of a turn as AG-UI's interrupts, and the entries of `resume` as the responses to them. */
import type { AnswerBody } from '@rivulet/contract/waits'
import { type Json, type JsonObject, RivuletError, type Wait } from '@rivulet/protocol'

type Interrupt = {
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
  const { id, kind, name, title, detail, tool, arguments: args, actions, schema, argumentsSchema, expiresAt } = wait
  const about = { name, actions, ...(tool !== undefined && { tool }), ...(args !== undefined && { arguments: args }) }
  return {
    id,
    reason: kind === 'form' ? 'input_required' : toolCallId === undefined ? 'confirmation' : 'tool_call',
    message: detail === undefined ? title : `${title}\n\n${detail}`,
    ...(toolCallId !== undefined && { toolCallId }),
    responseSchema: schema ?? approvalSchema(actions, argumentsSchema),
    expiresAt,
    metadata: { ...wait.metadata, ...about },
  }
}

/** AG-UI's clients offer to edit the arguments of a call where the schema has `editedArgs`. */
function approvalSchema(actions: Wait['actions'], argumentsSchema: JsonObject = { type: 'object' }): JsonObject {
  const editedArgs = { ...argumentsSchema, description: 'Replaces the arguments of the call' }
  return {
    type: 'object',
    properties: { approved: { type: 'boolean' }, reason: { type: 'string' }, ...(actions.includes('edit') && { editedArgs }) },
    required: ['approved'],
  }
}

export type ResumeEntry = { interruptId: string; status: 'resolved' | 'cancelled'; payload?: Json | undefined }

/**
 * `{ action, content?, comment? }` as a payload is taken as it is. For an approval, `{ approved, reason?, editedArgs? }` or a boolean is enough, and
 * anything else is an error, because a payload that is not understood must not approve. For a form and a tool, the payload is the content.
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
  const approved = typeof payload === 'boolean' ? payload : given.approved
  if (approved === true) return given.editedArgs === undefined ? { action: 'accept' } : { action: 'edit', content: given.editedArgs }
  if (approved !== false)
    throw new RivuletError('validation_failed', 'Request validation failed', {
      details: [{ path: '/resume/payload', reason: 'An approval has { approved, reason? }' }],
    })
  return { action: 'decline', ...(typeof given.reason === 'string' && { comment: given.reason }) }
}
