/**
 * The texts of one response, as events that carry no index. Only the first open text is emitted as it grows; those behind it wait until it is closed, so
 * the deltas are the text of the response, in the order of its messages. A replacement that does not continue its text is the whole text so far.
 */
export type TextEvent = { type: 'assistant_text_delta'; text: string } | { type: 'assistant_text_replaced'; text: string }

export type TextOrder = {
  open(index: number, text: string): TextEvent[]
  append(index: number, addition: string): TextEvent[]
  close(index: number, before: string, text: string): TextEvent[]
  /** The texts that are closed. */
  text(): string
}

export function createTextOrder(): TextOrder {
  const waiting = new Map<number, { text: string; isClosed: boolean }>()
  let closed = ''
  return { open, append, close, text: () => closed }

  function open(index: number, text: string): TextEvent[] {
    waiting.set(index, { text, isClosed: false })
    return isFirst(index) ? deltaOf(text) : []
  }

  /** A text that was open before this response began is emitted at once. */
  function append(index: number, addition: string): TextEvent[] {
    const entry = waiting.get(index)
    if (entry) entry.text += addition
    return !entry || isFirst(index) ? deltaOf(addition) : []
  }

  function close(index: number, before: string, text: string): TextEvent[] {
    const entry = waiting.get(index)
    if (entry && !isFirst(index)) {
      waiting.set(index, { text, isClosed: true })
      return []
    }
    waiting.delete(index)
    const events: TextEvent[] = text.startsWith(before)
      ? deltaOf(text.slice(before.length))
      : [{ type: 'assistant_text_replaced', text: closed + text }]
    closed += text
    // Without an entry it was no text when it was opened, so the first text is still that which is emitted.
    return entry ? [...events, ...next()] : events
  }

  function next(): TextEvent[] {
    const events: TextEvent[] = []
    for (const [index, { text, isClosed }] of waiting) {
      events.push(...deltaOf(text))
      if (!isClosed) break
      closed += text
      waiting.delete(index)
    }
    return events
  }

  function isFirst(index: number): boolean {
    return waiting.keys().next().value === index
  }
}

function deltaOf(text: string): TextEvent[] {
  return text === '' ? [] : [{ type: 'assistant_text_delta', text }]
}
