/** What to call a task: its name, else what it was asked. */
import type { Content, Task, Turn } from '@rivulet/client'

const maxLength = 160

export function titleOf({ name, agent }: Task, turns: readonly Turn[] | undefined): string {
  const asked = turns?.[0]?.input
  return name || (asked && wordsOf(asked)) || `A task for ${agent}`
}

function wordsOf(content: Content): string {
  if (content.type === 'text') return content.text.slice(0, maxLength)
  if (content.type === 'data') return JSON.stringify(content.data).slice(0, maxLength)
  return content.type
}
