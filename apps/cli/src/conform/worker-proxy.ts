/**
 * Stands between workers and the API: notes the calls that pass, cuts all connections, or withholds replies of the API, so that a worker cannot know whether
 * its call has arrived.
 */
import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'

export class WorkerProxy {
  readonly #target: URL
  readonly #upstream = new Agent({ keepAlive: true })
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((incoming, response) => void this.#pass(incoming, response).catch(() => response.destroy()))
  /** Ids of the workers whose `hello` the API has accepted. */
  readonly greeted = new Set<string>()
  /** When the last append was begun. */
  lastAppendAt = 0
  withheld = 0
  #isCut = false
  #withholds: (call: string) => boolean = () => false

  constructor(target: string) {
    this.#target = new URL(target)
    this.#server.on('connection', socket => {
      if (this.#isCut) socket.destroy()
      this.#sockets.add(socket)
      socket.on('error', () => {}).once('close', () => this.#sockets.delete(socket))
    })
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Nothing passes any more, until `heal`. */
  cut(): void {
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  /** @param isChosen by the name of the call: whether the API gets it, and the worker no reply */
  withhold(isChosen: (call: string) => boolean): void {
    this.#withholds = isChosen
  }

  heal(): void {
    this.#isCut = false
    this.#withholds = () => false
  }

  close(): void {
    this.#server.close()
    this.cut()
    this.#upstream.destroy()
  }

  async #pass(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '/', headers } = incoming
    const call = new URL(url, this.#target).pathname.split('/').at(-1) ?? ''
    const body = await buffer(incoming)
    if (call === 'append') this.lastAppendAt = performance.now()
    const passed = request(new URL(url, this.#target), { method, headers, agent: this.#upstream })
    // The API must know that the worker has left, because it would claim turns for it.
    response.once('close', () => passed.destroy())
    passed.end(body)
    const [reply] = (await once(passed, 'response')) as [IncomingMessage]
    const content = await buffer(reply)
    if (call === 'hello' && reply.statusCode === 200) this.#noteWorker(body)
    if (method === 'POST' && this.#withholds(call)) {
      this.withheld += 1
      response.destroy()
      return
    }
    response.writeHead(reply.statusCode ?? 502, reply.headers).end(content)
  }

  #noteWorker(hello: Buffer): void {
    const { worker } = JSON.parse(hello.toString()) as { worker?: unknown }
    if (typeof worker === 'string') this.greeted.add(worker)
  }
}
