/** An event in a few words. */
import type { Content, Delta, TaskEvent } from '@rivulet/client'

const maxLength = 120

export function summaryOf(event: TaskEvent): string {
  switch (event.type) {
    case 'turn.queued':
      return `turn ${event.turn}`
    case 'turn.started':
      return `turn ${event.turn}, attempt ${event.attempt}, from index ${event.firstIndex}`
    case 'turn.finished':
      return `turn ${event.turn} ${event.status}${event.error ? `: ${event.error.message}` : ''}`
    case 'turn.waiting':
      return `turn ${event.turn}, ${event.wait.kind} ${event.wait.name}`
    case 'turn.resumed':
      return `turn ${event.turn} ${event.status}${event.answer ? `: ${event.answer.action}` : ''}`
    case 'turn.discarded':
      return `turns ${event.from} to ${event.turn - 1}`
    case 'state.changed':
      return `version ${event.version} ${short(JSON.stringify(event.value ?? event.patch))}`
    case 'child.started':
      return `${event.name} ${event.child}`
    case 'child.finished':
      return `${event.child} ${event.status}`
    case 'turn.joined':
      return `turn ${event.turn} joins turn ${event.into}`
    case 'message.started':
      return `${event.index} ${nameOf(event.content)}`
    case 'message.replaced':
      return `${event.index} ${nameOf(event.content)}`
    case 'message.delta':
      return `${event.index} ${short(wordsOf(event.delta))}`
    case 'message.finished':
      return `${event.index} ${event.status}${event.error ? `: ${event.error.message}` : ''}`
    case 'custom':
      return event.name
    case 'snapshot':
      return `${event.reason}: ${event.messages.length} messages from index ${event.messagesFrom}`
    case 'end':
      return event.status
    case 'caught_up':
      return ''
    default:
      return event satisfies never
  }
}

function nameOf(content: Content): string {
  return 'name' in content && content.name ? `${content.type} ${content.name}` : content.type
}

function wordsOf(delta: Delta): string {
  switch (delta.type) {
    case 'data':
      return JSON.stringify(delta.value)
    case 'metadata':
      return `metadata ${JSON.stringify(delta.metadata)}`
    case 'media':
      return `${delta.bytes.length} base64 characters`
    default:
      return JSON.stringify(delta.text)
  }
}

function short(text: string): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
}
