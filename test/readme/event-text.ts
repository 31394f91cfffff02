/** What a person reads in an event stream that curl printed. */
import {
  applyEvent,
  type Cursor,
  emptyState,
  eventSchema,
  type Message,
  messagesOf,
  restoreState,
  wireEventSchema,
} from '@rivulet/protocol'
import { eventsInStream } from '../support/viewers/stream-text.ts'

export function messagesIn(stream = ''): Message[] {
  let state = emptyState
  for (const { data, id: cursor } of eventsInStream(stream)) {
    if (!cursor) continue
    const event = JSON.parse(data)
    const wire = wireEventSchema.safeParse(event).data
    if (wire?.type === 'snapshot') state = restoreState(cursor as Cursor, { ...wire, status: wire.task.status })
    else if (!wire) state = applyEvent(state, eventSchema.parse(event), cursor as Cursor)
  }
  return messagesOf(state)
}

/** The text of the last message. */
export function wordsIn(stream?: string): string {
  const said = messagesIn(stream).at(-1)?.content
  return said?.type === 'text' ? said.text : ''
}
