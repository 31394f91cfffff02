/**
 * The network of a server compiled to WebAssembly: implements its socket calls with node:net.
 *
 * The server never blocks. A read without data and a write to a full socket return at once, and the bridge steps the server again when the
 * socket is ready. Data that arrives in one turn of the event loop is handled in one pass. A pass steps until no work is left, because the
 * server writes a reply in the step after the one that created it. Descriptors are reused, because the server's table is small.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { portError } from '../ports.ts'

/** The exports with which the bridge drives the server. */
export type Reactor = {
  memory: { buffer: ArrayBuffer }
  /** Returns how many events it handled. */
  rk_step(): number
  rk_next_timeout_ms(): number
}

export type SocketBridge = {
  port: number
  /** The functions that the server imports. */
  host: Record<string, (...args: number[]) => number>
  /** The server runs, for `execute` alone. */
  attach(reactor: Reactor): void
  /** Accepts clients, starting with those that have been waiting. */
  serve(): void
  /** Runs a command that does not block, as a separate client, and returns the raw reply. */
  execute(...command: string[]): string
  close(): void
}

type Connection = { chunks: Buffer[]; offset: number; hasEnded: boolean; isFull(): boolean; write(bytes: Buffer): void; close(): void }

// Both are fixed in the WebAssembly build.
const firstDescriptor = 4096
const [readable, writable] = [1, 2]
const noDescriptor = -1
const [nothingToRead, endOfStream] = [-1, 0]
// Not -1, which means a broken connection to the server.
const nothingWritten = 0

/** `onCrash` is called when the server fails inside WebAssembly; it cannot be stepped after that. */
export async function createSocketBridge(wantedPort: number, onCrash: (error: unknown) => void): Promise<SocketBridge> {
  const connections: (Connection | undefined)[] = []
  const freeDescriptors: number[] = []
  const waiting: number[] = []
  const listener = firstDescriptor
  let nextDescriptor = firstDescriptor + 1
  let reactor: Reactor | null = null
  let isPassDue = false
  let timer: NodeJS.Timeout | undefined
  let view = new DataView(new ArrayBuffer(0))
  let local: { descriptor: number; reply: Buffer[] } | null = null
  let early: Socket[] | null = []

  const server = createServer({ allowHalfOpen: true, noDelay: true }, socket => {
    socket.on('error', () => {})
    if (early) early.push(socket)
    else accept(socket)
  })
  const port = await listen(server, wantedPort)
  return {
    port,
    host: { socket: () => listener, listen: () => 0, accept: takeWaiting, read, write, close: closeDescriptor, poll },
    attach,
    serve,
    execute,
    close,
  }

  function attach(started: Reactor): void {
    reactor = started
  }

  function serve(): void {
    const waited = early ?? []
    early = null
    for (const socket of waited) if (!socket.destroyed) accept(socket)
    tick()
  }

  /** Steps the server at intervals, because it also has timed work: expired keys, timeouts of blocked clients. */
  function tick(): void {
    pass()
    if (reactor) timer = setTimeout(tick, Math.min(100, Math.max(1, reactor.rk_next_timeout_ms())))
  }

  function schedulePass(): void {
    if (isPassDue) return
    isPassDue = true
    setImmediate(pass)
  }

  function pass(): void {
    isPassDue = false
    try {
      while (reactor && reactor.rk_step() > 0);
    } catch (error) {
      reactor = null
      onCrash(error)
    }
  }

  function accept(socket: Socket): void {
    const connection: Connection = {
      chunks: [],
      offset: 0,
      hasEnded: false,
      isFull: () => socket.writableNeedDrain,
      write: bytes => void socket.write(bytes),
      // Not destroy(), because the last reply may not have been sent yet.
      close: () => socket.destroySoon(),
    }
    socket.on('data', (bytes: Buffer) => {
      connection.chunks.push(bytes)
      schedulePass()
    })
    socket.on('drain', schedulePass)
    for (const event of ['end', 'close']) {
      socket.on(event, () => {
        connection.hasEnded = true
        schedulePass()
      })
    }
    open(connection)
    schedulePass()
  }

  function open(connection: Connection): number {
    const descriptor = freeDescriptors.pop() ?? nextDescriptor++
    connections[descriptor - firstDescriptor] = connection
    waiting.push(descriptor)
    return descriptor
  }

  function takeWaiting(): number {
    return waiting.shift() ?? noDescriptor
  }

  function read(descriptor: number, pointer: number, length: number): number {
    const connection = connections[descriptor - firstDescriptor]
    const memory = bytesAt(pointer, length)
    let filled = 0
    for (let chunk = connection?.chunks[0]; connection && chunk && filled < length; chunk = connection.chunks[0]) {
      const copied = chunk.copy(memory, filled, connection.offset)
      filled += copied
      connection.offset += copied
      if (connection.offset === chunk.length) {
        connection.chunks.shift()
        connection.offset = 0
      }
    }
    if (filled > 0) return filled
    return !connection || connection.hasEnded ? endOfStream : nothingToRead
  }

  function write(descriptor: number, pointer: number, length: number): number {
    const connection = connections[descriptor - firstDescriptor]
    if (connection?.isFull() && !connection.hasEnded) return nothingWritten
    // Data for a client that is gone is lost, as on a real socket; the server notices at its next read.
    connection?.write(Buffer.from(bytesAt(pointer, length)))
    return length
  }

  function closeDescriptor(descriptor: number): number {
    const connection = connections[descriptor - firstDescriptor]
    if (!connection) return 0
    connections[descriptor - firstDescriptor] = undefined
    freeDescriptors.push(descriptor)
    connection.close()
    return 0
  }

  /** Interests and results are pairs of descriptor and mask, 32 bits each. */
  function poll(interests: number, count: number, fired: number, max: number): number {
    const memory = viewOf()
    const [from, to] = [interests >>> 0, fired >>> 0]
    let total = 0
    for (let index = 0; index < count && total < max; index++) {
      const descriptor = memory.getInt32(from + index * 8, true)
      const mask = memory.getInt32(from + index * 8 + 4, true) & readiness(descriptor)
      if (mask === 0) continue
      memory.setInt32(to + total * 8, descriptor, true)
      memory.setInt32(to + total * 8 + 4, mask, true)
      total++
    }
    return total
  }

  function readiness(descriptor: number): number {
    if (descriptor === listener) return waiting.length > 0 ? readable : 0
    const connection = connections[descriptor - firstDescriptor]
    if (!connection) return 0
    if (connection.hasEnded) return readable | writable
    return (connection.chunks.length > 0 ? readable : 0) | (connection.isFull() ? 0 : writable)
  }

  function execute(...command: string[]): string {
    local ??= openLocal()
    const connection = connections[local.descriptor - firstDescriptor]
    const words = command.map(word => `$${Buffer.byteLength(word)}\r\n${word}\r\n`)
    connection?.chunks.push(Buffer.from(`*${words.length}\r\n${words.join('')}`))
    pass()
    return Buffer.concat(local.reply.splice(0)).toString()
  }

  function openLocal(): { descriptor: number; reply: Buffer[] } {
    const reply: Buffer[] = []
    const write = (bytes: Buffer): void => void reply.push(bytes)
    const descriptor = open({ chunks: [], offset: 0, hasEnded: false, isFull: () => false, write, close: () => (local = null) })
    return { descriptor, reply }
  }

  /** Pointers are signed numbers and may point into the upper half of the memory. */
  function bytesAt(pointer: number, length: number): Buffer {
    return Buffer.from(viewOf().buffer, pointer >>> 0, length)
  }

  /** The buffer is replaced when the memory grows. */
  function viewOf(): DataView<ArrayBuffer> {
    const buffer = reactor?.memory.buffer
    if (buffer && view.buffer !== buffer) view = new DataView(buffer)
    return view
  }

  function close(): void {
    reactor = null
    clearTimeout(timer)
    server.close()
    for (const socket of early ?? []) socket.destroy()
    for (const connection of connections) connection?.close()
  }
}

function listen(server: Server, wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', error => reject(portError(wanted, error)))
    server.listen({ port: wanted, host: '127.0.0.1', backlog: 511 }, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : wanted)
    })
  })
}
