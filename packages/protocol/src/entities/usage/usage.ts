/** Token counts of responses: added up, and as the records that a bill is made of. */
import type { Message, Usage, UsageRecord } from '../entities.ts'
import type { StopReason } from '../status/status-schema.ts'

/** How many tokens that is: the provider's own sum, else input and output. */
export function tokensOf({ totalTokens, inputTokens = 0, outputTokens = 0 }: Usage): number {
  return totalTokens ?? inputTokens + outputTokens
}

/** The records that messages carry. Workers give each usage an id; a message of an older one has that of its place. */
export function usageRecordsOf(messages: readonly Pick<Message, 'attempt' | 'index' | 'usage' | 'response'>[]): UsageRecord[] {
  return messages.flatMap(({ attempt, index, usage, response: { id = `${attempt}:${index}`, model } = {} }) =>
    usage ? [{ id, ...(model !== undefined && { model }), usage }] : [],
  )
}

/** Undefined when every usage is undefined. */
export function sumUsage(usages: readonly (Usage | undefined)[]): Usage | undefined {
  const counted = usages.filter(usage => usage !== undefined)
  if (counted.length === 0) return undefined
  const sum = new Map<string, number>()
  for (const [name, count] of counted.flatMap(usage => Object.entries(usage))) {
    const total = (sum.get(name) ?? 0) + count
    // JSON has no infinity, so a turn with such a usage could not be finished.
    if (Number.isFinite(total)) sum.set(name, total)
  }
  return Object.fromEntries(sum)
}

/** How a turn with these messages ended, and what they used. */
export function endOf(messages: readonly Message[]): { stopReason: StopReason; usage?: Usage } {
  const responded = new Set(messages.flatMap(({ content }) => (content.type === 'tool_response' ? [content.callId] : [])))
  const isAsking = messages.some(
    ({ content, status }) => content.type === 'tool_request' && status === 'complete' && !responded.has(content.callId),
  )
  const usage = sumUsage(messages.map(message => message.usage))
  const stopReason = messages.findLast(message => message.stopReason)?.stopReason ?? (isAsking ? 'tool_use' : 'stop')
  return { stopReason, ...(usage && { usage }) }
}
