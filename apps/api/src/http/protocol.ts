/** The seam to the protocols of other front ends: what the server gives to each. `api.ts` passes their tables to the server, which imports none of them. */
import type { FastifyInstance } from 'fastify'
import type { Formats } from '../stream/dialects/dialect.ts'
import type { EventStream } from './routes/tasks/events.ts'
import type { Services } from './services.ts'

type ProtocolHost = {
  app: FastifyInstance
  services: Services
  events: EventStream
  /** Adds the checks of every route for clients: key, capacity and, of an API that is open or with `checksOrigin`, the page that asks. */
  admit(scope: FastifyInstance, checksOrigin?: boolean): void
}

/** Registers the routes of a protocol, below prefixes of its own. */
export type Protocol = (host: ProtocolHost) => Promise<void>

export type Protocols = {
  withRoutes: readonly Protocol[]
  formats: Formats
}
