/** What a task has said, as text for other programs and other people. */
import type { Message, Task, TaskHandle, Turn } from '@rivulet/client'
import { contentText } from '../transcript/content-text.ts'

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
    ({ author, content }) => `## ${author === 'user' ? 'You' : author === 'agent' ? 'Agent' : 'System'}\n\n${contentText(content)}`,
  )
  return `# ${title.replaceAll('\n', ' ')}\n\n${parts.join('\n\n')}\n`
}
