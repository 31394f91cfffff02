/**
 * Where the messages of a log begin and end, kept beside its fold: a viewer of one message starts at its first event, and is not sent anything if it
 * has the last one. Follows the rules of the fold: a message closes once, and `turn.started` drops the messages of the attempt before.
 */
import { type Cursor, type Event, startedInputs } from '@rivulet/protocol'

export type MessageSpan = {
  /** The cursor before its first event. */
  before: Cursor
  /** The cursor of the event that closed it; null while it is open. */
  closedAt: Cursor | null
}

export type MessageSpans = ReturnType<typeof createMessageSpans>

export function createMessageSpans() {
  const spans = new Map<number, MessageSpan>()
  return { at: (index: number) => spans.get(index), take }

  /** @param before the cursor of the entry before this one */
  function take(before: Cursor, cursor: Cursor, event: Event): void {
    switch (event.type) {
      case 'turn.started':
        // Indexes have no holes.
        for (let index = event.firstIndex; spans.delete(index); index += 1);
        for (const { index } of startedInputs(event)) spans.set(index, { before, closedAt: cursor })
        return
      case 'message.started':
        if (!spans.has(event.index)) spans.set(event.index, { before, closedAt: null })
        return
      case 'message.replaced':
        close(event.index, { before, closedAt: null }, cursor)
        return
      case 'message.finished':
        close(event.index, undefined, cursor)
    }
  }

  function close(index: number, unknown: MessageSpan | undefined, cursor: Cursor): void {
    const span = spans.get(index) ?? unknown
    if (span && span.closedAt === null) spans.set(index, { ...span, closedAt: cursor })
  }
}
