/** The input of a response as OpenAI's input items: the input of its turn, or the responses to what the one before it asked for. */
import type { Message, Turn, Wait } from '@rivulet/protocol'
import { questionItem } from './output-item.ts'
import { questionsBefore } from './question-responses.ts'

export function inputItemsOf(turn: Turn, segment: number, messages: readonly Message[]): { id: string }[] {
  if (segment > 1) return questionsBefore(turn, segment).flatMap(answerItem)
  const inputs = messages.filter(({ author }) => author === 'user')
  return inputs.length > 0 ? inputs.map(inputItem) : queuedInput(turn)
}

export function answerItem(wait: Wait): { id: string }[] {
  const { answer } = wait
  const asked = questionItem(wait)
  if (!answer) return []
  if (asked.type === 'function_call') {
    const output = JSON.stringify(answer.content ?? { action: answer.action })
    return [{ id: `fco_${wait.id}`, type: 'function_call_output', call_id: asked.call_id, output } as { id: string }]
  }
  const response = { approval_request_id: asked.id, approve: answer.action !== 'decline', reason: answer.comment ?? null }
  return [{ id: `mcpar_${wait.id}`, type: 'mcp_approval_response', ...response } as { id: string }]
}

export function inputItem({ task, index, content, author }: Message) {
  const role = author === 'system' ? 'system' : 'user'
  return { id: `msg_${task}.${index}.0`, type: 'message', role, status: 'completed', content: [partOf(content)] }
}

/** The input of a turn that has not started is not a message yet. */
function queuedInput({ id, input }: Turn) {
  return input ? [{ id: `msg_${id}`, type: 'message', role: 'user', status: 'completed', content: [partOf(input)] }] : []
}

function partOf(content: Message['content']): object {
  switch (content.type) {
    case 'text':
      return { type: 'input_text', text: content.text }
    case 'media': {
      if (content.file !== undefined)
        return { type: content.mimeType.startsWith('image/') ? 'input_image' : 'input_file', file_id: content.file }
      const url = content.url ?? `data:${content.mimeType};base64,${content.data ?? ''}`
      return content.mimeType.startsWith('image/')
        ? { type: 'input_image', image_url: url, detail: 'auto' }
        : { type: 'input_file', file_url: url, ...(content.name !== undefined && { filename: content.name }) }
    }
    case 'reasoning':
    case 'tool_request':
    case 'tool_response':
    case 'data':
      return { type: 'input_text', text: JSON.stringify(content) }
    default:
      return content satisfies never
  }
}
