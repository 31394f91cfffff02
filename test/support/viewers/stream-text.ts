/** The events in the text of an event stream, as a parser of the standard reads them. */
import { createParser, type EventSourceMessage } from 'eventsource-parser'

export function eventsInStream(text: string): EventSourceMessage[] {
  const events: EventSourceMessage[] = []
  createParser({ onEvent: event => events.push(event) }).feed(text)
  return events
}

/** The `data` of each, as JSON. */
export function dataInStream<T>(text: string): T[] {
  return eventsInStream(text).map(({ data }) => JSON.parse(data) as T)
}

export function idsInStream(text: string): string[] {
  return eventsInStream(text).flatMap(({ id }) => id ?? [])
}
