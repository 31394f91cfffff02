/** Contents as text for a terminal. */
import type { Content, Json } from '@rivulet/client'
import { cleanLine } from '../terminal/clean-text.ts'
import { fitLine } from '../terminal/text-width.ts'

const maxColumns = 200

/** What of a content grows: the words, or the thoughts in full where there are any and else in short. */
export function growingText(content: Content): string {
  if (content.type === 'text') return content.text
  if (content.type !== 'reasoning') return ''
  return (content.content.some(Boolean) ? content.content : content.summary).join('\n\n')
}

/** A content that is not streamed, on one line. */
export function onOneLine(content: Content): string {
  if (content.type === 'text') return cleanLine(content.text)
  if (content.type === 'data') return cleanLine(JSON.stringify(content.data))
  if (content.type === 'media')
    return cleanLine(`[${content.mimeType} ${content.url ?? `${Math.round((content.data?.length ?? 0) * 0.75)} bytes`}]`)
  return cleanLine(JSON.stringify(content))
}

/** A value that is only mentioned. */
export function shortly(value: Json): string {
  return fitLine(cleanLine(typeof value === 'string' ? value : JSON.stringify(value)), maxColumns)
}
