/** One request for an event stream, as a real client makes it: it parses the frames and passes them on, at the pace of its reader. */
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { type Cursor, type Event, parseCursor, parseEvent, type WireEvent, wireEventSchema } from '@rivulet/protocol'
import { createParser, type EventSourceMessage } from 'eventsource-parser'

export type Frame = { id: Cursor; data: Event | WireEvent }

export type Connection = {
  url: string
  /** The cursor it was opened with; null without one. */
  after: Cursor | null
  /** 0 until there is an answer, and where there never was one. */
  status: number
  headers: IncomingHttpHeaders
  frames: Frame[]
  /** What each `retry:` said, in order. */
  retries: number[]
  comments: string[]
  /** What was sent that is no frame of ours: a client must never see any. */
  oddities: string[]
  isOpen: boolean
  /** Whether the client ended it. */
  isCut: boolean
}

export type OpenConnection = { connection: Connection; closed: Promise<void>; pause(): void; resume(): void; cut(): void }

type ConnectionRequest = {
  url: string
  after?: Cursor | null
  method?: 'GET' | 'POST'
  headers?: Record<string, string>
  body?: unknown
  /** Told of every frame; false cuts the connection: nothing after it is heard. */
  onFrame?: (frame: Frame, connection: Connection) => boolean
}

export function openConnection({ url, after = null, method = 'GET', headers, body, onFrame }: ConnectionRequest): OpenConnection {
  const connection = newConnection(url, after)
  const listen = createListener(connection, frame => {
    if (onFrame?.(frame, connection) === false) cut()
  })
  const text = body === undefined ? null : JSON.stringify(body)
  let response: IncomingMessage | null = null
  let isPaused = false
  const sent = request(url, {
    method,
    agent: false,
    headers: {
      accept: 'text/event-stream',
      ...(after !== null && { 'last-event-id': after }),
      ...(text !== null && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      ...headers,
    },
  })
  const closed = new Promise<void>(resolve => {
    sent.once('close', () => {
      connection.isOpen = false
      resolve()
    })
  })
  sent.on('error', () => {})
  sent.once('response', reply => {
    response = reply
    connection.status = reply.statusCode ?? 0
    connection.headers = reply.headers
    reply.on('error', () => {})
    reply.setEncoding('utf8')
    reply.on('data', listen)
    if (isPaused) reply.pause()
  })
  sent.end(text ?? undefined)
  return { connection, closed, pause, resume, cut }

  function pause(): void {
    isPaused = true
    response?.pause()
  }

  function resume(): void {
    isPaused = false
    response?.resume()
  }

  function cut(): void {
    connection.isCut = true
    sent.destroy()
  }
}

export function newConnection(url: string, after: Cursor | null): Connection {
  return { url, after, status: 0, headers: {}, frames: [], retries: [], comments: [], oddities: [], isOpen: true, isCut: false }
}

/** Writes down what is heard on a connection, until it is cut. */
export function createListener(connection: Connection, onFrame: (frame: Frame) => void): (text: string) => void {
  const parser = createParser({
    onEvent: hear,
    onRetry: ms => connection.retries.push(ms),
    onComment: text => connection.comments.push(text),
  })
  return text => {
    if (!connection.isCut) parser.feed(text)
  }

  function hear({ id, event, data }: EventSourceMessage): void {
    if (connection.isCut) return
    const frame = parseFrame(id, event, data)
    if (!frame) {
      connection.oddities.push(JSON.stringify({ id, event, data }))
      return
    }
    connection.frames.push(frame)
    onFrame(frame)
  }
}

function parseFrame(id: string | undefined, event: string | undefined, data: string): Frame | null {
  const cursor = parseCursor(id ?? '')
  try {
    const value: unknown = JSON.parse(data)
    const known = parseEvent(value) ?? wireEventSchema.safeParse(value).data
    return cursor && cursor === id && known?.type === event && known ? { id: cursor, data: known } : null
  } catch {
    return null
  }
}
