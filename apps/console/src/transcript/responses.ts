/** Which messages are one response of a model: those up to the one that has its usage, because that is on the last of them. */
import type { Message } from '@rivulet/client'

/** Messages of one attempt; a tool's response is a group by itself. A group whose last message has neither usage nor a model may be of no model at all. */
export function groupsOf(messages: readonly Message[]): Message[][] {
  const groups: Message[][] = []
  for (const message of messages) {
    const group = groups.at(-1)
    const before = group?.at(-1)
    if (group && before && goesOn(before, message)) group.push(message)
    else groups.push([message])
  }
  return groups
}

function goesOn(before: Message, { content, author, turn, attempt }: Message): boolean {
  if (isOfModel(before) || before.content.type === 'tool_response' || content.type === 'tool_response') return false
  return before.author === author && before.turn === turn && before.attempt === attempt
}

export function isOfModel({ usage, response }: Message): boolean {
  return usage !== undefined || response !== undefined
}

/** When each response began, by the index of its last message. @param isFromStart whether no message is before these: the first group may lack its beginning */
export function beginsOf(messages: readonly Message[], isFromStart: boolean): ReadonlyMap<number, number> {
  const begins = new Map<number, number>()
  for (const group of groupsOf(messages)) {
    const [first] = group
    const last = group.at(-1)
    if (first && last && isOfModel(last) && (isFromStart || first !== messages[0])) begins.set(last.index, Date.parse(first.createdAt))
  }
  return begins
}
