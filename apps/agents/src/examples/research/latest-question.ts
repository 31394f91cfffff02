/** The latest message of the user in a conversation, and the messages after it. */
import type { HistoryMessage } from '@rivulet/agent'

type LatestQuestion = { question: string; since: HistoryMessage[] }

/** Empty if the history has no question. */
export function latestQuestion(messages: readonly HistoryMessage[]): LatestQuestion {
  const asked = messages.findLastIndex(({ author }) => author === 'user')
  const content = messages[asked]?.content
  return {
    question: content?.type === 'text' ? content.text : content ? JSON.stringify(content) : '',
    since: messages.slice(asked + 1),
  }
}
