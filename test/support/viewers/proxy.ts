/**
 * A TCP proxy in front of a server, with the ways in which a network fails: it refuses, it swallows, it loses a reply, it breaks, it is slow.
 * What goes through is otherwise as it was. Texts are looked for in what is sent at once, which for a small command or message is all of it.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createPacedPipe, type Pace, unpaced } from './paced-pipe.ts'

export type FaultyProxy = {
  port: number
  /** The server's URL, by way of this proxy. */
  url: string
  /** Cuts every connection, and refuses new ones until `up`. */
  down(): void
  up(): void
  /** Nothing gets through in either direction, and no connection is closed, until `up`. */
  blackhole(): void
  /** Nothing gets through the open connections any more, and none is closed; new ones are taken. As if the server had lost its power and come back. */
  strand(): void
  /** Breaks every connection with a reset; new ones are taken. */
  reset(): void
  /** Both directions are late, in small pieces or narrow, until `up`. */
  slow(pace: Partial<Pace>): void
  /** New connections go to another server; those that are open are cut. */
  repoint(serverUrl: string): void
  /** What the server says with this text in it is lost, until `up`. */
  mute(text: string): void
  /** What a client says with this text in it, and all that it says after that, waits until `up`. Resolves when something does. */
  hold(text: string): Promise<void>
  /**
   * The server gets the next command with this text in it; its reply is lost, and with it the connection. Resolves when that has happened.
   * `after` is something that the connection has to have said before.
   */
  dropReply(text: string, after?: string): Promise<void>
  /** The same, by the reply: for commands that are sent at once, where the first word back is not yet the answer to the last. */
  dropOnReply(text: string, after: string): Promise<void>
  close(): Promise<void>
}

type Fault = 'down' | 'blackhole' | null
type Link = {
  client: Socket
  server: Socket
  toServer: (chunk: Buffer) => void
  toClient: (chunk: Buffer) => void
  held: Buffer[] | null
  isStranded: boolean
  isMarked: boolean
  losesReply: boolean
}
type Trap = { text: string; after?: string; sprung: () => void }

export async function startProxy(serverUrl: string): Promise<FaultyProxy> {
  let target = new URL(serverUrl)
  let pace = unpaced
  const links = new Set<Link>()
  let fault: Fault = null
  let muted: string | null = null
  let holding: Trap | null = null
  let dropping: Trap | null = null
  let replying: Trap | null = null
  const listener = createServer(accept).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const url = Object.assign(new URL(serverUrl), { host: `127.0.0.1:${port}` }).toString()
  return { port, url, down, up, blackhole, strand, reset, slow, repoint, mute, hold, dropReply, dropOnReply, close }

  function accept(client: Socket): void {
    if (fault === 'down') {
      client.destroy()
      return
    }
    const server = connect(Number(target.port), target.hostname)
    const toServer = createPacedPipe(
      chunk => server.write(chunk),
      () => pace,
    )
    const toClient = createPacedPipe(
      chunk => client.write(chunk),
      () => pace,
    )
    const link: Link = { client, server, toServer, toClient, held: null, isStranded: false, isMarked: false, losesReply: false }
    links.add(link)
    for (const socket of [client, server]) {
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => cut(link))
    }
    client.on('data', chunk => passOn(link, chunk))
    server.on('data', chunk => passBack(link, chunk))
  }

  function passOn(link: Link, chunk: Buffer): void {
    if (fault === 'blackhole' || link.isStranded) return
    if (holding && !link.held && chunk.includes(holding.text)) {
      link.held = []
      holding.sprung()
    }
    if (link.held) {
      link.held.push(chunk)
      return
    }
    const mark = dropping?.after ?? replying?.after
    link.isMarked ||= mark !== undefined && chunk.includes(mark)
    if (dropping && chunk.includes(dropping.text) && (dropping.after === undefined || link.isMarked)) {
      link.losesReply = true
      dropping.sprung()
      dropping = null
    }
    link.toServer(chunk)
  }

  function passBack(link: Link, chunk: Buffer): void {
    if (link.isStranded) return
    if (replying && link.isMarked && chunk.includes(replying.text)) {
      replying.sprung()
      replying = null
      cut(link)
    } else if (link.losesReply) cut(link)
    else if (fault !== 'blackhole' && !(muted !== null && chunk.includes(muted))) link.toClient(chunk)
  }

  function cut(link: Link): void {
    links.delete(link)
    link.client.destroy()
    link.server.destroy()
  }

  function down(): void {
    fault = 'down'
    for (const link of links) cut(link)
  }

  function up(): void {
    // What was swallowed is missing in the midst of these connections: they cannot go on.
    if (fault === 'blackhole') for (const link of links) cut(link)
    fault = null
    pace = unpaced
    muted = null
    holding = null
    for (const link of links) {
      for (const chunk of link.held ?? []) link.toServer(chunk)
      link.held = null
    }
  }

  function blackhole(): void {
    fault = 'blackhole'
  }

  function strand(): void {
    for (const link of links) link.isStranded = true
  }

  function reset(): void {
    for (const { client, server } of links) for (const socket of [client, server]) socket.resetAndDestroy()
  }

  function slow(change: Partial<Pace>): void {
    pace = { ...unpaced, ...change }
  }

  function repoint(url: string): void {
    target = new URL(url)
    for (const link of links) cut(link)
  }

  function mute(text: string): void {
    muted = text
  }

  function hold(text: string): Promise<void> {
    return new Promise(sprung => {
      holding = { text, sprung }
    })
  }

  function dropReply(text: string, after?: string): Promise<void> {
    return new Promise(sprung => {
      dropping = { text, sprung, ...(after !== undefined && { after }) }
    })
  }

  function dropOnReply(text: string, after: string): Promise<void> {
    return new Promise(sprung => {
      replying = { text, after, sprung }
    })
  }

  async function close(): Promise<void> {
    for (const link of links) cut(link)
    listener.close()
    await once(listener, 'close')
  }
}
