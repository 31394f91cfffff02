/**
 * Server-sent events from bytes that are cut anywhere: within a character, a line ending or a name.
 * One decoder for the whole body, so a character that is split over two chunks is one character.
 */
import { createParser } from 'eventsource-parser'
import { AgentError } from './agent-error.ts'

export type ServerEvent = { event?: string | undefined; data: string }

export type ServerEventDecoder = {
  feed(bytes: Uint8Array): ServerEvent[]
  /** What a body that ended properly still owed: its last event may lack the blank line. */
  end(): ServerEvent[]
}

export function createServerEventDecoder(maxChars: number): ServerEventDecoder {
  const decoder = new TextDecoder()
  let events: ServerEvent[] = []
  let isTooLong = false
  const parser = createParser({
    maxBufferSize: maxChars,
    onEvent: ({ event, data }) => {
      if (data.length > maxChars) isTooLong = true
      else events.push({ event, data })
    },
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') isTooLong = true
    },
  })
  return { feed: bytes => parse(decoder.decode(bytes, { stream: true })), end: () => parse(`${decoder.decode()}\n\n`) }

  function parse(text: string): ServerEvent[] {
    parser.feed(text)
    if (isTooLong) throw new AgentError(`The model sent an event of more than ${maxChars} characters`)
    const parsed = events
    events = []
    return parsed
  }
}
