/** Apart from `event.ts`, so that a reader of events needs no validation library. */
import type { Event, MessageEvent } from './event.ts'

export function isMessageEvent(event: Event): event is MessageEvent {
  return event.type.startsWith('message.')
}
