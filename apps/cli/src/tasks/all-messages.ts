/** The messages of a task, page by page: all of them, or those before an index. */
import type { Message, Page, TaskHandle } from '@rivulet/client'

export async function readMessages(task: Pick<TaskHandle, 'messages'>, before = Number.POSITIVE_INFINITY): Promise<Message[]> {
  const found: Message[] = []
  for (let after: number | null | undefined; after !== null && (after ?? -1) < before - 1; ) {
    const page: Page<Message, number> = await task.messages(after === undefined ? {} : { after })
    found.push(...page.data)
    after = page.nextCursor
  }
  return found.filter(({ index }) => index < before)
}
