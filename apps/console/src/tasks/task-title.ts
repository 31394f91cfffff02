/** What to call a task: its name, else what it was asked first. */
import type { Content, TaskSummary } from '@rivulet/client'

const maxLength = 160

export function titleOf({ name, title, agent }: Pick<TaskSummary, 'name' | 'title' | 'agent'>): string {
  return name || title?.trim() || `A task for ${agent}`
}

/** The beginning of a text, never with a part of a character: an emoji may be as long as a word. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text
  const segments = new Intl.Segmenter().segment(text.slice(0, most * 2))
  return text.slice(0, segments.containing(most)?.index ?? most)
}

/** The first words of an input. */
export function wordsOf(content: Content): string {
  switch (content.type) {
    case 'text':
      return cutText(content.text, maxLength)
    case 'data':
      return cutText(JSON.stringify(content.data), maxLength)
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
