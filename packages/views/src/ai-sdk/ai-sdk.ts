/**
 * A task in the event model of the Vercel AI SDK: stored messages as the initial UI messages of `useChat`, and the chunks of its UI message
 * stream (`GET …/events?format=ai-sdk`).
 *
 * Both give the same result: a turn is one assistant message, `<task>:<turn>`, and its input is a user message before it. So a reloaded page
 * shows the same as a page that stayed open.
 */
import type { Message, Wait } from '@rivulet/protocol'
import { approvalsOf, deniedOr } from './approvals.ts'
import { createCalls } from './calls.ts'
import { madeUpCall, reasoningParts, sourcesOf, type UiChunk, wholeOf } from './chunks.ts'
import type { UiMessage } from './parts.ts'

export { approvalRequest, approvalResponse, approvalsOf, deniedOr, isApproval, isDenied } from './approvals.ts'
export { type Calls, createCalls } from './calls.ts'
export { closingOf, growthOf, madeUpCall, openingOf, replacementOf, type UiChunk, wholeOf } from './chunks.ts'
export type { UiMessage, UiMessagePart, UiToolPart } from './parts.ts'

/** A part while it is put together from chunks. */
type UiPart = { type: string; [field: string]: unknown }

type GrowingMessage = Omit<UiMessage, 'parts'> & { parts: UiPart[] }

/**
 * Converts stored messages in order, all of a task or the latest. Messages of a running turn are in their current state; `resume` continues them. With
 * the waits of the turns (`Turn.waits`), the calls have their approvals.
 */
export function toUiMessages(messages: readonly Message[], waits: readonly Wait[] = []): UiMessage[] {
  const uiMessages: GrowingMessage[] = []
  let calls = createCalls()
  for (const message of messages) {
    const { task, turn: turnNumber, index, author } = message
    const isAssistant = author !== 'user'
    const id = isAssistant ? `${task}:${turnNumber}` : `${task}:${turnNumber}:${index}`
    let last = uiMessages.at(-1)
    if (last?.id !== id) {
      last = { id, role: isAssistant ? 'assistant' : 'user', metadata: { task, turn: turnNumber }, parts: [] }
      uiMessages.push(last)
      calls = createCalls()
    }
    addTo(last.parts, calls.own(message), calls.isUnasked(message))
    if (message.content.type === 'tool_request') {
      const own = calls.own(message).content
      const ofTurn = waits.filter(wait => wait.turn === turnNumber)
      if ('callId' in own) for (const chunk of approvalsOf(ofTurn, message.content.callId, own.callId)) changeApproval(last.parts, chunk)
    }
  }
  // The chunks decide the fields of a part. test/sdks checks them against the SDK's own schema.
  return uiMessages as unknown as UiMessage[]
}

function addTo(parts: UiPart[], message: Message, isUnasked: boolean): void {
  const { index, content, metadata, status } = message
  const state = status === 'streaming' ? 'streaming' : 'done'
  switch (content.type) {
    case 'text':
      parts.push({ type: 'text', text: content.text, state }, ...sourcesOf(index, metadata))
      break
    case 'reasoning':
      parts.push(...reasoningParts(index, content).map(([id, text]) => ({ type: 'reasoning', id, text, state })))
      break
    case 'data':
    case 'media':
      parts.push(...wholeOf(message))
      break
    case 'tool_request':
    case 'tool_response':
      for (const chunk of [...(isUnasked && content.type === 'tool_response' ? [madeUpCall(content)] : []), ...wholeOf(message)]) {
        changeCall(
          parts,
          deniedOr(chunk, id => isDeniedIn(parts, id)),
        )
      }
      break
    default:
      content satisfies never
  }
}

const callStates: Record<string, string> = {
  'tool-input-start': 'input-streaming',
  'tool-input-available': 'input-available',
  'tool-input-error': 'output-error',
  'tool-output-available': 'output-available',
  'tool-output-error': 'output-error',
  'tool-output-denied': 'output-denied',
}

function isDeniedIn(parts: readonly UiPart[], toolCallId: unknown): boolean {
  const part = parts.find(part => part.toolCallId === toolCallId)
  return (part?.approval as { approved?: boolean } | undefined)?.approved === false
}

/** Applies the request of an approval, or the response to it, as the SDK does. */
function changeApproval(parts: UiPart[], { type, approvalId: id, toolCallId, reason, approved }: UiChunk): void {
  const isMeant = (part: UiPart) => (toolCallId === undefined ? idOf(part.approval) === id : part.toolCallId === toolCallId)
  const place = parts.findIndex(isMeant)
  const part = parts[place]
  if (!part) return
  const isRequest = type === 'tool-approval-request'
  const approval = isRequest
    ? { id, requestReason: reason }
    : { ...(part.approval as object), id, approved, ...(reason !== undefined && { reason }) }
  parts.splice(place, 1, { ...part, state: isRequest ? 'approval-requested' : 'approval-responded', approval })
}

function idOf(approval: unknown): unknown {
  return (approval as { id?: unknown } | undefined)?.id
}

/** Applies a chunk of a call as the SDK does. An incomplete input is left out, because the stream sends it again. */
function changeCall(parts: UiPart[], { type, dynamic: _, toolCallId, ...fields }: UiChunk): void {
  const state = callStates[type]
  if (state === undefined) return
  const place = parts.findIndex(part => part.toolCallId === toolCallId)
  const { output: _output, errorText: _error, ...known } = parts[place] ?? { type: 'dynamic-tool', toolCallId }
  const part = { ...known, ...fields, state }
  parts.splice(place === -1 ? parts.length : place, 1, part)
}
