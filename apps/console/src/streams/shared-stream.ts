/**
 * One event stream of the API for the tabs of a browser, which all have the same six connections to a server.
 *
 * A reader is a stream of a tab: it names tasks, each with the cursor after which its events follow, or null for a snapshot. A connection asks for the tasks
 * of all readers; when a reader joins, the next connection replaces it and resumes each task where the reader that has the least stands. Each reader gets
 * the frames after its own place, so none is missing and none comes twice. When a connection breaks, its readers reconnect by themselves.
 */
import { type Cursor, compareCursors } from '@rivulet/client'

/** The name of the feed, among the ids of tasks. */
export const feedName = 'feed'

export type Places = ReadonlyMap<string, Cursor | null>

export type Head = { status: number; contentType: string; retryAfter: string | null; body: string }

export type Reader = {
  /** By task, or for the feed. */
  readonly places: Map<string, Cursor | null>
  /** Whether the ids of its frames begin with the task. */
  readonly isTagged: boolean
  /** The head of its response; of an error with its body. */
  head(head: Head): void
  write(frame: string): void
  /** The response is over, properly or not. */
  end(isBroken: boolean): void
}

export type SharedStreamDeps = { open(places: Places, signal: AbortSignal): Promise<Response>; beatMs?: number; gatherMs?: number }

type Frame = { name: string; cursor: Cursor; type: string; text: string; untagged: string }
type Connection = { controller: AbortController; readers: Set<Reader>; places: Places; hasBytes: boolean }

export class SharedStream {
  readonly #deps: Required<SharedStreamDeps>
  readonly #readers = new Set<Reader>()
  /** Those that have the head of their response. */
  readonly #open = new WeakSet<Reader>()
  #connection: Connection | null = null
  #timer: ReturnType<typeof setTimeout> | null = null

  constructor({ open, beatMs = 15_000, gatherMs = 10 }: SharedStreamDeps) {
    this.#deps = { open, beatMs, gatherMs }
  }

  join(reader: Reader): void {
    this.#readers.add(reader)
    this.#reconnect()
  }

  leave(reader: Reader): void {
    this.#readers.delete(reader)
    if (this.#readers.size > 0) return
    this.#connection?.controller.abort()
    this.#connection = null
  }

  /** Not at once, because the streams of a page join together. */
  #reconnect(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      this.#connection?.controller.abort()
      this.#connection = null
      if (this.#readers.size > 0) void this.#run()
    }, this.#deps.gatherMs)
  }

  async #run(): Promise<void> {
    const readers = new Set(this.#readers)
    const connection: Connection = { controller: new AbortController(), readers, places: earliest(readers), hasBytes: false }
    const { signal } = connection.controller
    this.#connection = connection
    const beat = setInterval(() => this.#beat(connection), this.#deps.beatMs)
    try {
      const response = await this.#deps.open(connection.places, signal)
      const { status, headers } = response
      const head = { status, contentType: headers.get('content-type') ?? '', retryAfter: headers.get('retry-after'), body: '' }
      if (status !== 200 || !response.body) {
        const body = await response.text()
        if (!signal.aborted) this.#refuse(readers, { ...head, body })
        return
      }
      for (const reader of this.#present(connection)) this.#begin(reader, head)
      await this.#read(response.body, connection)
      if (!signal.aborted) this.#finish(connection, false)
    } catch {
      if (!signal.aborted) this.#finish(connection, true)
    } finally {
      clearInterval(beat)
    }
  }

  async #read(body: ReadableStream<Uint8Array>, connection: Connection): Promise<void> {
    const decoder = new TextDecoder()
    const reader = body.getReader()
    let rest = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done || connection.controller.signal.aborted) return
      connection.hasBytes = true
      const texts = (rest + decoder.decode(value, { stream: true })).split('\n\n')
      rest = texts.pop() ?? ''
      for (const text of texts) {
        const frame = frameIn(text)
        if (frame) this.#deliver(frame, connection)
        if (connection.controller.signal.aborted) return
      }
    }
  }

  #deliver(frame: Frame, connection: Connection): void {
    const { name, cursor, type } = frame
    const readers = this.#present(connection).filter(({ places }) => places.has(name))
    const isBeginning = type === 'snapshot' || type === 'open'
    // A snapshot that no reader has asked for repairs a loss, so it is for all of them.
    const isForNew = isBeginning && (type === 'open' || connection.places.get(name) === null)
    for (const reader of readers) {
      const place = reader.places.get(name) ?? null
      if (isBeginning ? isForNew && place !== null : !follows(frame, place)) continue
      if (isBeginning || (place !== null && compareCursors(cursor, place) > 0)) reader.places.set(name, cursor)
      reader.write(reader.isTagged ? frame.text : frame.untagged)
    }
    // The snapshot stands for events that a reader behind it still needs.
    if (isForNew && readers.some(({ places }) => isBehind(places.get(name) ?? null, cursor))) {
      connection.controller.abort()
      this.#reconnect()
    }
  }

  /** A busy task keeps the connection from a heartbeat that the reader of a quiet one needs. */
  #beat(connection: Connection): void {
    if (connection.hasBytes) for (const reader of this.#present(connection)) reader.write(': hb\n')
    connection.hasBytes = false
  }

  /** An error that names tasks is for their readers; the others go on without them. */
  #refuse(readers: ReadonlySet<Reader>, head: Head): void {
    const present = [...readers].filter(reader => this.#readers.has(reader))
    const named = namedIn(head.body)
    const guilty = present.filter(({ places }) => named.some(name => places.has(name)))
    for (const reader of guilty.length > 0 ? guilty : present) {
      this.#readers.delete(reader)
      // It has a response, so it gets the error when it asks again.
      if (this.#open.has(reader)) reader.end(false)
      else reader.head(head)
    }
    this.#connection = null
    if (this.#readers.size > 0) this.#reconnect()
  }

  #finish(connection: Connection, isBroken: boolean): void {
    this.#connection = null
    for (const reader of this.#present(connection)) {
      this.#readers.delete(reader)
      reader.end(isBroken)
    }
  }

  #begin(reader: Reader, head: Head): void {
    if (this.#open.has(reader)) return
    this.#open.add(reader)
    reader.head(head)
  }

  /** The readers of a connection that have not left. One that joined later waits for the next connection, because this one may be past its place. */
  #present({ readers }: Connection): Reader[] {
    return [...readers].filter(reader => this.#readers.has(reader))
  }
}

/** Where the connection resumes each name; null where a reader needs a snapshot first. A feed has none: it resumes at the earliest place that is known. */
function earliest(readers: Iterable<Reader>): Places {
  const found = new Map<string, Cursor | null>()
  for (const { places } of readers)
    for (const [name, place] of places) {
      const known = found.get(name)
      if (name === feedName) found.set(name, known && place && compareCursors(known, place) < 0 ? known : (place ?? known ?? null))
      else
        found.set(name, known === undefined || place === null ? place : known && compareCursors(known, place) < 0 ? known : known && place)
    }
  return found
}

/** Whether a frame other than a beginning is new to a reader. Those without a place in the log stand behind what the reader has. */
function follows({ cursor, type }: Frame, place: Cursor | null): boolean {
  if (type === 'deleted') return true
  if (place === null) return false
  return type === 'caught_up' || type === 'end' || type === '' ? !isBehind(place, cursor) : compareCursors(cursor, place) > 0
}

function isBehind(place: Cursor | null, cursor: Cursor): boolean {
  return place !== null && compareCursors(place, cursor) < 0
}

/** The id is the last line of a frame: of a task with the task before the cursor, of the feed the place alone. */
function frameIn(text: string): Frame | null {
  const idAt = text.lastIndexOf('\nid: ')
  if (idAt < 0) return null
  const id = text.slice(idAt + 5)
  const slash = id.indexOf('/')
  const cursor = id.slice(slash + 1) as Cursor
  const type = /^(?:[^{]*\n)?event: (.*)$/m.exec(text.slice(0, 200))?.[1] ?? ''
  return {
    name: slash < 0 ? feedName : id.slice(0, slash),
    cursor,
    type,
    text: `${text}\n\n`,
    untagged: `${text.slice(0, idAt)}\nid: ${cursor}\n\n`,
  }
}

function namedIn(body: string): string[] {
  try {
    const { error } = JSON.parse(body) as { error?: { details?: { path: string }[] } }
    return (error?.details ?? []).map(({ path }) => path.replace(/^\/tasks\//, ''))
  } catch {
    return []
  }
}
