/**
 * One event stream of the API for the tabs of a browser, which all have the same six connections to a server.
 *
 * A reader is a stream of a tab: it names tasks, each with the cursor after which its events follow, or null for a snapshot. A connection asks for the tasks
 * of all readers; when a reader joins, the next connection replaces it and resumes each task where the reader that has the least stands. Each reader gets
 * the frames after its own place, so none is missing and none comes twice. A task that has ended leaves the connection, and its readers stay: it is asked
 * for again when the feed names it. When a connection breaks, its readers reconnect by themselves.
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

type SharedStreamDeps = {
  open(places: Places, signal: AbortSignal): Promise<Response>
  /** Gets each frame once, before the readers. */
  onFrame?(frame: string): void
  /** Whether frames come. */
  onLive?(isLive: boolean): void
  beatMs?: number
  gatherMs?: number
}

type Frame = { name: string; cursor: Cursor; type: string; text: string; untagged: string }
type Connection = { controller: AbortController; readers: Set<Reader>; places: Places; ended: Set<string>; hasBytes: boolean }

/** How long an ended task is not asked for: a state that a client writes then is in no feed. Without a feed, less. */
const sleepMs = { watched: 60_000, unwatched: 10_000 }

export class SharedStream {
  readonly #deps: Required<SharedStreamDeps>
  readonly #readers = new Set<Reader>()
  /** Those that have the head of their response. */
  readonly #open = new WeakSet<Reader>()
  #connection: Connection | null = null
  #timer: ReturnType<typeof setTimeout> | null = null
  /** The tasks that have ended. */
  readonly #asleep = new Set<string>()
  /** The tasks that the feed has named since they were asked for: what it named may be later than their end. */
  readonly #named = new Set<string>()
  #isWatched = false
  #sleepTimer: ReturnType<typeof setTimeout> | null = null
  #beatTimer: ReturnType<typeof setInterval> | null = null

  constructor({ open, onFrame = () => {}, onLive = () => {}, beatMs = 15_000, gatherMs = 10 }: SharedStreamDeps) {
    this.#deps = { open, onFrame, onLive, beatMs, gatherMs }
  }

  join(reader: Reader): void {
    this.#readers.add(reader)
    this.#beatTimer ??= setInterval(() => this.#beat(), this.#deps.beatMs)
    this.wake(reader.places.keys())
    this.#reconnect()
  }

  leave(reader: Reader): void {
    this.#readers.delete(reader)
    if (this.#readers.size > 0) return
    this.#connection?.controller.abort()
    this.#close()
    this.wake([...this.#asleep])
    if (this.#beatTimer) clearInterval(this.#beatTimer)
    this.#beatTimer = null
  }

  /** Asks for these tasks again if they have ended. */
  wake(names: Iterable<string>): void {
    for (const name of names) {
      if (this.#asleep.delete(name)) this.#reconnect()
      else if (this.#connection?.places.has(name)) this.#named.add(name)
    }
    if (this.#asleep.size > 0 || !this.#sleepTimer) return
    clearTimeout(this.#sleepTimer)
    this.#sleepTimer = null
  }

  /** @param isWatched whether the feed tells when a task goes on. What it told in between is unknown. */
  watch(isWatched: boolean): void {
    this.#isWatched = isWatched
    this.wake([...this.#asleep])
  }

  /** Not at once, because the streams of a page join together. */
  #reconnect(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      this.#connection?.controller.abort()
      this.#connection = null
      const places = new Map([...earliest(this.#readers)].filter(([name]) => !this.#asleep.has(name)))
      if (places.size > 0) void this.#run(places)
    }, this.#deps.gatherMs)
  }

  async #run(places: Places): Promise<void> {
    const readers = new Set(this.#readers)
    const connection: Connection = { controller: new AbortController(), readers, places, ended: new Set(), hasBytes: false }
    const { signal } = connection.controller
    this.#connection = connection
    this.#named.clear()
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
      this.#deps.onLive(true)
      await this.#read(response.body, connection)
      if (signal.aborted) return
      if (connection.ended.size === places.size) this.#close()
      else this.#finish(connection, false)
    } catch {
      if (!signal.aborted) this.#finish(connection, true)
    }
  }

  #close(): void {
    this.#connection = null
    this.#deps.onLive(false)
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
    this.#deps.onFrame(frame.text)
    // The readers follow the task: for them it goes on.
    if (type === 'end') {
      this.#sleep(name, connection)
      return
    }
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
    if (type === 'deleted') this.#sleep(name, connection)
    // The snapshot stands for events that a reader behind it still needs.
    if (isForNew && readers.some(({ places }) => isBehind(places.get(name) ?? null, cursor))) {
      connection.controller.abort()
      this.#reconnect()
    }
  }

  #sleep(name: string, { ended }: Connection): void {
    ended.add(name)
    if (this.#named.delete(name)) {
      this.#reconnect()
      return
    }
    this.#asleep.add(name)
    this.#sleepTimer ??= setTimeout(
      () => {
        this.#sleepTimer = null
        this.wake([...this.#asleep])
      },
      this.#isWatched ? sleepMs.watched : sleepMs.unwatched,
    )
  }

  /** A busy task keeps the connection from a heartbeat that the reader of a quiet one needs, and an ended task has no connection. */
  #beat(): void {
    const isAlive = this.#connection?.hasBytes ?? true
    if (isAlive) for (const reader of this.#readers) if (this.#open.has(reader)) reader.write(': hb\n')
    if (this.#connection) this.#connection.hasBytes = false
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
    this.#close()
    if (this.#readers.size > 0) this.#reconnect()
  }

  #finish(connection: Connection, isBroken: boolean): void {
    this.#close()
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
  return type === 'caught_up' || type === '' ? !isBehind(place, cursor) : compareCursors(cursor, place) > 0
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
