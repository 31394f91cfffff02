/** How ioredis connects to the master that Sentinels name. It is an option of a connection, so it survives `duplicate()`, by which BullMQ opens its own. */
import { connect as connectPlain, Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { AbstractConnector, type RedisOptions } from 'ioredis'
import type { Master, Sentinels } from './sentinels.ts'

type ConnectorOptions = { disconnectTimeout: number; tls?: ConnectionOptions }
type EmitError = (type: 'error', error: Error) => void

export function createSentinelConnector(sentinels: Sentinels): NonNullable<RedisOptions['Connector']> {
  return class SentinelConnector extends AbstractConnector {
    readonly #tls: ConnectionOptions | undefined
    #master: Master | null = null
    #emit: EmitError = () => {}

    constructor(options: unknown) {
      const { disconnectTimeout, tls } = options as ConnectorOptions
      super(disconnectTimeout)
      this.#tls = tls
    }

    /** Never rejects, because ioredis would not try again: a socket that is destroyed makes it retry with its backoff, and emit `firstError`. */
    async connect(emit: EmitError): Promise<Socket> {
      this.connecting = true
      this.#emit = emit
      delete this.firstError
      try {
        this.stream = await sentinels.connect(master => this.#open(master))
      } catch (error) {
        this.firstError = error as Error
        this.stream = new Socket().destroy()
      }
      // `disconnect` was called meanwhile.
      if (!this.connecting) this.stream.destroy()
      return this.stream
    }

    /** ioredis reads INFO of each new connection. A user that may not read it gets an error that says so later. */
    override check({ role }: { role?: string }): boolean {
      if (role === undefined || role === 'master') return true
      this.#emit('error', new Error(`${this.#master?.host}:${this.#master?.port} is not a master, although Sentinels name it`))
      return false
    }

    #open(master: Master): Socket {
      const { host, port } = master
      this.#master = master
      const socket = this.#tls ? connectTls({ host, port, ...this.#tls }) : connectPlain({ host, port })
      // ioredis listens only later.
      return socket.once('error', error => {
        this.firstError = error
      })
    }
  }
}
