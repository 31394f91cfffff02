/**
 * A task in the words of the Vercel AI SDK: its stored messages as the UI messages that `useChat` begins with, and the chunks that its UI message
 * stream is made of (`GET …/events?format=ai-sdk` speaks them).
 *
 * Both say the same: a turn is one assistant message, `<task>:<turn>`, and what was asked is a user's message before it. A page that was
 * reloaded shows what one that stayed open does.
 */
import type { Message } from '@rivulet/protocol'
import { createCalls } from './ai-sdk-calls.ts'
import { madeUpCall, reasoningParts, sourcesOf, type UiChunk, wholeOf } from './ai-sdk-chunks.ts'

export { type Calls, createCalls } from './ai-sdk-calls.ts'
export { closingOf, growthOf, madeUpCall, openingOf, replacementOf, type UiChunk, wholeOf } from './ai-sdk-chunks.ts'

/** Of the SDK's own type; `validateUIMessages` says so. */
export type UiMessage = { id: string; role: 'user' | 'assistant'; metadata: { task: string; turn: number }; parts: UiPart[] }

export type UiPart = { type: string; [field: string]: unknown }

/** Stored messages, all of a task or the latest, in order. Those of a turn that still runs are as they stand: `resume` goes on with them. */
export function toUiMessages(messages: readonly Message[]): UiMessage[] {
  const said: UiMessage[] = []
  let calls = createCalls()
  for (const message of messages) {
    const { task, turn, index, author } = message
    const isAnswer = author !== 'user'
    const id = isAnswer ? `${task}:${turn}` : `${task}:${turn}:${index}`
    let last = said.at(-1)
    if (last?.id !== id) {
      last = { id, role: isAnswer ? 'assistant' : 'user', metadata: { task, turn }, parts: [] }
      said.push(last)
      calls = createCalls()
    }
    addTo(last.parts, calls.own(message), calls.isUnasked(message))
  }
  return said
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
        changeCall(parts, chunk)
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
}

/** What the SDK makes of a chunk about a call. Half of an input is not shown: the stream says it again. */
function changeCall(parts: UiPart[], { type, dynamic: _, toolCallId, ...fields }: UiChunk): void {
  const state = callStates[type]
  if (state === undefined) return
  const place = parts.findIndex(part => part.toolCallId === toolCallId)
  const { output: _output, errorText: _error, ...known } = parts[place] ?? { type: 'dynamic-tool', toolCallId }
  const part = { ...known, ...fields, state }
  parts.splice(place === -1 ? parts.length : place, 1, part)
}
