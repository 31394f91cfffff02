/** Which contents have a value that may be stored as a file. Only its bytes decide whether it is. */
import { type Content, type Json, maxInlineMediaBytes } from '@rivulet/protocol'

/** Whether a content has a value that may become a file at the commit; false only where it surely stays as it is. */
export function mayBecomeFile(content: Content): boolean {
  // Four characters stand for three bytes.
  if (content.type === 'media') return content.data !== undefined && content.data.length > (maxInlineMediaBytes / 3) * 4
  const value = jsonOf(content)
  return value !== undefined && !isSmall(value)
}

/** The value of a content that has one; undefined for all others. */
export function jsonOf(content: Content): Json | undefined {
  switch (content.type) {
    case 'data':
      return content.data
    case 'tool_response':
      return content.content
    case 'text':
    case 'reasoning':
    case 'tool_request':
    case 'media':
      return undefined
    default:
      return content satisfies never
  }
}

/** Without writing it as JSON, for the values that are most frequent. */
function isSmall(value: Json): boolean {
  return typeof value === 'number' || typeof value === 'boolean' || value === null || (typeof value === 'string' && value.length < 40_000)
}
