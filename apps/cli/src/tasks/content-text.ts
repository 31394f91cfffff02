/** Contents as text for a terminal. */
import type { Content, Json } from '@rivulet/client'
import { cleanLine } from '../terminal/clean-text.ts'
import { fitLine } from '../terminal/text-width.ts'

const maxColumns = 200

/** The text of a content that grows: a text, or the whole reasoning, or its summary if the whole is empty. */
export function growingText(content: Content): string {
  switch (content.type) {
    case 'text':
      return content.text
    case 'reasoning':
      return (content.content.some(Boolean) ? content.content : content.summary).join('\n\n')
    case 'tool_request':
    case 'tool_response':
    case 'data':
    case 'media':
      return ''
    default:
      return content satisfies never
  }
}

/** A content that is not streamed, on one line. */
export function onOneLine(content: Content): string {
  switch (content.type) {
    case 'text':
      return cleanLine(content.text)
    case 'data':
      return cleanLine(JSON.stringify(content.data))
    case 'media':
      return cleanLine(`[${content.mimeType} ${content.url ?? `${Math.round((content.data?.length ?? 0) * 0.75)} bytes`}]`)
    case 'reasoning':
    case 'tool_request':
    case 'tool_response':
      return cleanLine(JSON.stringify(content))
    default:
      return content satisfies never
  }
}

/** A value that is only mentioned. */
export function shortly(value: Json): string {
  return fitLine(cleanLine(typeof value === 'string' ? value : JSON.stringify(value)), maxColumns)
}
