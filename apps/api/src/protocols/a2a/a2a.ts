/** The routes of A2A: JSON-RPC and HTTP+JSON below `/a2a`, and the card of a host with one agent. */
import type { Protocol } from '../../http/protocol.ts'
import { a2aRestRoutes, rejectUnknownPaths } from './a2a-rest.ts'
import { a2aHostRoute, a2aRoutes } from './a2a-rpc.ts'

export const a2a: Protocol = async ({ app, services, events, admit }) => {
  // The two have errors of their own shape.
  for (const routes of [a2aRoutes, a2aRestRoutes])
    await app.register(
      async scope => {
        admit(scope)
        routes(scope, services, events)
      },
      { prefix: '/a2a' },
    )
  await app.register(async scope => rejectUnknownPaths(scope), { prefix: '/a2a' })
  await app.register(async scope => {
    admit(scope)
    a2aHostRoute(scope, services)
  })
}
