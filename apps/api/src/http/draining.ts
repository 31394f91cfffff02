/** Rejects requests that reach a closing process on connections that were open before, with the one shape of an error. */
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'

/** For Fastify's options: its own refusal has another shape, and does not say when to ask again. */
export const servesWhileClosing = { return503OnClosing: false } as const

export function rejectWhenClosing(app: FastifyInstance): void {
  let isClosing = false
  app.addHook('preClose', async () => {
    isClosing = true
  })
  // Fastify adds `Connection: close`, so the client asks again on a new connection, which another process takes.
  app.addHook('onRequest', async () => {
    if (isClosing) throw new RivuletError('draining', 'This process is stopping')
  })
}
