/**
 * Decodes server-sent events from chunks that may be cut anywhere: within a character, a line ending or a name.
 * Use one decoder for a whole body, so that a character split over two chunks stays one character.
 */
import { createParser } from 'eventsource-parser'
import { AgentError } from '../agent-error.ts'

export type ServerEvent = { event?: string | undefined; data: string }

type ServerEventDecoder = {
  feed(bytes: Uint8Array): ServerEvent[]
  /** The last event of a body that ended without its final blank line. */
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
    if (isTooLong) throw new AgentError(`The model sent an event of more than ${maxChars} characters (limits.eventChars)`)
    const parsed = events
    events = []
    return parsed
  }
}
