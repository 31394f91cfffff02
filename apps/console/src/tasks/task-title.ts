/** What to call a task: its name, else what it was asked first. */
import type { Content, TaskSummary } from '@rivulet/client'

const maxLength = 160

export function titleOf({ name, title, agent }: Pick<TaskSummary, 'name' | 'title' | 'agent'>): string {
  return name || title?.trim() || `A task for ${agent}`
}

/** The first words of an input. */
export function wordsOf(content: Content): string {
  switch (content.type) {
    case 'text':
      return content.text.slice(0, maxLength)
    case 'data':
      return JSON.stringify(content.data).slice(0, maxLength)
    case 'reasoning':
    case 'tool_request':
    case 'tool_response':
      return content.type
    case 'media':
      return content.name ?? content.mimeType
    default:
      return content satisfies never
  }
}
