/** A content as text, which is markdown. */
import type { Content } from '@rivulet/client'

export function contentText(content: Content): string {
  switch (content.type) {
    case 'text':
      return content.format === 'code' ? fenced(content.text) : content.text
    case 'reasoning':
      return [...content.summary, ...content.content].map(line => `> ${line.replaceAll('\n', '\n> ')}`).join('\n')
    case 'data':
      return fenced(JSON.stringify(content.data, null, 2), 'json')
    case 'tool_request':
      return `Called \`${content.name}\`:\n\n${fenced(JSON.stringify(content.arguments, null, 2), 'json')}`
    case 'tool_response':
      return `\`${content.name}\` ${content.isError ? 'failed' : 'returned'}:\n\n${fenced(typeof content.content === 'string' ? content.content : JSON.stringify(content.content, null, 2))}`
    case 'media':
      return content.url ? `[${content.mimeType}](${content.url})` : `(${[content.name, content.mimeType].filter(Boolean).join(', ')})`
    default:
      return content satisfies never
  }
}

/** With a fence that is longer than any in the text. */
function fenced(text: string, language = ''): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([mark]) => mark.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${text}\n${fence}`
}
