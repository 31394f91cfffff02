/** What a task has said, as text for other programs and other people. */
import type { Content, Message, Task, TaskHandle, Turn } from '@rivulet/client'

/** Every message, page by page. */
export async function readAll(task: Pick<TaskHandle, 'messages'>): Promise<Message[]> {
  const found: Message[] = []
  for (let after: number | null = -1; after !== null; ) {
    const page: { data: readonly Message[]; nextCursor: number | null } = await task.messages(after < 0 ? {} : { after })
    found.push(...page.data)
    after = page.nextCursor
  }
  return found
}

/** What the agent answered last: the texts of the latest turn that has any. */
export function answerOf(messages: readonly Message[]): string {
  const last = messages.findLast(message => message.author === 'agent' && message.content.type === 'text')
  return messages
    .filter(({ turn, author, content }) => turn === last?.turn && author === 'agent' && content.type === 'text')
    .map(({ content }) => (content.type === 'text' ? content.text : ''))
    .join('\n\n')
}

export function jsonOf(task: Task, turns: readonly Turn[], messages: readonly Message[]): string {
  return JSON.stringify({ task, turns, messages }, null, 2)
}

export function markdownOf(title: string, messages: readonly Message[]): string {
  const parts = messages.map(
    ({ author, content }) => `## ${author === 'user' ? 'You' : author === 'agent' ? 'Agent' : 'System'}\n\n${textOf(content)}`,
  )
  return `# ${title.replaceAll('\n', ' ')}\n\n${parts.join('\n\n')}\n`
}

function textOf(content: Content): string {
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
