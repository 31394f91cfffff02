/**
 * The writers of event streams. A writer is open, full or ended. Each socket has a writer. A viewer has one of its own before it, because on a connection
 * with several tasks one viewer may wait while the socket is open. Only writers of sockets have heartbeats and a stall limit.
 *
 * The writers of sockets have one clock: viewers, other protocols, many tasks, one message, the change feed and MCP. An open socket gets heartbeats. One that is
 * full, or has ended, is cut if it takes nothing for too long.
 */
import type { ServerResponse } from 'node:http'
import { encodeRetry, pieceOf } from './sse-frame.ts'
import { heartbeatChunk, openSse, type Shared, type SseEvents, type SseResponse, type SseSocket, share } from './sse-response.ts'

const heartbeatSeconds = 15

export class SseWriter implements SseResponse {
  /** The change feed sends its position with each heartbeat. */
  heartbeat: () => Shared = () => heartbeatChunk
  readonly #response: SseResponse
  #at: 'open' | 'full' | 'ended' = 'open'
  #changedAt = performance.now()
  #waiting: (() => void)[] = []

  constructor(response: SseResponse) {
    this.#response = response
  }

  get at(): 'open' | 'full' | 'ended' {
    return this.#at
  }

  get changedAt(): number {
    return this.#changedAt
  }

  write(bytes: Shared): boolean {
    if (this.#at === 'ended') return false
    const isFree = this.#response.write(bytes)
    if (!isFree && this.#at === 'open') this.#change('full')
    return isFree
  }

  send(text: string): boolean {
    return this.write(share([pieceOf(Buffer.from(text))]))
  }

  /** Resolves when there is room for more; `false` when the stream has ended. */
  async room(): Promise<boolean> {
    while (this.#at === 'full') await new Promise<void>(resolve => this.#waiting.push(resolve))
    return this.#at === 'open'
  }

  drained(): void {
    if (this.#at === 'full') this.#change('open')
  }

  /** Ends the response so that its client comes back, to another process. */
  leave(): void {
    if (this.#at === 'open') this.write(share([pieceOf(encodeRetry())]))
    this.end()
  }

  end(): void {
    if (this.#at === 'ended') return
    this.#change('ended')
    this.#response.end()
  }

  destroy(): void {
    this.gone()
    this.#response.destroy()
  }

  /** The connection is closed. */
  gone(): void {
    if (this.#at !== 'ended') this.#change('ended')
  }

  /** The only change of its state: an end is for good. */
  #change(at: 'open' | 'full' | 'ended'): void {
    this.#at = at
    this.#changedAt = performance.now()
    if (at !== 'full') for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

type SseWriterEvents = SseEvents & {
  /** Its client took nothing for too long. */
  onCut: () => void
}

/** `unsent` bytes have waited for the socket since `movedAt`. Heartbeats have a second each in a cycle, so that not all are sent at once. */
type Connection = { socket: SseSocket; slot: number; unsent: number; movedAt: number; onCut: () => void }

export class SseWriters {
  readonly #connections = new Map<SseWriter, Connection>()
  readonly #stallMs: number
  readonly #clock: NodeJS.Timeout
  #second = 0

  constructor(stallMs: number) {
    this.#stallMs = stallMs
    this.#clock = setInterval(() => this.#tick(), 1_000)
    this.#clock.unref()
  }

  /** Null for a client that has left. */
  async open(
    response: ServerResponse,
    headers: Record<string, string>,
    { onDrain, onClose, onCut }: SseWriterEvents,
  ): Promise<SseWriter | null> {
    let writer: SseWriter | null = null
    const socket = await openSse(response, headers, {
      onDrain: () => {
        writer?.drained()
        onDrain()
      },
      onClose: () => {
        if (writer) this.#connections.delete(writer)
        writer?.gone()
        onClose()
      },
    })
    if (socket) writer = this.add(socket, onCut)
    return writer
  }

  add(socket: SseSocket, onCut: () => void): SseWriter {
    const writer = new SseWriter(socket)
    this.#connections.set(writer, { socket, slot: this.#connections.size % heartbeatSeconds, unsent: 0, movedAt: 0, onCut })
    return writer
  }

  /** How many sockets are full, and what waits for all of them. */
  pressure(): { blocked: number; unsentBytes: number } {
    let blocked = 0
    let unsentBytes = 0
    for (const [writer, { socket }] of this.#connections) {
      if (writer.at === 'full') blocked += 1
      unsentBytes += socket.unsentBytes()
    }
    return { blocked, unsentBytes }
  }

  close(): void {
    clearInterval(this.#clock)
  }

  #tick(): void {
    this.#second = (this.#second + 1) % heartbeatSeconds
    for (const [writer, connection] of this.#connections) {
      if (writer.at !== 'open') this.#cutIfStalled(writer, connection)
      else if (connection.slot === this.#second) writer.write(writer.heartbeat())
    }
  }

  #cutIfStalled(writer: SseWriter, connection: Connection): void {
    const unsent = connection.socket.unsentBytes()
    const now = performance.now()
    if (unsent !== connection.unsent) Object.assign(connection, { unsent, movedAt: now })
    // A socket that has drained and is full again may have as much to send as before.
    if (now - Math.max(connection.movedAt, writer.changedAt) < this.#stallMs) return
    this.#connections.delete(writer)
    writer.destroy()
    connection.onCut()
  }
}
